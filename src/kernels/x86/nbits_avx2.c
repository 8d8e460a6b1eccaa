/* Codes of four bits stand in the bytes of a word: masked, they are what vpmaddubsw multiplies with digits of
 * x, whose pairs of products, at most 2 * 15 * 128 in size, are small enough for eight of them to be summed
 * in 16 bits. Two vectors of columns with three sums each. */
#include "kernels/kernels.h"
#include "kernels/x86/accumulate_avx2.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

enum { LANES = 8, COLS = DQ_NBITS_COLS, VECTORS = 2, DIGITS = DQ_NBITS_DIGITS };
#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

ALWAYS_INLINE __m256i four_digits(const int8_t *p)
{
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm256_set1_epi32(bytes);
}

/* Sums of two vectors of columns, of codes' bits `shift` … `shift` + `bits` - 1; `parts`, `bits` and `shift`
 * are constants in each call. */
ALWAYS_INLINE void piece(const uint32_t *words, size_t count, int parts, int bits, int shift,
                         const int8_t *digits, __m256i sum[VECTORS][DIGITS])
{
    const __m256i mask = _mm256_set1_epi8((char)((1 << bits) - 1)), ones = _mm256_set1_epi16(1);
    for (int v = 0; v < VECTORS; v++)
        for (int e = 0; e < DIGITS; e++)
            sum[v][e] = _mm256_setzero_si256();
    for (; count > 0; count--, words += COLS) {
#pragma GCC unroll 4
        for (int part = 0; part < parts; part++, digits += 4 * DIGITS) {
            __m256i d[DIGITS];
            for (int e = 0; e < DIGITS; e++)
                d[e] = four_digits(digits + 4 * e);
            for (int v = 0; v < VECTORS; v++) {
                __m256i in_place = _mm256_srli_epi32(load(words + v * LANES), part * bits + shift);
                __m256i codes = _mm256_and_si256(in_place, mask);
                for (int e = 0; e < DIGITS; e++)
                    add_now(&sum[v][e], _mm256_maddubs_epi16(codes, d[e]));
            }
        }
    }
    for (int v = 0; v < VECTORS; v++)
        for (int e = 0; e < DIGITS; e++)
            sum[v][e] = _mm256_madd_epi16(sum[v][e], ones);
}

/* A piece of all columns. */
ALWAYS_INLINE void columns(const dq_nbits *b, int bits, size_t block, const uint32_t *words, size_t count,
                           const int8_t *digits, float factor, const float *sums, float *y)
{
    const __m256 f[DIGITS] = {_mm256_set1_ps(factor), _mm256_set1_ps(256 * factor),
                              _mm256_set1_ps(65536 * factor)};
    for (size_t at = 0; at < COLS; at += VECTORS * LANES) {
        __m256i sum[VECTORS][DIGITS], upper[VECTORS][DIGITS];
        piece(words + at, count, 8 / bits, bits == 8 ? 4 : bits, 0, digits, sum);
        if (bits == 8)
            piece(words + at, count, 1, 4, 4, digits, upper);
        for (int v = 0; v < VECTORS; v++) {
            size_t j = at + (size_t)(v * LANES);
            __m256 zero = b->zeros ? _mm256_loadu_ps(b->zeros + block * COLS + j) : _mm256_set1_ps(b->middle);
            __m256 t[DIGITS];
            for (int e = 0; e < DIGITS; e++) {
                if (bits == 8)
                    sum[v][e] = _mm256_add_epi32(sum[v][e], _mm256_slli_epi32(upper[v][e], 4));
                t[e] = _mm256_fnmadd_ps(zero, _mm256_set1_ps(sums[e]), _mm256_cvtepi32_ps(sum[v][e]));
            }
            __m256 value =
                _mm256_fmadd_ps(t[2], f[2], _mm256_fmadd_ps(t[1], f[1], _mm256_mul_ps(t[0], f[0])));
            __m256 scale = _mm256_loadu_ps(b->scales + block * COLS + j);
            _mm256_storeu_ps(y + j, _mm256_fmadd_ps(scale, value, _mm256_loadu_ps(y + j)));
        }
    }
}

ALWAYS_INLINE void strip(const dq_nbits *b, int bits, const dq_nbits_row *x, float *y)
{
    const size_t most = (size_t)(DQ_NBITS_PIECE * bits / 32);
    const uint32_t *words = b->words;
    const int8_t *digits = x->digits;
    memset(y, 0, COLS * sizeof *y);
    for (size_t g = 0, p = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; p++) {
            n = left < most ? left : most;
            columns(b, bits, g, words, n, digits, fabsf(x->factors[p]), x->sums + p * DIGITS, y);
            digits += n * (size_t)(8 / bits) * 4 * DIGITS;
            if (x->factors[p] < 0)
                continue;
            words += n * COLS;
            left -= n;
        }
}

void dq_nbits_avx2(const dq_nbits *b, const dq_nbits_row *x, float *y)
{
    if (b->bits == 4)
        strip(b, 4, x, y);
    else if (b->bits == 8)
        strip(b, 8, x, y);
    else
        strip(b, 2, x, y);
}

/* ---- Weights as floats -------------------------------------------------------------------------------- */

ALWAYS_INLINE __m256 looked_up(const float *table, __m256i codes)
{
    __m256 below = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), codes);
    __m256 above = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + LANES), codes);
    return _mm256_blendv_ps(below, above, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
}

/* `bits` is a constant in each call, 0 for a table. */
ALWAYS_INLINE void as_floats(const dq_nbits *b, int bits, size_t block, size_t first, size_t count,
                             float *out, size_t panel)
{
    const int each = bits ? bits : 4;
    const __m256i mask = _mm256_set1_epi32((1 << each) - 1);
    for (size_t at = 0; at < COLS; at += LANES) {
        const uint32_t *words = b->words + first * COLS + at;
        float *to = out + at / DQ_FPANEL * panel + at % DQ_FPANEL;
        __m256 scale = _mm256_loadu_ps(b->scales + block * COLS + at);
        __m256 zero = b->zeros ? _mm256_loadu_ps(b->zeros + block * COLS + at) : _mm256_set1_ps(b->middle);
        for (size_t n = 0; n < count; n++, words += COLS) {
            __m256i word = load(words);
#pragma GCC unroll 16
            for (int t = 0; t < 32; t += each, to += DQ_FPANEL) {
                __m256i codes = _mm256_and_si256(_mm256_srli_epi32(word, t), mask);
                __m256 value = bits ? _mm256_cvtepi32_ps(codes) : looked_up(b->table, codes);
                _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_sub_ps(value, zero), scale));
            }
        }
    }
}

void dq_nbits_floats_avx2(const dq_nbits *b, size_t block, size_t first, size_t count, float *out,
                          size_t panel)
{
    if (b->table)
        as_floats(b, 0, block, first, count, out, panel);
    else if (b->bits == 4)
        as_floats(b, 4, block, first, count, out, panel);
    else if (b->bits == 8)
        as_floats(b, 8, block, first, count, out, panel);
    else
        as_floats(b, 2, block, first, count, out, panel);
}
