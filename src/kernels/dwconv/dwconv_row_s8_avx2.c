/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolutions with vpmaddwd on pairs of elements: eight outputs per vector. With weights
 * this small, no sum of a pair of products overflows 32 bits. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 8, PAIRS = 16, VECTORS = 4 };

static inline __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

void dq_dwconv_pairs_s8_avx2(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out)
{
    int16_t rest[2 * PAIRS];
    if (stride > 2 || (stride == 2 && distance != 1)) {
        dq_dwconv_pairs_s8_c(x, stride, distance, n, out);
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

/* Sums any number of taps for one vector of outputs, loading the weights each time. */
static inline __m256i sums(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps,
                           __m256i sum)
{
    for (size_t t = 0; t < taps; t++)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load(x + offsets[t]), pair(w + 2 * t)));
    return sum;
}

/* Sums the taps for four vectors of outputs. */
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

static void row(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, int32_t init,
                size_t n, int32_t *out)
{
    __m256i start = _mm256_set1_epi32(init);
    size_t j = 0;
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

void dq_dwconv_rows_s8_avx2(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                            const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++)
        row(x + i * step, offsets, w, taps, init, n, out + i * n);
}

/* ---- 3×3 from bytes ----------------------------------------------------------------------------------- */

/* Elements of a row for eight outputs: the first two elements of each window, and the third one. */
typedef struct pairs {
    __m256i first, third;
} pairs;

static inline pairs pairs_at(const uint8_t *x)
{
    const __m256i two = _mm256_setr_epi8(0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1, 4, -1, 4, -1, 5, -1,
                                         5, -1, 6, -1, 6, -1, 7, -1, 7, -1, 8, -1);
    const __m256i one = _mm256_setr_epi8(2, -1, -1, -1, 3, -1, -1, -1, 4, -1, -1, -1, 5, -1, -1, -1, 6, -1,
                                         -1, -1, 7, -1, -1, -1, 8, -1, -1, -1, 9, -1, -1, -1);
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)x));
    return (pairs){_mm256_shuffle_epi8(bytes, two), _mm256_shuffle_epi8(bytes, one)};
}

/* Adds the products of two vectors of pairs to `sum`. */
static inline __m256i both(__m256i sum, __m256i first, __m256i second, __m256i w0, __m256i w1)
{
    __m256i products = _mm256_add_epi32(_mm256_madd_epi16(first, w0), _mm256_madd_epi16(second, w1));
    return _mm256_add_epi32(sum, products);
}

/* Computes eight outputs of each row. Each row of bytes is read once, for the three output rows whose
 * windows contain it. */
static inline void byte_strip(const uint8_t *x, size_t step, size_t rows, const __m256i w[6], __m256i init,
                              size_t n, int32_t *out)
{
    pairs p = pairs_at(x);
    __m256i next_row = both(init, p.first, p.third, w[0], w[1]);
    p = pairs_at(x + step);
    __m256i this_row = both(next_row, p.first, p.third, w[2], w[3]);
    next_row = both(init, p.first, p.third, w[0], w[1]);
    for (x += 2 * step; rows; rows--, x += step, out += n) {
        p = pairs_at(x);
        _mm256_storeu_si256((void *)out, both(this_row, p.first, p.third, w[4], w[5]));
        this_row = both(next_row, p.first, p.third, w[2], w[3]);
        next_row = both(init, p.first, p.third, w[0], w[1]);
    }
}

static void rows_of_bytes(const uint8_t *x, size_t step, size_t rows, const int16_t *w, int32_t init,
                          size_t n, int32_t *out)
{
    __m256i kept[6];
    if (n < LANES || rows == 0) {
        dq_dwconv_3x3_s8_rows_c(x, step, rows, w, init, n, out);
        return;
    }
    for (int t = 0; t < 6; t++)
        kept[t] = pair(w + 2 * t);
    for (size_t at = 0; at < n; at += LANES) {
        size_t j = n - at < LANES ? n - LANES : at; /* the last vector overlaps the one before it */
        byte_strip(x + j, step, rows, kept, _mm256_set1_epi32(init), n, out + j);
    }
}

const dq_dwconv_3x3_s8 dq_dwconv_3x3_s8_avx2 = {.least = LANES, .rows = rows_of_bytes};
