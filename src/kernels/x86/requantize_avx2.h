/* Sums to 8 bits on AVX2: what rows, tiles and convolutions to codes share.
 *
 * Fused float products decide nearly all roundings. The sum r = acc * scale + (768.5 + 2^-13) is taken times
 * 2^-75, so that its bits, an integer, count steps of 2^-14 from below where |acc * scale| is under 256: bits
 * 14 and up are then the rounded product and a constant, which fits in 16 bits (that is what the power of two
 * is for), and the lower 14 say how far it was from the next half quantum. acc and scale are each off by at
 * most 2^-24 of their size and r by half a step, one step in all, so that the result is sure unless fewer
 * than four steps are left; those few are done in double. From 256 on all results saturate, whatever the zero
 * point, and bits of floats go up with them (those of negative ones are negative). */
#ifndef DQ_KERNELS_X86_REQUANTIZE_AVX2_H
#define DQ_KERNELS_X86_REQUANTIZE_AVX2_H

#include "kernels/kernels.h"

#include <float.h>
#include <immintrin.h>

/* dq_requantize_fn, all in double. */
void dq_requantize_exact_avx2(const int32_t *acc, size_t n, const double *scale, size_t scale_step,
                              int32_t zero_point, int32_t lo, int32_t hi, uint8_t *out);

enum { FRACTION = 14, UNSURE = 3, MIDDLE = (61 << 9) + 256 /* bits 14 and up of 768 * 2^-75 */ };

/* What stays the same from row to row. Codes are made as if `lo` were 0, and flipped at the end. */
typedef struct fixed {
    __m256i below, flip; /* what is taken from bits 14 and up */
} fixed;

static inline fixed fix(int32_t zero_point, int32_t lo)
{
    return (fixed){_mm256_set1_epi16((int16_t)(uint16_t)(MIDDLE - (zero_point - lo))),
                   _mm256_set1_epi8((char)lo)};
}

/* `least`: the smallest fraction so far. */
static inline bool sure(__m256i least)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(least, _mm256_set1_epi32(UNSURE))) == -1;
}

/* Bits 14 and up for eight sums; the scale is finite, and times 2^-75. */
static inline __m256i bits_of(__m256 sums, __m256 scale, __m256i *least)
{
    const __m256 middle = _mm256_set1_ps((768.5f + 0x1p-13f) * 0x1p-75f);
    __m256i bits = _mm256_castps_si256(_mm256_fmadd_ps(sums, scale, middle));
    *least = _mm256_min_epi32(*least, _mm256_and_si256(bits, _mm256_set1_epi32((1 << FRACTION) - 1)));
    return _mm256_srai_epi32(bits, FRACTION);
}

static inline __m256i no_fraction(void)
{
    return _mm256_set1_epi32(1 << FRACTION);
}

/* 32 codes from four times eight: of each four first those, then, in the upper half, the others. */
static inline __m256i codes_of(const __m256i v[4], const fixed *f)
{
    __m256i first = _mm256_subs_epu16(_mm256_packus_epi32(v[0], v[1]), f->below);
    __m256i second = _mm256_subs_epu16(_mm256_packus_epi32(v[2], v[3]), f->below);
    return _mm256_xor_si256(_mm256_packus_epi16(first, second), f->flip);
}

static inline bool all_finite(__m256 s)
{
    __m256 size = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), s);
    return _mm256_movemask_ps(_mm256_cmp_ps(size, _mm256_set1_ps(FLT_MAX), _CMP_LE_OQ)) == 0xff;
}

#endif
