/* Pairs are what pmaddwd wants: four outputs a vector. No pair of products with weights this small leaves 32
 * bits. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 4, VECTORS = 4, STEP = LANES * VECTORS };

static inline __m128i pair(const int16_t *w)
{
    int32_t both;
    memcpy(&both, w, sizeof both);
    return _mm_set1_epi32(both);
}

/* `vectors` is constant in each call, so that sums stay in registers. */
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

static void one_row(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, int32_t init,
                    size_t n, int32_t *out)
{
    size_t j = 0;
    for (; j + STEP <= n; j += STEP)
        outputs(x + 2 * j, offsets, w, taps, init, VECTORS, out + j);
    for (; j + LANES <= n; j += LANES)
        outputs(x + 2 * j, offsets, w, taps, init, 1, out + j);
    if (j < n) {
        int32_t rest[LANES];
        outputs(x + 2 * j, offsets, w, taps, init, 1, rest);
        memcpy(out + j, rest, (n - j) * sizeof *out);
    }
}

void dq_qconv_rows_sse41(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                         const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++)
        one_row(x + i * step, offsets, w, taps, init, n, out + i * n);
}
