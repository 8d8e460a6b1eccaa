/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit accumulators in registers. */
#ifndef DQ_KERNELS_ACCUMULATE_AVX2_H
#define DQ_KERNELS_ACCUMULATE_AVX2_H

#include <immintrin.h>

/* *sum += term, in source order. Compilers that reassociate sums of many terms add the terms first and run
 * out of registers. */
static inline __attribute__((always_inline)) void add_now(__m256i *sum, __m256i term)
{
    *sum = _mm256_add_epi16(*sum, term);
#ifndef DQ_SIMDE /* SIMDe may represent a vector as an array */
    __asm__("" : "+x"(*sum));
#endif
}

#endif
