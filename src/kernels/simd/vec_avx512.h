/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of AVX-512, sixteen floats at a time, for the kernel templates (float_math.h explains the
 * names). */
#ifndef DQ_KERNELS_VEC_AVX512_H
#define DQ_KERNELS_VEC_AVX512_H

#include <immintrin.h>

enum { VF_LANES = 16, VD_LANES = 8, VF_HALVES = 2, VF_FUSED = 1 };
typedef __m512 vf;
typedef __m512i vi;
typedef __mmask16 vm;
typedef __m512d vd;

#define vf_load(p) _mm512_loadu_ps(p)
/* Finite float16 values as floats. */
#define vf_load_f16(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)(p)))
#define vf_store(p, a) _mm512_storeu_ps(p, a)
#define vf_set(a) _mm512_set1_ps(a)
/* Masked load and store of the first n lanes, n < VF_LANES. */
#define vf_load_first(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p)
#define vf_store_first(p, n, a) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), a)
/* The first n lanes of p, n < VF_LANES, and the other lanes of a. */
#define vf_load_first_or(p, n, a) _mm512_mask_loadu_ps(a, (__mmask16)((1u << (n)) - 1), p)
#define vf_add(a, b) _mm512_add_ps(a, b)
#define vf_sub(a, b) _mm512_sub_ps(a, b)
#define vf_mul(a, b) _mm512_mul_ps(a, b)
#define vf_div(a, b) _mm512_div_ps(a, b)
#define vf_fma(a, b, c) _mm512_fmadd_ps(a, b, c)
#ifndef DQ_SIMDE /* with SIMDe a vector may be an array */
/* sum += a * b in the sum's register, for tiles whose sums fill nearly all registers. */
#define vf_fma_tall(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#endif
#define vf_fma_less(a, b, c) _mm512_fmsub_ps(a, b, c)  /* a * b - c */
#define vf_less_fma(c, a, b) _mm512_fnmadd_ps(a, b, c) /* c - a * b */
#define vf_sqrt(a) _mm512_sqrt_ps(a)
#define vf_floor(a) _mm512_roundscale_ps(a, (_MM_FROUND_FLOOR | _MM_FROUND_NO_EXC))
#define vf_round(a) _mm512_roundscale_ps(a, (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define vf_min(a, b) _mm512_min_ps(a, b)
#define vf_max(a, b) _mm512_max_ps(a, b)
#define vf_less(a, b) _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ)
#define vf_unordered(a, b) _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)
#define vm_all(m) ((m) == 0xffff)
#define vf_pick(m, a, b) _mm512_mask_blend_ps(m, b, a)
#define vf_bits(a) _mm512_castps_si512(a)
#define vi_float(a) _mm512_castsi512_ps(a)
#define vi_to_float(a) _mm512_cvtepi32_ps(a)
#define vi_set(a) _mm512_set1_epi32((int)(a))
#define vi_add(a, b) _mm512_add_epi32(a, b)
#define vi_add_16(a, b) _mm512_add_epi16(a, b)
#define vi_sub(a, b) _mm512_sub_epi32(a, b)
#define vi_and(a, b) _mm512_and_si512(a, b)
#define vi_xor(a, b) _mm512_xor_si512(a, b)
#define vi_mul(a, b) _mm512_mullo_epi32(a, b)
#define vi_load(p) _mm512_loadu_si512(p)
#define vi_store(p, a) _mm512_storeu_si512(p, a)
#define vf_nearest(a) _mm512_cvtps_epi32(a) /* to the nearest integer, ties to even */
#define vi_left(a, n) _mm512_slli_epi32(a, n)
#define vi_right(a, n) _mm512_srli_epi32(a, n)  /* logical shift */
#define vi_odd_bytes(a) _mm512_srli_epi16(a, 8) /* in each half of a 32-bit lane */
/* Sums of adjacent elements: products of uint8 with int8, as int16 (they must fit); int16, as int32. */
#define vi_pairs_8(a, b) _mm512_maddubs_epi16(a, b)
#define vi_pairs_16(a) _mm512_madd_epi16(a, _mm512_set1_epi16(1))
#define vi_dot_16(a, b) _mm512_madd_epi16(a, b) /* sums of two adjacent int16 products */
#define vi_left_23(a) _mm512_slli_epi32(a, 23)
#define vi_right_1(a) _mm512_srai_epi32(a, 1)
#define vi_right_23(a) _mm512_srai_epi32(a, 23)
#define vd_zero() _mm512_setzero_pd()
#define vf_half(a, half) _mm512_cvtps_pd((half) ? _mm512_extractf32x8_ps(a, 1) : _mm512_castps512_ps256(a))
#define vd_add(a, b) _mm512_add_pd(a, b)
#define vd_fma(a, b, c) _mm512_fmadd_pd(a, b, c)
#define vd_load(p) _mm512_loadu_pd(p)
#define vd_load_floats(p) _mm512_cvtps_pd(_mm256_loadu_ps(p))
#define vd_store(p, a) _mm512_storeu_pd(p, a)
#define vd_set(a) _mm512_set1_pd(a)
#define vd_mul(a, b) _mm512_mul_pd(a, b)
#define vd_sqrt(a) _mm512_sqrt_pd(a)
#define vd_store_floats(p, a) _mm256_storeu_ps(p, _mm512_cvtpd_ps(a))
/* vf_rotate: lane l gets lane l ^ h; vf_first: the first lane. */
#define vf_rotate(a, h)                                                                                      \
    vi_float((h) == 8   ? _mm512_shuffle_i32x4(vf_bits(a), vf_bits(a), 0x4e)                                 \
             : (h) == 4 ? _mm512_shuffle_i32x4(vf_bits(a), vf_bits(a), 0xb1)                                 \
             : (h) == 2 ? vf_bits(_mm512_shuffle_ps(a, a, 0x4e))                                             \
                        : vf_bits(_mm512_shuffle_ps(a, a, 0xb1)))
#define vf_first(a) _mm_cvtss_f32(_mm512_castps512_ps128(a))
#define vd_rotate(a, h)                                                                                      \
    _mm512_castps_pd(vf_rotate(_mm512_castpd_ps(a), 2 * (h))) /* a double is two float lanes */
#define vd_first(a) _mm_cvtsd_f64(_mm512_castpd512_pd128(a))
/* Whether a lane is zero or of a magnitude in [2^-100, 2^100). */
static inline vm vf_ordinary(vf a)
{
    const __m512i size = _mm512_and_si512(_mm512_castps_si512(a), _mm512_set1_epi32(0x7fffffff));
    const __m512i least = _mm512_set1_epi32((127 - 100) << 23), range = _mm512_set1_epi32((200 << 23) - 1);
    return (vm)(_mm512_cmple_epu32_mask(_mm512_sub_epi32(size, least), range) |
                _mm512_testn_epi32_mask(size, size));
}
#define vf_ordinary vf_ordinary
/* Stores the first n lanes and writes nothing after them. */
#define vf_store_some(p, n, a) _mm512_mask_storeu_ps(p, (__mmask16)((1u << (n)) - 1), a)
#define vf_load_some(p, n) _mm512_maskz_loadu_ps((__mmask16)((1u << (n)) - 1), p)
/* Every second element. Floats after the last of them are not read. */
static inline vf vf_evens(vf low, vf high)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    return _mm512_permutex2var_ps(low, even, high);
}
static inline vf vf_load_even(const float *p)
{
    return vf_evens(vf_load(p), vf_load(p + VF_LANES - 1));
}
static inline vf vf_load_even_some(const float *p, size_t n)
{
    const __mmask32 lanes_mask = (1u << (2 * n - 1)) - 1;
    return vf_evens(_mm512_maskz_loadu_ps((__mmask16)lanes_mask, p),
                    _mm512_maskz_loadu_ps((__mmask16)(lanes_mask >> (VF_LANES - 1)), p + VF_LANES - 1));
}
static inline vd vd_load_even(const double *p)
{
    return _mm512_permutex2var_pd(vd_load(p), _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14),
                                  vd_load(p + VD_LANES));
}

#endif
