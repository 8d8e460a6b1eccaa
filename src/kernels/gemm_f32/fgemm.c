/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

/* Columns in the inner loop: as many sums side by side, which compilers keep in vectors. */
void dq_fgemm_c(const float *a, const float *b, size_t k, size_t rows, float *c)
{
    enum { STEP = 8 };
    for (size_t i = 0; i < rows; i += 2)
        for (size_t j = 0; j < DQ_FGEMM_COLS; j += STEP) {
            float sum[2][STEP] = {{0}};
            for (size_t p = 0; p < k; p++) {
                const float *x = a + p * DQ_FGEMM_ROWS + i, *w = b + p * DQ_FGEMM_COLS + j;
                for (size_t v = 0; v < STEP; v++) {
                    sum[0][v] = fmaf(x[0], w[v], sum[0][v]);
                    sum[1][v] = fmaf(x[1], w[v], sum[1][v]);
                }
            }
            for (size_t v = 0; v < STEP; v++) {
                c[i * DQ_FGEMM_COLS + j + v] = sum[0][v];
                c[(i + 1) * DQ_FGEMM_COLS + j + v] = sum[1][v];
            }
        }
}
