/* SPDX-License-Identifier: Apache-2.0 */
/* Eight rows by two vectors: sixteen sums hide the additions' latency. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 16, VECTORS = DQ_FGEMM_COLS / LANES };

/* `rows` is constant in each call, so that sums stay in registers. */
static inline __attribute__((always_inline)) void part(const float *a, const float *b, size_t k, int rows,
                                                       float *c)
{
    __m512 sum[DQ_FGEMM_ROWS][VECTORS];
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            sum[i][v] = _mm512_setzero_ps();
    for (size_t p = 0; p < k; p++, a += DQ_FGEMM_ROWS, b += DQ_FGEMM_COLS) {
        __m512 w0 = _mm512_loadu_ps(b), w1 = _mm512_loadu_ps(b + LANES);
        for (int i = 0; i < rows; i++) {
            __m512 x = _mm512_set1_ps(a[i]);
            sum[i][0] = _mm512_fmadd_ps(x, w0, sum[i][0]);
            sum[i][1] = _mm512_fmadd_ps(x, w1, sum[i][1]);
        }
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            _mm512_storeu_ps(c + i * DQ_FGEMM_COLS + v * LANES, sum[i][v]);
}

void dq_fgemm_avx512(const float *a, const float *b, size_t k, size_t rows, float *c)
{
    if (rows == 1)
        part(a, b, k, 1, c);
    else if (rows <= 4)
        part(a, b, k, 4, c);
    else
        part(a, b, k, DQ_FGEMM_ROWS, c);
}
