/* SPDX-License-Identifier: Apache-2.0 */
/* Four rows by sixteen columns at a time: eight sums, and room for the operands in the sixteen registers. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 8, VECTORS = 2 };

/* `rows` is constant in each call, so that sums stay in registers. */
static inline __attribute__((always_inline)) void part(const float *a, const float *b, size_t k, int rows,
                                                       float *c)
{
    __m256 sum[4][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            sum[i][v] = _mm256_setzero_ps();
    for (size_t p = 0; p < k; p++, a += DQ_FGEMM_ROWS, b += DQ_FGEMM_COLS) {
        __m256 w0 = _mm256_loadu_ps(b), w1 = _mm256_loadu_ps(b + LANES);
        for (int i = 0; i < rows; i++) {
            __m256 x = _mm256_broadcast_ss(a + i);
            sum[i][0] = _mm256_fmadd_ps(x, w0, sum[i][0]);
            sum[i][1] = _mm256_fmadd_ps(x, w1, sum[i][1]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_ps(c + i * DQ_FGEMM_COLS + v * LANES, sum[i][v]);
}

void dq_fgemm_avx2(const float *a, const float *b, size_t k, size_t rows, float *c)
{
    for (size_t j = 0; j < DQ_FGEMM_COLS; j += VECTORS * LANES)
        for (size_t i = 0; i < rows; i += 4) {
            float *to = c + i * DQ_FGEMM_COLS + j;
            if (rows - i == 1)
                part(a + i, b + j, k, 1, to);
            else
                part(a + i, b + j, k, 4, to);
        }
}
