/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simd/vec_neon.h"

#include <stdint.h>

#define ISA(name) name##_neon

typedef struct eight {
    vi low, high;
} eight;

static inline eight widened(int16x8_t v)
{
    return (eight){vmovl_s16(vget_low_s16(v)), vmovl_high_s16(v)};
}

static inline int16x8_t narrowed(eight v)
{
    return vcombine_s16(vmovn_s32(v.low), vmovn_s32(v.high));
}

static inline eight load_u8(const uint8_t *x)
{
    return widened(vreinterpretq_s16_u16(vmovl_u8(vld1_u8(x))));
}
static inline eight load_s8(const int8_t *x)
{
    return widened(vmovl_s8(vld1_s8(x)));
}
static inline eight load_u16(const uint16_t *x)
{
    uint16x8_t v = vld1q_u16(x);
    return (eight){vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(v))),
                   vreinterpretq_s32_u32(vmovl_high_u16(v))};
}
static inline eight load_s16(const int16_t *x)
{
    return widened(vld1q_s16(x));
}

static inline void store_u8(uint8_t *y, eight v)
{
    vst1_u8(y, vmovn_u16(vreinterpretq_u16_s16(narrowed(v))));
}
static inline void store_s8(int8_t *y, eight v)
{
    vst1_s8(y, vmovn_s16(narrowed(v)));
}
static inline void store_u16(uint16_t *y, eight v)
{
    vst1q_u16(y, vreinterpretq_u16_s16(narrowed(v)));
}
static inline void store_s16(int16_t *y, eight v)
{
    vst1q_s16(y, narrowed(v));
}

#include "kernels/quantize/rows_body.h"
#include "kernels/requantize/finish_body.h"

/* Subtracts zero points from four int32: exact in double, then rounded to float once. */
static inline float32x4_t difference(int32x4_t x, int32x4_t zero)
{
    float64x2_t low = vcvtq_f64_s64(vsubl_s32(vget_low_s32(x), vget_low_s32(zero)));
    float64x2_t high = vcvtq_f64_s64(vsubl_high_s32(x, zero));
    return vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}

void dq_dequantize_s32_f32_neon(const int32_t *x, size_t n, const float *scale, const int32_t *zero,
                                size_t step, float *y)
{
    size_t i = 0;
    if (n >= 4) {
        float32x4_t s = vdupq_n_f32(scale[0]);
        int32x4_t z = vdupq_n_s32(zero ? zero[0] : 0);
        for (; i + 4 <= n; i += 4) {
            if (step) {
                s = vld1q_f32(scale + i);
                if (zero)
                    z = vld1q_s32(zero + i);
            }
            vst1q_f32(y + i, vmulq_f32(difference(vld1q_s32(x + i), z), s));
        }
    }
    dq_dequantize_s32_f32_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step, y + i);
}

void dq_convert_f16_f32_neon(const uint16_t *x, size_t n, float *y)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + i))));
    dq_convert_f16_f32_c(x + i, n - i, y + i);
}

void dq_convert_f32_f16_neon(const float *x, size_t n, uint16_t *y)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(y + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    dq_convert_f32_f16_c(x + i, n - i, y + i);
}

/* Four tables of 64 entries: an index outside of one table keeps the result of the others. */
void dq_lookup_x8_neon(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y)
{
    uint8x16x4_t entries[4];
    for (int i = 0; i < 4; i++)
        entries[i] = vld1q_u8_x4(table + 64 * i);
    const uint8x16_t part = vdupq_n_u8(64);
    size_t j = 0;
    for (; j + 16 <= n; j += 16) {
        uint8x16_t index = vld1q_u8(x + j), value = vqtbl4q_u8(entries[0], index);
        for (int i = 1; i < 4; i++) {
            index = vsubq_u8(index, part);
            value = vqtbx4q_u8(value, entries[i], index);
        }
        vst1q_u8(y + j, value);
    }
    dq_lookup_x8_c(x + j, n - j, table, y + j);
}
