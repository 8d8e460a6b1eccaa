/* Pairs are what vpdpwssd wants: sixteen outputs a vector, both products added to the sum without saturating.
 */
#include "kernels/kernels.h"
#include "kernels/x86/qconv_row.h"

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

/* Two rows of a 3×3 kernel at stride 1: they share two of four rows of pairs, and weights stay in registers.
 * x and y are the two pairs of the first row. */
static void two_rows(const int16_t *x, const int16_t *y, size_t step, const int16_t *weights, int32_t init,
                     size_t n, int32_t *out)
{
    __m512i w[6];
    for (int t = 0; t < 6; t++) {
        int32_t pair;
        memcpy(&pair, weights + 2 * t, sizeof pair);
        w[t] = _mm512_set1_epi32(pair);
    }
    for (size_t j = 0; j < n; j += LANES) {
        __mmask16 some = n - j < LANES ? (__mmask16)((1u << (n - j)) - 1) : (__mmask16)0xffff;
        __m512i first = _mm512_set1_epi32(init), second = first;
        for (size_t r = 0; r < 4; r++) {
            __m512i p = _mm512_maskz_loadu_epi32(some, x + r * step + 2 * j);
            __m512i q = _mm512_maskz_loadu_epi32(some, y + r * step + 2 * j);
            if (r < 3)
                first = _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(first, p, w[2 * r]), q, w[2 * r + 1]);
            if (r > 0)
                second = _mm512_dpwssd_epi32(_mm512_dpwssd_epi32(second, p, w[2 * r - 2]), q, w[2 * r - 1]);
        }
        _mm512_mask_storeu_epi32(out + j, some, first);
        _mm512_mask_storeu_epi32(out + n + j, some, second);
    }
}

void dq_qconv_rows_avx512vnni(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                              const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    size_t i = 0;
    for (; i + 2 <= rows && three_by_three(offsets, taps, step); i += 2)
        two_rows(x + i * step + offsets[0], x + i * step + offsets[1], step, w, init, n, out + i * n);
    for (; i < rows; i++)
        row(x + i * step, offsets, w, taps, init, n, out + i * n);
}
