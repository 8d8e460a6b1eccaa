/* SPDX-License-Identifier: Apache-2.0 */
/* Codes of sums by a product of floats with nothing to check: only floats are taken for which it was seen to
 * give what the exact product gives. Both only grow with the sum, and so are the same for all sums when
 * they are for those beside each half quantum. */
#ifndef DQ_KERNELS_EXACT_SCALE_AVX2_H
#define DQ_KERNELS_EXACT_SCALE_AVX2_H

#include "kernels/conv_nc4hw4/nc4hw4.h"

#include <immintrin.h>

/* Added to and taken from a float of less than 2^22, this rounds to a whole number: the lower bits. */
#define EXACT_SCALE_MAGIC 12582912.0f

/* The shift of column 0; 0: there is none. */
static inline float exact_scale_shift(const dq_requantize_to *to)
{
    return to->bias.shift ? (float)to->bias.shift[0] : 0;
}

/* `shifted`, constant in each call: a shift that is not 0 is added to the products first. */
static inline __attribute__((always_inline)) __m256i exact_scale_rounded(__m256 v, __m256 scale, __m256 shift,
                                                                         bool shifted)
{
    const __m256 magic = _mm256_set1_ps(EXACT_SCALE_MAGIC);
    return _mm256_castps_si256(shifted ? _mm256_add_ps(_mm256_fmadd_ps(v, scale, shift), magic)
                                       : _mm256_fmadd_ps(v, scale, magic));
}

/* The lower halves of both hold results: those of the second go into the upper halves of the first. */
static inline __m256i exact_scale_halves(__m256i first, __m256i second, __m256i zero_point)
{
    return _mm256_adds_epi16(_mm256_blend_epi16(first, _mm256_slli_epi32(second, 16), 0xaa), zero_point);
}

#endif
