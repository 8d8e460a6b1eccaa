/* Pairs are what vpmaddwd wants: eight outputs a vector. Exact: bytes are below 256, weights at most 255 in
 * size. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 8, PAIRS = 16, VECTORS = 4 };

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

void dq_qconv_pairs_avx2(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out)
{
    int16_t rest[2 * PAIRS];
    if (stride > 2 || (stride == 2 && distance != 1)) {
        dq_qconv_pairs_c(x, stride, distance, n, out);
        return;
    }
    for (size_t j = 0; j < n; j += PAIRS) {
        int16_t *to = n - j < PAIRS ? rest : out + 2 * j;
        __m128i low = _mm_loadu_si128((const void *)(x + j * stride)), high;
        if (stride == 1) {
            __m128i second = _mm_loadu_si128((const void *)(x + j + distance));
            high = _mm_unpackhi_epi8(low, second);
            low = _mm_unpacklo_epi8(low, second);
        } else {
            high = _mm_loadu_si128((const void *)(x + j * stride + PAIRS));
        }
        _mm256_storeu_si256((void *)to, _mm256_cvtepu8_epi16(low));
        _mm256_storeu_si256((void *)(to + PAIRS), _mm256_cvtepu8_epi16(high));
        if (to == rest)
            memcpy(out + 2 * j, rest, (n - j) * 2 * sizeof *out);
    }
}

static inline __m256i pair(const int16_t *w)
{
    int32_t both;
    memcpy(&both, w, sizeof both);
    return _mm256_set1_epi32(both);
}

/* Any number of taps, weights taken anew for every vector. */
static inline __m256i sums(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                           __m256i sum)
{
    for (size_t t = 0; t < taps; t++)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load(x + offsets[t]), pair(w + 2 * t)));
    return sum;
}

/* The taps of four vectors. */
static void quarters(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, __m256i init,
                     int32_t *out)
{
    __m256i a = init, b = init, c = init, d = init;
    for (size_t t = 0; t < taps; t++) {
        const int16_t *from = x + offsets[t];
        __m256i weights = pair(w + 2 * t);
        a = _mm256_add_epi32(a, _mm256_madd_epi16(load(from), weights));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(load(from + 2 * LANES), weights));
        c = _mm256_add_epi32(c, _mm256_madd_epi16(load(from + 4 * LANES), weights));
        d = _mm256_add_epi32(d, _mm256_madd_epi16(load(from + 6 * LANES), weights));
    }
    _mm256_storeu_si256((void *)out, a);
    _mm256_storeu_si256((void *)(out + LANES), b);
    _mm256_storeu_si256((void *)(out + 2 * LANES), c);
    _mm256_storeu_si256((void *)(out + 3 * LANES), d);
}

/* The pairs of a kernel of 3×3, whose weights stay in registers: whole vectors of n. Returns how many outputs
 * that is. */
static size_t six(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, __m256i init, size_t n,
                  int32_t *out)
{
    const int16_t *x0 = x + offsets[0], *x1 = x + offsets[1], *x2 = x + offsets[2], *x3 = x + offsets[3];
    const int16_t *x4 = x + offsets[4], *x5 = x + offsets[5];
    __m256i w0 = pair(w), w1 = pair(w + 2), w2 = pair(w + 4), w3 = pair(w + 6), w4 = pair(w + 8);
    __m256i w5 = pair(w + 10);
    size_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        __m256i a = _mm256_add_epi32(init, _mm256_madd_epi16(load(x0 + 2 * j), w0));
        __m256i b = _mm256_madd_epi16(load(x1 + 2 * j), w1);
        a = _mm256_add_epi32(a, _mm256_madd_epi16(load(x2 + 2 * j), w2));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(load(x3 + 2 * j), w3));
        a = _mm256_add_epi32(a, _mm256_madd_epi16(load(x4 + 2 * j), w4));
        b = _mm256_add_epi32(b, _mm256_madd_epi16(load(x5 + 2 * j), w5));
        _mm256_storeu_si256((void *)(out + j), _mm256_add_epi32(a, b));
    }
    return j;
}

void dq_qconv_row_avx2(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                       int32_t init, size_t n, int32_t *out)
{
    __m256i start = _mm256_set1_epi32(init);
    size_t j = 0;
    if (taps == 6)
        j = six(x, offsets, w, start, n, out);
    for (; j + VECTORS * LANES <= n; j += VECTORS * LANES)
        quarters(x + 2 * j, offsets, w, taps, start, out + j);
    for (; j + LANES <= n; j += LANES)
        _mm256_storeu_si256((void *)(out + j), sums(x + 2 * j, offsets, w, taps, start));
    if (j < n) {
        int32_t rest[LANES];
        _mm256_storeu_si256((void *)rest, sums(x + 2 * j, offsets, w, taps, start));
        memcpy(out + j, rest, (n - j) * sizeof *out);
    }
}
