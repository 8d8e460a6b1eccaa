/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_neon.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ISA(name) name##_neon
#define LOWER(name) name##_c

enum { LANES = 8 };
typedef int16x8_t vs;
typedef uint8x16_t vb;

#define vs_load(p) vld1q_s16(p)
#define vs_store(p, v) vst1q_s16(p, v)
#define vs_add(a, b) vaddq_s16(a, b)
#define vs_add_saturated(a, b) vqaddq_s16(a, b)
#define vs_set(i) vdupq_n_s16(i)
#define vb_store(p, v) vst1q_u8(p, v)

static inline __attribute__((always_inline)) vs vs_bytes(const uint8_t *p, bool is_signed)
{
    const uint8x8_t bytes = vld1_u8(p);
    return is_signed ? vmovl_s8(vreinterpret_s8_u8(bytes)) : vreinterpretq_s16_u16(vmovl_u8(bytes));
}

static inline __attribute__((always_inline)) vf vs_floats(vs v, int half)
{
    return vcvtq_f32_s32(half ? vmovl_high_s16(v) : vmovl_s16(vget_low_s16(v)));
}

/* fmaxnm prefers the number to a quiet NaN. */
static inline int32x4_t nearest(vf v)
{
    return vcvtnq_s32_f32(vmaxnmq_f32(v, vdupq_n_f32(INT16_MIN)));
}

static inline vs vs_rounded(vf a, vf b)
{
    return vqmovn_high_s32(vqmovn_s32(nearest(a)), nearest(b));
}

static inline __attribute__((always_inline)) vb vb_pack(vs a, vs b, bool is_signed)
{
    return is_signed ? vreinterpretq_u8_s8(vqmovn_high_s16(vqmovn_s16(a), b))
                     : vqmovun_high_s16(vqmovun_s16(a), b);
}

static inline uint32_t vb_differ(vb a, vb b)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(UINT64_C(0x8040201008040201)));
    const uint8x16_t bits = vbicq_u8(bit, vceqq_u8(a, b));
    return vaddv_u8(vget_low_u8(bits)) | (uint32_t)vaddv_u8(vget_high_u8(bits)) << 8;
}

#include "kernels/pool/average_pool_body.h"
