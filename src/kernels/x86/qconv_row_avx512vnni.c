/* Pairs are what vpdpwssd wants: sixteen outputs a vector, both products added to the sum without saturating.
 */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 16, VECTORS = 2 };

static void row(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, int32_t init,
                size_t n, int32_t *out)
{
    for (size_t j = 0; j < n; j += VECTORS * LANES) {
        __m512i sums[VECTORS];
        uint32_t mask = n - j < VECTORS * LANES ? (1u << (n - j)) - 1 : UINT32_MAX;
        for (int v = 0; v < VECTORS; v++)
            sums[v] = _mm512_set1_epi32(init);
        for (size_t t = 0; t < taps; t++) {
            int32_t pair;
            memcpy(&pair, w + 2 * t, sizeof pair);
            for (int v = 0; v < VECTORS; v++)
                sums[v] = _mm512_dpwssd_epi32(
                    sums[v],
                    _mm512_maskz_loadu_epi32((__mmask16)(mask >> v * LANES),
                                             x + offsets[t] + 2 * (j + (size_t)v * LANES)),
                    _mm512_set1_epi32(pair));
        }
        for (int v = 0; v < VECTORS; v++)
            _mm512_mask_storeu_epi32(out + j + v * LANES, (__mmask16)(mask >> v * LANES), sums[v]);
    }
}

void dq_qconv_rows_avx512vnni(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                              const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++)
        row(x + i * step, offsets, w, taps, init, n, out + i * n);
}
