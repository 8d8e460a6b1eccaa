/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of AVX2, eight floats at a time, for the kernel templates (float_math.h explains the
 * names). */
#ifndef DQ_KERNELS_VEC_AVX2_H
#define DQ_KERNELS_VEC_AVX2_H

#include <immintrin.h>

enum { VF_LANES = 8, VD_LANES = 4, VF_HALVES = 2, VF_FUSED = 1 };
typedef __m256 vf;
typedef __m256i vi;
typedef __m256 vm;
typedef __m256d vd;

#define vf_load(p) _mm256_loadu_ps(p)
/* Finite float16 values as floats. */
#define vf_load_f16(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p)))
#define vf_store(p, a) _mm256_storeu_ps(p, a)
#define vf_set(a) _mm256_set1_ps(a)
/* Masked load and store of the first n lanes, n < VF_LANES. */
#define vi_first(n) _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))
#define vf_load_first(p, n) _mm256_maskload_ps(p, vi_first(n))
#define vf_store_first(p, n, a) _mm256_maskstore_ps(p, vi_first(n), a)
/* The first n lanes of p, n < VF_LANES, and the other lanes of a. */
#define vf_load_first_or(p, n, a) _mm256_blendv_ps(a, vf_load_first(p, n), vi_float(vi_first(n)))
#define vf_add(a, b) _mm256_add_ps(a, b)
#define vf_sub(a, b) _mm256_sub_ps(a, b)
#define vf_mul(a, b) _mm256_mul_ps(a, b)
#define vf_div(a, b) _mm256_div_ps(a, b)
#define vf_fma(a, b, c) _mm256_fmadd_ps(a, b, c)
#ifndef DQ_SIMDE /* with SIMDe a vector may be an array */
/* sum += a * b in the sum's register. In long loop bodies compilers would move sums between registers until
 * none are left. */
#define vf_fma_onto(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b))
#endif
#define vf_sqrt(a) _mm256_sqrt_ps(a)
#define vf_floor(a) _mm256_round_ps(a, (_MM_FROUND_FLOOR | _MM_FROUND_NO_EXC))
#define vf_round(a) _mm256_round_ps(a, (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC))
#define vf_min(a, b) _mm256_min_ps(a, b)
#define vf_max(a, b) _mm256_max_ps(a, b)
#define vf_less(a, b) _mm256_cmp_ps(a, b, _CMP_LT_OQ)
#define vf_unordered(a, b) _mm256_cmp_ps(a, b, _CMP_UNORD_Q)
#define vm_all(m) (_mm256_movemask_ps(m) == 0xff)
#define vf_pick(m, a, b) _mm256_blendv_ps(b, a, m)
#define vf_bits(a) _mm256_castps_si256(a)
#define vi_float(a) _mm256_castsi256_ps(a)
#define vi_to_float(a) _mm256_cvtepi32_ps(a)
#define vi_set(a) _mm256_set1_epi32((int)(a))
#define vi_add(a, b) _mm256_add_epi32(a, b)
#define vi_add_16(a, b) _mm256_add_epi16(a, b)
#define vi_sub_16(a, b) _mm256_sub_epi16(a, b)
#define vi_words(p)                                                                                          \
    _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p))) /* uint8 as 16 bits */
#define vi_signed_words(p)                                                                                   \
    _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p))) /* int8 as 16 bits */
#define vi_sub(a, b) _mm256_sub_epi32(a, b)
#define vi_and(a, b) _mm256_and_si256(a, b)
#define vi_xor(a, b) _mm256_xor_si256(a, b)
#define vi_mul(a, b) _mm256_mullo_epi32(a, b)
#define vi_load(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define vi_store(p, a) _mm256_storeu_si256((__m256i *)(void *)(p), a)
#define vf_nearest(a) _mm256_cvtps_epi32(a) /* to the nearest integer, ties to even */
#define vi_left(a, n) _mm256_slli_epi32(a, n)
#define vi_right(a, n) _mm256_srli_epi32(a, n)  /* logical shift */
#define vi_odd_bytes(a) _mm256_srli_epi16(a, 8) /* in each half of a 32-bit lane */
/* Sums of adjacent elements: products of uint8 with int8, as int16 (they must fit); int16, as int32. */
#define vi_pairs_8(a, b) _mm256_maddubs_epi16(a, b)
#define vi_pairs_16(a) _mm256_madd_epi16(a, _mm256_set1_epi16(1))
/* Sums of two adjacent int16 products. */
#define vi_dot_16(a, b) _mm256_madd_epi16(a, b)
/* Interleaved lanes of a and b: the lower half of them, the upper half. */
#define vi_zip_low(a, b)                                                                                     \
    _mm256_permute2x128_si256(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b), 0x20)
#define vi_zip_high(a, b)                                                                                    \
    _mm256_permute2x128_si256(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b), 0x31)
#define vi_left_23(a) _mm256_slli_epi32(a, 23)
#define vi_quarter(a) _mm256_srai_epi32(a, 2)
#define vi_right_1(a) _mm256_srai_epi32(a, 1)
#define vi_right_23(a) _mm256_srai_epi32(a, 23)
#define vd_zero() _mm256_setzero_pd()
#define vf_half(a, half) _mm256_cvtps_pd((half) ? _mm256_extractf128_ps(a, 1) : _mm256_castps256_ps128(a))
/* Forces a vector through memory: widening its halves from there takes fewer instructions, which compilers
 * would not choose. */
#define vf_in_memory(p) __asm__("" : "+m"(p))
#define vd_add(a, b) _mm256_add_pd(a, b)
#define vd_fma(a, b, c) _mm256_fmadd_pd(a, b, c)
#define vd_load(p) _mm256_loadu_pd(p)
#define vd_load_floats(p) _mm256_cvtps_pd(_mm_loadu_ps(p))
#define vd_store(p, a) _mm256_storeu_pd(p, a)
#define vd_set(a) _mm256_set1_pd(a)
#define vd_mul(a, b) _mm256_mul_pd(a, b)
#define vd_sqrt(a) _mm256_sqrt_pd(a)
#define vd_store_floats(p, a) _mm_storeu_ps(p, _mm256_cvtpd_ps(a))
/* vf_rotate: lane l gets lane l ^ h; vf_first: the first lane. */
#define vf_rotate(a, h)                                                                                      \
    ((h) == 4   ? _mm256_permute2f128_ps(a, a, 1)                                                            \
     : (h) == 2 ? _mm256_permute_ps(a, 0x4e)                                                                 \
                : _mm256_permute_ps(a, 0xb1))
#define vf_first(a) _mm256_cvtss_f32(a)
#define vd_rotate(a, h) ((h) == 2 ? _mm256_permute2f128_pd(a, a, 1) : _mm256_permute_pd(a, 5))
#define vd_first(a) _mm256_cvtsd_f64(a)
/* Stores the first n lanes, n < VF_LANES, and writes nothing after them. Masked stores are slow on some
 * processors. */
#define vf_store_some vf_store_some
static inline void vf_store_some(float *p, size_t n, vf a)
{
    __m128 rest = _mm256_castps256_ps128(a);
    if (n & 4) {
        _mm_storeu_ps(p, rest);
        rest = _mm256_extractf128_ps(a, 1);
        p += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)p, rest);
        rest = _mm_movehl_ps(rest, rest);
        p += 2;
    }
    if (n & 1)
        _mm_store_ss(p, rest);
}
static inline vf vf_load_some(const float *p, size_t n)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(p, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lanes));
}
/* Every second element. Floats after the last of them are not read. */
static inline vf vf_load_even(const float *p)
{
    __m256 mixed = _mm256_shuffle_ps(vf_load(p), vf_load(p + VF_LANES - 1), 0xd8); /* in each half */
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
}
static inline vd vd_load_even(const double *p)
{
    return _mm256_permute4x64_pd(_mm256_unpacklo_pd(vd_load(p), vd_load(p + VD_LANES)), 0xd8);
}

#endif
