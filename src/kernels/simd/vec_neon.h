/* SPDX-License-Identifier: Apache-2.0 */
/* Vector operations of NEON, four floats at a time, for the kernel templates (float_math.h explains the
 * names). */
#ifndef DQ_KERNELS_VEC_NEON_H
#define DQ_KERNELS_VEC_NEON_H

#include <arm_neon.h>
#include <stdbool.h>

enum { VF_LANES = 4, VD_LANES = 2, VF_HALVES = 2, VF_FUSED = 1 };
typedef float32x4_t vf;
typedef int32x4_t vi;
typedef uint32x4_t vm;
typedef float64x2_t vd;

#define vf_load(p) vld1q_f32(p)
/* Finite float16 values as floats. */
#define vf_load_f16(p) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))
#define vf_store(p, a) vst1q_f32(p, a)
#define vf_set(a) vdupq_n_f32(a)
#define vf_add(a, b) vaddq_f32(a, b)
#define vf_sub(a, b) vsubq_f32(a, b)
#define vf_mul(a, b) vmulq_f32(a, b)
#define vf_div(a, b) vdivq_f32(a, b)
#define vf_fma(a, b, c) vfmaq_f32(c, a, b)
#define vf_sqrt(a) vsqrtq_f32(a)
#define vf_floor(a) vrndmq_f32(a)
#define vf_round(a) vrndnq_f32(a)
/* fmin and fmax differ from a comparison for NaN and zeros. */
static inline vf vf_min(vf a, vf b)
{
    return vbslq_f32(vcltq_f32(a, b), a, b);
}
static inline vf vf_max(vf a, vf b)
{
    return vbslq_f32(vcgtq_f32(a, b), a, b);
}
#define vf_less(a, b) vcltq_f32(a, b)
#define vf_unordered(a, b) vmvnq_u32(vandq_u32(vceqq_f32(a, a), vceqq_f32(b, b)))
#define vm_all(m) (vminvq_u32(m) != 0)
#define vf_pick(m, a, b) vbslq_f32(m, a, b)
#define vf_bits(a) vreinterpretq_s32_f32(a)
#define vi_float(a) vreinterpretq_f32_s32(a)
#define vi_to_float(a) vcvtq_f32_s32(a)
#define vi_set(a) vdupq_n_s32((int32_t)(a))
#define vi_add(a, b) vaddq_s32(a, b)
#define vi_add_16(a, b) vreinterpretq_s32_s16(vaddq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)))
#define vi_sub_16(a, b) vreinterpretq_s32_s16(vsubq_s16(vreinterpretq_s16_s32(a), vreinterpretq_s16_s32(b)))
#define vi_words(p) vreinterpretq_s32_u16(vmovl_u8(vld1_u8(p))) /* uint8 as 16 bits */
#define vi_sub(a, b) vsubq_s32(a, b)
#define vi_and(a, b) vandq_s32(a, b)
#define vi_xor(a, b) veorq_s32(a, b)
#define vi_mul(a, b) vmulq_s32(a, b)
#define vi_load(p) vld1q_s32((const int32_t *)(const void *)(p))
#define vi_store(p, a) vst1q_s32((int32_t *)(void *)(p), a)
/* Rounds to nearest, ties to even. vf_bound clamps a to [low, high]; NaN gives low. Its a is the result of
 * arithmetic, so that a NaN is quiet and fmaxnm returns the other operand. */
#define vf_nearest(a) vcvtnq_s32_f32(a)
#define vf_bound(a, low, high) vminnmq_f32(vmaxnmq_f32(a, low), high)
#define vi_left(a, n) vshlq_s32(a, vdupq_n_s32(n))
#define vi_right(a, n)                                                                                       \
    vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a), vdupq_n_s32(-(n)))) /* logical shift */
/* Sums of adjacent elements: products of 8-bit values, the first in 0 … 127, as int16; int16, as int32. */
static inline vi vi_pairs_8(vi a, vi b)
{
    int8x16_t x = vreinterpretq_s8_s32(a), y = vreinterpretq_s8_s32(b);
    int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y)), high = vmull_high_s8(x, y);
    return vreinterpretq_s32_s16(vpaddq_s16(low, high));
}
#define vi_pairs_16(a) vpaddlq_s16(vreinterpretq_s16_s32(a))
/* Sums of two adjacent int16 products. */
static inline vi vi_dot_16(vi a, vi b)
{
    int16x8_t x = vreinterpretq_s16_s32(a), y = vreinterpretq_s16_s32(b);
    return vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
}
#define vi_left_23(a) vshlq_n_s32(a, 23)
#define vi_quarter(a) vshrq_n_s32(a, 2)
#define vi_odd_bytes(a)                                                                                      \
    vreinterpretq_s32_u16(vshrq_n_u16(vreinterpretq_u16_s32(a), 8)) /* in each half of a 32-bit lane */
#define vi_right_1(a) vshrq_n_s32(a, 1)
#define vi_right_23(a) vshrq_n_s32(a, 23)
#define vd_zero() vdupq_n_f64(0)
#define vf_half(a, half) ((half) ? vcvt_high_f64_f32(a) : vcvt_f64_f32(vget_low_f32(a)))
#define vd_add(a, b) vaddq_f64(a, b)
#define vd_fma(a, b, c) vfmaq_f64(c, a, b)
#define vd_load(p) vld1q_f64(p)
#define vd_load_floats(p) vcvt_f64_f32(vld1_f32(p))
#define vd_store(p, a) vst1q_f64(p, a)
#define vd_set(a) vdupq_n_f64(a)
#define vd_mul(a, b) vmulq_f64(a, b)
#define vd_sqrt(a) vsqrtq_f64(a)
#define vd_store_floats(p, a) vst1_f32(p, vcvt_f32_f64(a))
/* vf_rotate: lane l gets lane l ^ h; vf_first: the first lane. */
#define vf_rotate(a, h) ((h) == 2 ? vextq_f32(a, a, 2) : vrev64q_f32(a))
#define vf_first(a) vgetq_lane_f32(a, 0)
#define vd_rotate(a, h) vextq_f64(a, a, 1)
#define vd_first(a) vgetq_lane_f64(a, 0)
/* Every second element. Floats after the last of them are not read. */
static inline vf vf_load_even(const float *p)
{
    float32x4_t low = vf_load(p), high = vf_load(p + VF_LANES - 1);
    return vcombine_f32(vget_low_f32(vuzp1q_f32(low, low)), vget_low_f32(vuzp2q_f32(high, high)));
}
#define vd_load_even(p) vld2q_f64(p).val[0]

#endif
