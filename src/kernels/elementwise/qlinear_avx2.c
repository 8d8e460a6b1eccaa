/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx2.h"

#include <stdint.h>

#define ISA(name) name##_avx2
#define vf_nearest(a) _mm256_cvtps_epi32(a)

#define eight_at(p) _mm_loadl_epi64((const __m128i *)(const void *)(p))
#define floats_u8(p) vi_to_float(_mm256_cvtepu8_epi32(eight_at(p)))
#define floats_s8(p) vi_to_float(_mm256_cvtepi8_epi32(eight_at(p)))

/* Restores the order of elements: the pack instructions work within each half of a register. */
static inline vi in_order(vi v)
{
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

#define bytes_u8(v)                                                                                          \
    in_order(_mm256_packus_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])))
#define bytes_s8(v)                                                                                          \
    in_order(_mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3])))

#include "kernels/elementwise/qlinear_body.h"
