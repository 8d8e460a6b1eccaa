/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of SSE4.1, four floats at a time, for the kernel templates (float_math.h explains the
 * names). */
#ifndef DQ_KERNELS_VEC_SSE41_H
#define DQ_KERNELS_VEC_SSE41_H

#include "kernels/requantize/fused_sse41.h"

#include <stdint.h>

enum { VF_LANES = 4, VD_LANES = 2, VF_HALVES = 2, VF_FUSED = 0 };
typedef __m128 vf;
typedef __m128i vi;
typedef __m128 vm;
typedef __m128d vd;

/* Not inlined: it has 60 instructions, and most functions use it a dozen times. */
static __attribute__((noinline, unused)) vf vf_fma(vf a, vf b, vf c)
{
    return dq_fused_sse41(a, b, c);
}

#define vf_load(p) _mm_loadu_ps(p)
/* Finite float16 values as floats: their bits at the place of a float's are the value times 2^-112. */
static inline vf vf_load_f16(const uint16_t *p)
{
    const __m128i half = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    const __m128i magnitude = _mm_slli_epi32(_mm_and_si128(half, _mm_set1_epi32(0x7fff)), 13);
    const __m128i sign = _mm_slli_epi32(_mm_and_si128(half, _mm_set1_epi32(0x8000)), 16);
    return _mm_or_ps(_mm_mul_ps(_mm_castsi128_ps(magnitude), _mm_set1_ps(0x1p112f)), _mm_castsi128_ps(sign));
}
#define vf_store(p, a) _mm_storeu_ps(p, a)
#define vf_set(a) _mm_set1_ps(a)
#define vf_add(a, b) _mm_add_ps(a, b)
#define vf_sub(a, b) _mm_sub_ps(a, b)
#define vf_mul(a, b) _mm_mul_ps(a, b)
#define vf_div(a, b) _mm_div_ps(a, b)
#define vf_sqrt(a) _mm_sqrt_ps(a)
#define vf_floor(a) _mm_round_ps(a, (_MM_FROUND_FLOOR | _MM_FROUND_NO_EXC))
#define vf_round(a) _mm_round_ps(a, (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define vf_min(a, b) _mm_min_ps(a, b)
#define vf_max(a, b) _mm_max_ps(a, b)
#define vf_less(a, b) _mm_cmplt_ps(a, b)
#define vf_unordered(a, b) _mm_cmpunord_ps(a, b)
#define vm_all(m) (_mm_movemask_ps(m) == 0xf)
#define vf_pick(m, a, b) _mm_blendv_ps(b, a, m)
#define vf_bits(a) _mm_castps_si128(a)
#define vi_float(a) _mm_castsi128_ps(a)
#define vi_to_float(a) _mm_cvtepi32_ps(a)
#define vi_set(a) _mm_set1_epi32((int)(a))
#define vi_add(a, b) _mm_add_epi32(a, b)
#define vi_add_16(a, b) _mm_add_epi16(a, b)
#define vi_sub_16(a, b) _mm_sub_epi16(a, b)
#define vi_words(p)                                                                                          \
    _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)(p))) /* uint8 as 16 bits */
#define vi_sub(a, b) _mm_sub_epi32(a, b)
#define vi_and(a, b) _mm_and_si128(a, b)
#define vi_xor(a, b) _mm_xor_si128(a, b)
#define vi_mul(a, b) _mm_mullo_epi32(a, b)
#define vi_load(p) _mm_loadu_si128((const __m128i *)(const void *)(p))
#define vi_store(p, a) _mm_storeu_si128((__m128i *)(void *)(p), a)
/* Rounds to nearest, ties to even. vf_bound clamps a to [low, high]; NaN gives low. */
#define vf_nearest(a) _mm_cvtps_epi32(a)
#define vf_bound(a, low, high) vf_min(vf_max(a, low), high)
#define vi_left(a, n) _mm_slli_epi32(a, n)
#define vi_right(a, n) _mm_srli_epi32(a, n)  /* logical shift */
#define vi_odd_bytes(a) _mm_srli_epi16(a, 8) /* in each half of a 32-bit lane */
/* Sums of adjacent elements: products of uint8 with int8, as int16 (they must fit); int16, as int32. */
#define vi_pairs_8(a, b) _mm_maddubs_epi16(a, b)
#define vi_pairs_16(a) _mm_madd_epi16(a, _mm_set1_epi16(1))
/* Sums of two adjacent int16 products. */
#define vi_dot_16(a, b) _mm_madd_epi16(a, b)
#define vi_signed_words(p)                                                                                   \
    _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)(const void *)(p))) /* int8 as 16 bits */
#define vi_zip_low(a, b) _mm_unpacklo_epi32(a, b)
#define vi_zip_high(a, b) _mm_unpackhi_epi32(a, b)
#define vi_left_23(a) _mm_slli_epi32(a, 23)
#define vi_quarter(a) _mm_srai_epi32(a, 2)
#define vi_right_1(a) _mm_srai_epi32(a, 1)
#define vi_right_23(a) _mm_srai_epi32(a, 23)
#define vd_zero() _mm_setzero_pd()
#define vf_half(a, half) _mm_cvtps_pd((half) ? _mm_movehl_ps(a, a) : (a))
#define vd_add(a, b) _mm_add_pd(a, b)
/* Not fused, but exact: in all uses a and b are floats, whose product is exact in double. */
#define vd_fma(a, b, c) _mm_add_pd(_mm_mul_pd(a, b), c)
#define vd_load(p) _mm_loadu_pd(p)
#define vd_load_floats(p) _mm_cvtps_pd(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(const void *)(p)))
#define vd_store(p, a) _mm_storeu_pd(p, a)
#define vd_set(a) _mm_set1_pd(a)
#define vd_mul(a, b) _mm_mul_pd(a, b)
#define vd_sqrt(a) _mm_sqrt_pd(a)
#define vd_store_floats(p, a) _mm_storel_pi((__m64 *)(void *)(p), _mm_cvtpd_ps(a))
/* vf_rotate: lane l gets lane l ^ h; vf_first: the first lane. */
#define vf_rotate(a, h) ((h) == 2 ? _mm_shuffle_ps(a, a, 0x4e) : _mm_shuffle_ps(a, a, 0xb1))
#define vf_first(a) _mm_cvtss_f32(a)
#define vd_rotate(a, h) _mm_shuffle_pd(a, a, 1)
#define vd_first(a) _mm_cvtsd_f64(a)
/* Every second element. Floats after the last of them are not read. */
#define vf_load_even(p) _mm_shuffle_ps(vf_load(p), vf_load((p) + VF_LANES - 1), 0xd8)
#define vd_load_even(p) _mm_unpacklo_pd(vd_load(p), vd_load((p) + VD_LANES))

#endif
