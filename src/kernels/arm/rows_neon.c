/* Rows of quantizing and dequantizing, minima, conversions: four floats a vector. */
#include "kernels/kernels.h"

#include <arm_neon.h>

/* ---- Eight integers of each type as two vectors of int32, and back (the values fit the type) ---- */

typedef struct eight {
    int32x4_t low, high;
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

/* ---- Quantizing ---- */

/* The quotient is a result of arithmetic, so that a NaN in it is quiet: fmaxnm then gives the other operand.
 */
static inline int32x4_t quantize(float32x4_t x, float32x4_t scale, int32x4_t zero, int32_t min, int32_t max)
{
    float32x4_t low = vcvtq_f32_s32(vsubq_s32(vdupq_n_s32(min), zero));
    float32x4_t high = vcvtq_f32_s32(vsubq_s32(vdupq_n_s32(max), zero));
    float32x4_t q = vminnmq_f32(vmaxnmq_f32(vdivq_f32(x, scale), low), high);
    return vaddq_s32(vcvtnq_s32_f32(q), zero);
}

#define QUANTIZE(suffix, type, min, max)                                                                     \
    void dq_quantize_f32_##suffix##_neon(const float *x, size_t n, const float *scale, const type *zero,     \
                                         size_t step, type *y)                                               \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            float32x4_t s0 = vdupq_n_f32(scale[0]), s1 = s0;                                                 \
            eight z = {vdupq_n_s32(zero ? zero[0] : 0), vdupq_n_s32(zero ? zero[0] : 0)};                    \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s0 = vld1q_f32(scale + i);                                                               \
                    s1 = vld1q_f32(scale + i + 4);                                                           \
                    if (zero)                                                                                \
                        z = load_##suffix(zero + i);                                                         \
                }                                                                                            \
                eight codes = {quantize(vld1q_f32(x + i), s0, z.low, min, max),                              \
                               quantize(vld1q_f32(x + i + 4), s1, z.high, min, max)};                        \
                store_##suffix(y + i, codes);                                                                \
            }                                                                                                \
        }                                                                                                    \
        dq_quantize_f32_##suffix##_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step,    \
                                     y + i);                                                                 \
    }

QUANTIZE(u8, uint8_t, 0, UINT8_MAX)
QUANTIZE(s8, int8_t, INT8_MIN, INT8_MAX)
QUANTIZE(u16, uint16_t, 0, UINT16_MAX)
QUANTIZE(s16, int16_t, INT16_MIN, INT16_MAX)

/* ---- Dequantizing ---- */

static inline float32x4_t dequantize(int32x4_t x, int32x4_t zero, float32x4_t scale)
{
    return vmulq_f32(vcvtq_f32_s32(vsubq_s32(x, zero)), scale);
}

#define DEQUANTIZE(suffix, type)                                                                             \
    void dq_dequantize_##suffix##_f32_neon(const type *x, size_t n, const float *scale, const type *zero,    \
                                           size_t step, float *y)                                            \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            float32x4_t s0 = vdupq_n_f32(scale[0]), s1 = s0;                                                 \
            eight z = {vdupq_n_s32(zero ? zero[0] : 0), vdupq_n_s32(zero ? zero[0] : 0)};                    \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s0 = vld1q_f32(scale + i);                                                               \
                    s1 = vld1q_f32(scale + i + 4);                                                           \
                    if (zero)                                                                                \
                        z = load_##suffix(zero + i);                                                         \
                }                                                                                            \
                eight codes = load_##suffix(x + i);                                                          \
                vst1q_f32(y + i, dequantize(codes.low, z.low, s0));                                          \
                vst1q_f32(y + i + 4, dequantize(codes.high, z.high, s1));                                    \
            }                                                                                                \
        }                                                                                                    \
        dq_dequantize_##suffix##_f32_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step,  \
                                       y + i);                                                               \
    }

DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(s8, int8_t)
DEQUANTIZE(u16, uint16_t)
DEQUANTIZE(s16, int16_t)

/* A difference of int32 is exact in double, and rounded to float once. */
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

/* ---- Minima, conversions, sums ---- */

/* Comparing and choosing passes over NaN of both kinds; fminnm would keep a signalling one. */
void dq_minmax_f32_neon(const float *x, size_t n, float *lo, float *hi)
{
    size_t i = 0;
    float32x4_t low[2] = {vdupq_n_f32(*lo), vdupq_n_f32(*lo)}, high[2] = {vdupq_n_f32(*hi), vdupq_n_f32(*hi)};
    for (; i + 8 <= n; i += 8)
        for (int v = 0; v < 2; v++) {
            float32x4_t some = vld1q_f32(x + i + 4 * v);
            low[v] = vbslq_f32(vcltq_f32(some, low[v]), some, low[v]);
            high[v] = vbslq_f32(vcgtq_f32(some, high[v]), some, high[v]);
        }
    float lanes[8];
    vst1q_f32(lanes, vminq_f32(low[0], low[1]));
    vst1q_f32(lanes + 4, vmaxq_f32(high[0], high[1]));
    for (int v = 0; v < 4; v++) {
        *lo = lanes[v] < *lo ? lanes[v] : *lo;
        *hi = lanes[4 + v] > *hi ? lanes[4 + v] : *hi;
    }
    dq_minmax_f32_c(x + i, n - i, lo, hi);
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

void dq_subtract_scaled_neon(int32_t *c, size_t n, int32_t factor, const int32_t *v)
{
    size_t i = 0;
    int32x4_t f = vdupq_n_s32(factor);
    for (; i + 4 <= n; i += 4)
        vst1q_s32(c + i, vmlsq_s32(vld1q_s32(c + i), vld1q_s32(v + i), f));
    dq_subtract_scaled_c(c + i, n - i, factor, v + i);
}
