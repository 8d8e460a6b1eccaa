/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolutions with vpdpwssd on pairs of elements: sixteen outputs per vector. Both
 * products are added to the accumulator without saturation. */
#include "kernels/kernels.h"

#include <immintrin.h>
#include <string.h>

enum { LANES = 16, VECTORS = 2 };

/* Computes n outputs, up to `vectors` vectors, which is constant in each call. */
static inline __attribute__((always_inline)) void some(const int16_t *x, const ptrdiff_t *offsets,
                                                       const int16_t *w, size_t taps, int32_t init, size_t n,
                                                       int vectors, int32_t *out)
{
    __m512i sums[VECTORS];
    uint32_t mask = n < VECTORS * LANES ? (1u << n) - 1 : UINT32_MAX;
    for (int v = 0; v < vectors; v++)
        sums[v] = _mm512_set1_epi32(init);
    for (size_t t = 0; t < taps; t++) {
        int32_t pair;
        memcpy(&pair, w + 2 * t, sizeof pair);
        for (int v = 0; v < vectors; v++)
            sums[v] = _mm512_dpwssd_epi32(
                sums[v],
                _mm512_maskz_loadu_epi32((__mmask16)(mask >> v * LANES), x + offsets[t] + 2 * v * LANES),
                _mm512_set1_epi32(pair));
    }
    for (int v = 0; v < vectors; v++)
        _mm512_mask_storeu_epi32(out + v * LANES, (__mmask16)(mask >> v * LANES), sums[v]);
}

static void row(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, int32_t init,
                size_t n, int32_t *out)
{
    size_t j = 0;
    for (; n - j > LANES; j += n - j < VECTORS * LANES ? n - j : VECTORS * LANES)
        some(x + 2 * j, offsets, w, taps, init, n - j, VECTORS, out + j);
    if (j < n)
        some(x + 2 * j, offsets, w, taps, init, n - j, 1, out + j);
}

void dq_dwconv_rows_s8_avx512vnni(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                                  const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++)
        row(x + i * step, offsets, w, taps, init, n, out + i * n);
}

/* ---- 3×3 from bytes ----------------------------------------------------------------------------------- */

enum { SIDE = 3, PARTS = 2 /* int8 summands of a weight */ };

/* Loads four bytes for each of sixteen outputs: a row of its window, and one byte more. */
static inline __m512i windows_at(const uint8_t *x)
{
    const __m512i words = _mm512_setr_epi32(0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4);
    const __m512i bytes =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6));
    __m512i row = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)x));
    return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(words, row), bytes);
}

/* Adds a row of the windows. `parts` is constant in each call. */
static inline __attribute__((always_inline)) __m512i add(__m512i sum, __m512i windows, __m512i w[PARTS],
                                                         int parts)
{
    sum = _mm512_dpbusd_epi32(sum, windows, w[0]);
    return parts > 1 ? _mm512_dpbusd_epi32(sum, windows, w[1]) : sum;
}

/* Computes sixteen outputs of each row, or those in mask `some`. Each row of bytes is read once, for the
 * three output rows whose windows contain it. */
static inline __attribute__((always_inline)) void strip(const uint8_t *x, size_t step, size_t rows,
                                                        __m512i w[SIDE][PARTS], int parts, __m512i init,
                                                        __mmask16 some, size_t n, int32_t *out)
{
    __m512i row = windows_at(x), next_row = add(init, row, w[0], parts);
    row = windows_at(x + step);
    __m512i this_row = add(next_row, row, w[1], parts);
    next_row = add(init, row, w[0], parts);
    for (x += 2 * step; rows; rows--, x += step, out += n) {
        row = windows_at(x);
        _mm512_mask_storeu_epi32(out, some, add(this_row, row, w[2], parts));
        this_row = add(next_row, row, w[1], parts);
        next_row = add(init, row, w[0], parts);
    }
}

static inline __attribute__((always_inline)) void strips(const uint8_t *x, size_t step, size_t rows,
                                                         __m512i w[SIDE][PARTS], int parts, int32_t init,
                                                         size_t n, int32_t *out)
{
    for (size_t j = 0; j < n; j += LANES)
        strip(x + j, step, rows, w, parts, _mm512_set1_epi32(init),
              n - j < LANES ? (__mmask16)((1u << (n - j)) - 1) : (__mmask16)0xffff, n, out + j);
}

static void rows_of_bytes(const uint8_t *x, size_t step, size_t rows, const int16_t *w, int32_t init,
                          size_t n, int32_t *out)
{
    __m512i kept[SIDE][PARTS];
    bool left[PARTS];
    __m256i rest = _mm256_maskz_loadu_epi16(0xfff, w);
    for (int p = 0; p < PARTS; p++) {
        __m128i part = _mm256_cvtsepi16_epi8(rest);
        rest = _mm256_sub_epi16(rest, _mm256_cvtepi8_epi16(part));
        left[p] = _mm256_movemask_epi8(_mm256_cmpeq_epi16(rest, _mm256_setzero_si256())) != -1;
        for (int r = 0; r < SIDE; r++)
            kept[r][p] = _mm512_permutexvar_epi32(_mm512_set1_epi32(r), _mm512_castsi128_si512(part));
    }
    if (rows == 0)
        return;
    if (left[1]) /* a weight is above 254 in magnitude */
        dq_dwconv_3x3_s8_avx2.rows(x, step, rows, w, init, n, out);
    else if (left[0])
        strips(x, step, rows, kept, 2, init, n, out);
    else
        strips(x, step, rows, kept, 1, init, n, out);
}

const dq_dwconv_3x3_s8 dq_dwconv_3x3_s8_avx512vnni = {.least = 1, .rows = rows_of_bytes};
