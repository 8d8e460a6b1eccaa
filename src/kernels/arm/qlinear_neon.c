/* QLinearAdd and QLinearMul, eight codes at a time as floats; table lookup. */
#include "kernels/kernels.h"

#include <arm_neon.h>

typedef struct add_terms {
    float32x4_t a_ratio, b_ratio, fixed;
} add_terms;

typedef struct mul_terms {
    float32x4_t a_zero, b_zero, ratio, zero;
} mul_terms;

static inline float32x4_t add4(float32x4_t a, float32x4_t b, add_terms t)
{
    return vfmaq_f32(vfmaq_f32(t.fixed, b, t.b_ratio), a, t.a_ratio);
}

/* The integers' product is exact in float, too. */
static inline float32x4_t mul4(float32x4_t a, float32x4_t b, mul_terms t)
{
    float32x4_t product = vmulq_f32(vsubq_f32(a, t.a_zero), vsubq_f32(b, t.b_zero));
    return vaddq_f32(vmulq_f32(product, t.ratio), t.zero);
}

/* fmaxnm gives the bound where v, a result of arithmetic, is NaN. */
static inline int16x4_t code4(float32x4_t v, float low, float high)
{
    v = vminnmq_f32(vmaxnmq_f32(v, vdupq_n_f32(low)), vdupq_n_f32(high));
    return vmovn_s32(vcvtnq_s32_f32(v));
}

static inline int16x8_t load_u8(const uint8_t *x)
{
    return vreinterpretq_s16_u16(vmovl_u8(vld1_u8(x)));
}
static inline int16x8_t load_s8(const int8_t *x)
{
    return vmovl_s8(vld1_s8(x));
}
static inline void store_u8(uint8_t *y, int16x8_t v)
{
    vst1_u8(y, vmovn_u16(vreinterpretq_u16_s16(v)));
}
static inline void store_s8(int8_t *y, int16x8_t v)
{
    vst1_s8(y, vmovn_s16(v));
}

static inline float32x4_t low_floats(int16x8_t v)
{
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(v)));
}
static inline float32x4_t high_floats(int16x8_t v)
{
    return vcvtq_f32_s32(vmovl_high_s16(v));
}

/* y = op(a, b) over `n` codes but for the last n % 8, whose beginning is returned. */
#define ROW(name, suffix, type, terms, op, low, high)                                                        \
    static inline size_t name(const type *a, const type *b, size_t step, size_t n, terms t, type *y)         \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        int16x8_t vb = vdupq_n_s16(n ? *b : 0);                                                              \
        for (; n - i >= 8; i += 8) {                                                                         \
            int16x8_t va = load_##suffix(a + i);                                                             \
            if (step)                                                                                        \
                vb = load_##suffix(b + i);                                                                   \
            int16x4_t first = code4(op(low_floats(va), low_floats(vb), t), low, high);                       \
            int16x4_t second = code4(op(high_floats(va), high_floats(vb), t), low, high);                    \
            store_##suffix(y + i, vcombine_s16(first, second));                                              \
        }                                                                                                    \
        return i;                                                                                            \
    }

ROW(add_u8, u8, uint8_t, add_terms, add4, 0, 255)
ROW(add_s8, s8, int8_t, add_terms, add4, -128, 127)
ROW(mul_u8, u8, uint8_t, mul_terms, mul4, 0, 255)
ROW(mul_s8, s8, int8_t, mul_terms, mul4, -128, 127)

#define QLINEAR_ADD(suffix, type)                                                                            \
    void dq_qlinear_add_##suffix##_neon(const type *a, float a_ratio, const type *b, float b_ratio,          \
                                        size_t step, float fixed, size_t n, type *y)                         \
    {                                                                                                        \
        add_terms t = {vdupq_n_f32(a_ratio), vdupq_n_f32(b_ratio), vdupq_n_f32(fixed)};                      \
        size_t i = add_##suffix(a, b, step, n, t, y);                                                        \
        dq_qlinear_add_##suffix##_c(a + i, a_ratio, b + i * step, b_ratio, step, fixed, n - i, y + i);       \
    }
QLINEAR_ADD(u8, uint8_t)
QLINEAR_ADD(s8, int8_t)

#define QLINEAR_MUL(suffix, type)                                                                            \
    void dq_qlinear_mul_##suffix##_neon(const type *a, int a_zero, const type *b, int b_zero, size_t step,   \
                                        float ratio, float zero, size_t n, type *y)                          \
    {                                                                                                        \
        mul_terms t = {vdupq_n_f32((float)a_zero), vdupq_n_f32((float)b_zero), vdupq_n_f32(ratio),           \
                       vdupq_n_f32(zero)};                                                                   \
        size_t i = mul_##suffix(a, b, step, n, t, y);                                                        \
        dq_qlinear_mul_##suffix##_c(a + i, a_zero, b + i * step, b_zero, step, ratio, zero, n - i, y + i);   \
    }
QLINEAR_MUL(u8, uint8_t)
QLINEAR_MUL(s8, int8_t)

/* Four tables of 64 entries: an index outside of one leaves what the others gave. */
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
