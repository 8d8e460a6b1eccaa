/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolutions with pmaddwd on pairs of elements: four outputs per vector. With weights
 * this small, no sum of a pair of products overflows 32 bits. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 4, VECTORS = 4 };

static inline __m128i pair(const int16_t *w)
{
    int32_t both;
    memcpy(&both, w, sizeof both);
    return _mm_set1_epi32(both);
}

static inline __attribute__((always_inline)) void outputs(const int16_t *x, const ptrdiff_t *offsets,
                                                          const int16_t *w, size_t taps, int32_t init,
                                                          int vectors, int32_t *out)
{
    __m128i sum[VECTORS];
    for (int v = 0; v < vectors; v++)
        sum[v] = _mm_set1_epi32(init);
    for (size_t t = 0; t < taps; t++) {
        __m128i weights = pair(w + 2 * t);
        for (int v = 0; v < vectors; v++) {
            __m128i from = _mm_loadu_si128((const void *)(x + offsets[t] + 2 * LANES * v));
            sum[v] = _mm_add_epi32(sum[v], _mm_madd_epi16(from, weights));
        }
    }
    for (int v = 0; v < vectors; v++)
        _mm_storeu_si128((void *)(out + LANES * v), sum[v]);
}

#include "kernels/dwconv/dwconv_row_s8_body.h"

void dq_dwconv_rows_s8_sse41(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                             const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++)
        row(x + i * step, offsets, w, taps, init, n, out + i * n);
}
