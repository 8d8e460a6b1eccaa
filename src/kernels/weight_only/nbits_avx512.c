/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with AVX-512 without VNNI, by pairwise multiplication of bytes (nbits_pairs.h). */
#include "kernels/simd/vec_avx512.h"

#define ISA(name) name##_avx512
enum { WHOLE = 1, LOOKS_UP = 1 };

/* Adds in source order: see accumulate_avx2.h. */
static inline void add_now(vi *sum, vi term)
{
    *sum = _mm512_add_epi16(*sum, term);
#ifndef DQ_SIMDE /* SIMDe may represent a vector as an array */
    __asm__("" : "+v"(*sum));
#endif
}

#include "kernels/weight_only/nbits_pairs.h"

#include "kernels/weight_only/nbits_body.h"

typedef vf lookup;
#define lookup_of(table) vf_load(table)

ALWAYS_INLINE void look_up(const lookup *table, vi word, int each, vf *value)
{
#pragma GCC unroll 16
    for (int t = 0; t < 32 / each; t++)
        value[t] = _mm512_permutexvar_ps(vi_right(word, t * each), *table);
}

#include "kernels/weight_only/nbits_floats_body.h"
