/* SPDX-License-Identifier: Apache-2.0 */
/* Two rows by two vectors at a time; the work is in what stands for a fused multiply-add, so that operands
 * are loaded and widened anew. */
#include "kernels/kernels.h"
#include "kernels/requantize/fused_sse41.h"

enum { LANES = 4, ROWS = 2, VECTORS = 2 };

static inline void part(const float *a, const float *b, size_t k, float *c)
{
    __m128 sum[ROWS][VECTORS];
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < VECTORS; v++)
            sum[i][v] = _mm_setzero_ps();
    for (size_t p = 0; p < k; p++, a += DQ_FGEMM_ROWS, b += DQ_FGEMM_COLS)
        for (int v = 0; v < VECTORS; v++) {
            __m128 w = _mm_loadu_ps(b + v * LANES);
            for (int i = 0; i < ROWS; i++)
                sum[i][v] = dq_fused_sse41(_mm_set1_ps(a[i]), w, sum[i][v]);
        }
    for (int i = 0; i < ROWS; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm_storeu_ps(c + i * DQ_FGEMM_COLS + v * LANES, sum[i][v]);
}

void dq_fgemm_sse41(const float *a, const float *b, size_t k, size_t rows, float *c)
{
    for (size_t j = 0; j < DQ_FGEMM_COLS; j += VECTORS * LANES)
        for (size_t i = 0; i < rows; i += ROWS)
            part(a + i, b + j, k, c + i * DQ_FGEMM_COLS + j);
}
