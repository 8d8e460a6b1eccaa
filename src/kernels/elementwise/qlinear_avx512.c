/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_avx512.h"

#include <stdint.h>

#define ISA(name) name##_avx512
#define vf_nearest(a) _mm512_cvtps_epi32(a)

#define sixteen_at(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define floats_u8(p) vi_to_float(_mm512_cvtepu8_epi32(sixteen_at(p)))
#define floats_s8(p) vi_to_float(_mm512_cvtepi8_epi32(sixteen_at(p)))

/* Restores the order of elements: the pack instructions work within each quarter of a register. */
static inline vi in_order(vi v)
{
    return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                    v);
}

#define bytes_u8(v)                                                                                          \
    in_order(_mm512_packus_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3])))
#define bytes_s8(v)                                                                                          \
    in_order(_mm512_packs_epi16(_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3])))

#include "kernels/elementwise/qlinear_body.h"
