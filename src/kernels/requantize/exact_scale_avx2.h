/* SPDX-License-Identifier: Apache-2.0 */
/* Requantizes accumulators with an exact scale: one fused float product, without a check for ties. The caller
 * takes only float scales for which this was proven equal to the exact product. Both functions are monotonic
 * in the sum, so they are equal for all sums if they are equal for the sums next to each half quantum. */
#ifndef DQ_KERNELS_EXACT_SCALE_AVX2_H
#define DQ_KERNELS_EXACT_SCALE_AVX2_H

#include "kernels/conv_nc4hw4/nc4hw4.h"

#include <immintrin.h>

/* Adding it to a float below 2^22 in magnitude leaves the rounded integer in the sum's low bits. */
#define EXACT_SCALE_MAGIC 12582912.0f

/* The shift of column 0; 0 if there is no float bias. */
static inline float exact_scale_shift(const dq_requantize_to *to)
{
    return to->bias.shift ? (float)to->bias.shift[0] : 0;
}

/* Products plus `shift` if `shifted` (a compile-time constant), rounded. */
static inline __attribute__((always_inline)) __m256i exact_scale_rounded(__m256 v, __m256 scale, __m256 shift,
                                                                         bool shifted)
{
    const __m256 magic = _mm256_set1_ps(EXACT_SCALE_MAGIC);
    return _mm256_castps_si256(shifted ? _mm256_add_ps(_mm256_fmadd_ps(v, scale, shift), magic)
                                       : _mm256_fmadd_ps(v, scale, magic));
}

/* Combines the low 16-bit halves of the lanes of `first` and `second`, which then alternate, and adds the
 * zero point. */
static inline __m256i exact_scale_halves(__m256i first, __m256i second, __m256i zero_point)
{
    return _mm256_adds_epi16(_mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa), zero_point);
}

#endif
