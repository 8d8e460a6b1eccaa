/* A code becomes a float without leaving its place in the word: a mask and a conversion, three instructions
 * with the multiplication for eight weights. Eight vectors of sums, as many as the fused multiply-adds take
 * to be done twice a cycle: 64 columns of a row, 32 of two, 16 of three or four. */
#include "kernels/kernels.h"

#include <immintrin.h>

enum { LANES = 8, COLS = DQ_NBITS_COLS, SUMS = 8 };
#define ALWAYS_INLINE static inline __attribute__((always_inline))

#define EIGHT(x)                                                                                             \
    {                                                                                                        \
        x, x, x, x, x, x, x, x                                                                               \
    }
static const uint32_t masks4[][LANES] = {EIGHT(0xf),     EIGHT(0xf0),     EIGHT(0xf00),    EIGHT(0xf000),
                                         EIGHT(0xf0000), EIGHT(0xf00000), EIGHT(0xf000000)};
static const uint32_t masks8[][LANES] = {EIGHT(0xff), EIGHT(0xff00), EIGHT(0xff0000)};
static const uint32_t masks2[][LANES] = {
    EIGHT(0x3),      EIGHT(0xc),      EIGHT(0x30),      EIGHT(0xc0),      EIGHT(0x300),
    EIGHT(0xc00),    EIGHT(0x3000),   EIGHT(0xc000),    EIGHT(0x30000),   EIGHT(0xc0000),
    EIGHT(0x300000), EIGHT(0xc00000), EIGHT(0x3000000), EIGHT(0xc000000), EIGHT(0x30000000)};

ALWAYS_INLINE __m256i load(const uint32_t *words)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)words);
}

/* One field of N vectors of columns, with R rows. */
ALWAYS_INLINE void field(const uint32_t *w, const uint32_t *mask, const float *x, int r_count, int n,
                         __m256 *s)
{
    __m256i m = load(mask);
    for (int v = 0; v < n; v++) {
        __m256 code = _mm256_cvtepi32_ps(_mm256_and_si256(load(w + v * LANES), m));
        for (int r = 0; r < r_count; r++)
            s[r * n + v] = _mm256_fmadd_ps(code, _mm256_broadcast_ss(x + r), s[r * n + v]);
    }
}

ALWAYS_INLINE void last_field(const uint32_t *w, int bits, const float *x, int r_count, int n, __m256 *s)
{
    for (int v = 0; v < n; v++) {
        __m256 code = _mm256_cvtepi32_ps(_mm256_srli_epi32(load(w + v * LANES), 32 - bits));
        for (int r = 0; r < r_count; r++)
            s[r * n + v] = _mm256_fmadd_ps(code, _mm256_broadcast_ss(x + r), s[r * n + v]);
    }
}

ALWAYS_INLINE void word(const uint32_t *w, int bits, const float *x, int r_count, int n, __m256 *s)
{
    const int last = 32 / bits - 1;
    if (bits == 8)
#pragma GCC unroll 3
        for (int t = 0; t < 3; t++)
            field(w, masks8[t], x + t * r_count, r_count, n, s);
    else if (r_count == 1 && bits == 4)
#pragma GCC unroll 7
        for (int t = 0; t < 7; t++)
            field(w, masks4[t], x + t, 1, n, s);
    else /* unrolled, it would keep all masks in registers and the sums in memory */
#pragma GCC unroll 1
        for (int t = 0; t < last; t++)
            field(w, bits == 4 ? masks4[t] : masks2[t], x + t * r_count, r_count, n, s);
    last_field(w, bits, x + last * r_count, r_count, n, s);
}

ALWAYS_INLINE void table_word(const uint32_t *w, const float *table, const float *x, int r_count, int n,
                              __m256 *s)
{
    __m256 low = _mm256_loadu_ps(table), high = _mm256_loadu_ps(table + LANES);
    for (int v = 0; v < n; v++) {
        __m256i codes = load(w + v * LANES);
        const float *from = x;
#pragma GCC unroll 1
        for (int t = 0; t < 8; t++, from += r_count, codes = _mm256_srli_epi32(codes, 4)) {
            __m256 above = _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)); /* code > 7: the sign */
            __m256 code = _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, codes),
                                           _mm256_permutevar8x32_ps(high, codes), above);
            for (int r = 0; r < r_count; r++)
                s[r * n + v] = _mm256_fmadd_ps(code, _mm256_broadcast_ss(from + r), s[r * n + v]);
        }
    }
}

/* Columns from `at` on, N vectors of them; bits 0 stands for a table. */
ALWAYS_INLINE void part(const dq_nbits *b, size_t at, int bits, const float *x, const float *sums,
                        int r_count, int n, float *y)
{
    const uint32_t *w = b->words + at;
    const float *scale = b->scales + at;
    y += at;
    for (int i = 0; i < r_count * n; i++)
        _mm256_storeu_ps(y + i / n * COLS + i % n * LANES, _mm256_setzero_ps());
    for (size_t g = 0; g < b->blocks; g++, scale += COLS, sums += r_count) {
        __m256 s[SUMS];
        for (int i = 0; i < r_count * n; i++)
            s[i] = _mm256_setzero_ps();
        for (size_t c = b->lengths[g]; c > 0; c--, w += COLS, x += (bits ? 32 / bits : 8) * r_count) {
            if (bits)
                word(w, bits, x, r_count, n, s);
            else
                table_word(w, b->table, x, r_count, n, s);
        }
        for (int v = 0; v < n; v++) {
            __m256 k = _mm256_loadu_ps(scale + v * LANES);
            __m256 zero = b->zeros ? _mm256_loadu_ps(b->zeros + g * COLS + at + (size_t)v * LANES)
                                   : _mm256_set1_ps(b->middle);
            for (int r = 0; r < r_count; r++) {
                float *to = y + r * COLS + v * LANES;
                __m256 sum = _mm256_fnmadd_ps(zero, _mm256_broadcast_ss(sums + r), s[r * n + v]);
                _mm256_storeu_ps(to, _mm256_fmadd_ps(k, sum, _mm256_loadu_ps(to)));
            }
        }
    }
}

#define STRIP(name, bits)                                                                                    \
    static void name(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y)            \
    {                                                                                                        \
        size_t step = rows == 1 ? COLS : rows == 2 ? COLS / 2 : COLS / 4;                                    \
        for (size_t at = 0; at < COLS; at += step) {                                                         \
            if (rows == 1)                                                                                   \
                part(b, at, bits, x, sums, 1, 8, y);                                                         \
            else if (rows == 2)                                                                              \
                part(b, at, bits, x, sums, 2, 4, y);                                                         \
            else if (rows == 3)                                                                              \
                part(b, at, bits, x, sums, 3, 2, y);                                                         \
            else                                                                                             \
                part(b, at, bits, x, sums, 4, 2, y);                                                         \
        }                                                                                                    \
    }

STRIP(strip2, 2)
STRIP(strip4, 4)
STRIP(strip8, 8)
STRIP(strip_table, 0)

void dq_nbits_avx2(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y)
{
    if (b->table)
        strip_table(b, x, sums, rows, y);
    else if (b->bits == 4)
        strip4(b, x, sums, rows, y);
    else if (b->bits == 8)
        strip8(b, x, sums, rows, y);
    else
        strip2(b, x, sums, rows, y);
}
