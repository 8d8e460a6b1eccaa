/* SPDX-License-Identifier: Apache-2.0 */
/* Template: rows of quantized values for ISA levels with vectors of four (vec_sse41.h, vec_neon.h), eight
 * elements at a time. The portable kernel does the tail of a row.
 *
 * Macro parameters:
 *
 *   ISA(name)             the level's function name
 *   eight                 a struct of two vectors, low and high
 *   load_<type>(p)        eight quantized values as int32
 *   store_<type>(p, v)    eight int32 as quantized values; they fit the type */
#include "kernels/kernels.h"

static inline eight same_eight(int32_t qvalue)
{
    return (eight){vi_set(qvalue), vi_set(qvalue)};
}

/* ---- Quantizing ---- */

typedef struct bounds {
    vf low, high; /* bounds of the quotient; NaN gives `low` */
    vi zero;
} bounds;

static inline bounds bounds_of(vi zero, int32_t min, int32_t max)
{
    return (bounds){vi_to_float(vi_sub(vi_set(min), zero)), vi_to_float(vi_sub(vi_set(max), zero)), zero};
}

static inline vi quantize(const float *x, vf scale, const bounds *b)
{
    return vi_add(vf_nearest(vf_bound(vf_div(vf_load(x), scale), b->low, b->high)), b->zero);
}

#define QUANTIZE(suffix, type, min, max)                                                                     \
    void ISA(dq_quantize_f32_##suffix)(const float *x, size_t n, const float *scale, const type *zero,       \
                                       size_t step, type *y)                                                 \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            vf s0 = vf_set(scale[0]), s1 = s0;                                                               \
            bounds b0 = bounds_of(vi_set(zero ? zero[0] : 0), min, max), b1 = b0;                            \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s0 = vf_load(scale + i);                                                                 \
                    s1 = vf_load(scale + i + 4);                                                             \
                }                                                                                            \
                if (step && zero) {                                                                          \
                    eight z = load_##suffix(zero + i);                                                       \
                    b0 = bounds_of(z.low, min, max);                                                         \
                    b1 = bounds_of(z.high, min, max);                                                        \
                }                                                                                            \
                store_##suffix(y + i, (eight){quantize(x + i, s0, &b0), quantize(x + i + 4, s1, &b1)});      \
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

static inline vf dequantize(vi x, vi zero, vf scale)
{
    return vf_mul(vi_to_float(vi_sub(x, zero)), scale);
}

#define DEQUANTIZE(suffix, type)                                                                             \
    void ISA(dq_dequantize_##suffix##_f32)(const type *x, size_t n, const float *scale, const type *zero,    \
                                           size_t step, float *y)                                            \
    {                                                                                                        \
        size_t i = 0;                                                                                        \
        if (n >= 8) {                                                                                        \
            vf s0 = vf_set(scale[0]), s1 = s0;                                                               \
            eight z = same_eight(zero ? zero[0] : 0);                                                        \
            for (; i + 8 <= n; i += 8) {                                                                     \
                if (step) {                                                                                  \
                    s0 = vf_load(scale + i);                                                                 \
                    s1 = vf_load(scale + i + 4);                                                             \
                    if (zero)                                                                                \
                        z = load_##suffix(zero + i);                                                         \
                }                                                                                            \
                eight qvalues = load_##suffix(x + i);                                                        \
                vf_store(y + i, dequantize(qvalues.low, z.low, s0));                                         \
                vf_store(y + i + 4, dequantize(qvalues.high, z.high, s1));                                   \
            }                                                                                                \
        }                                                                                                    \
        dq_dequantize_##suffix##_f32_c(x + i, n - i, scale + i * step, zero ? zero + i * step : NULL, step,  \
                                       y + i);                                                               \
    }

DEQUANTIZE(u8, uint8_t)
DEQUANTIZE(s8, int8_t)
DEQUANTIZE(u16, uint16_t)
DEQUANTIZE(s16, int16_t)

#define DEQUANTIZE_BLOCKS(suffix, type)                                                                      \
    void ISA(dq_dequantize_blocks_##suffix##_f32)(const type *x, size_t blocks, size_t block,                \
                                                  const float *scale, const type *zero, float *y)            \
    {                                                                                                        \
        dq_dequantize_##suffix##_f32_fn *const row = ISA(dq_dequantize_##suffix##_f32);                      \
        for (size_t b = 0; b < blocks; b++)                                                                  \
            row(x + b * block, block, scale + b, zero ? zero + b : NULL, 0, y + b * block);                  \
    }

DEQUANTIZE_BLOCKS(u8, uint8_t)
DEQUANTIZE_BLOCKS(s8, int8_t)

/* ---- QLinearAdd and QLinearMul, as floats ---- */

typedef struct add_terms {
    vf a_ratio, b_ratio, fixed;
} add_terms;

typedef struct mul_terms {
    vf a_zero, b_zero, ratio, zero;
} mul_terms;

static inline vf add4(vi a, vi b, const add_terms *t)
{
    return vf_fma(vi_to_float(a), t->a_ratio, vf_fma(vi_to_float(b), t->b_ratio, t->fixed));
}

/* The product of the integers is exact in float, too. */
static inline vf mul4(vi a, vi b, const mul_terms *t)
{
    vf product = vf_mul(vf_sub(vi_to_float(a), t->a_zero), vf_sub(vi_to_float(b), t->b_zero));
    return vf_add(vf_mul(product, t->ratio), t->zero);
}

/* y = op(a, b) for all but the last n % 8 quantized values; returns the index of the first of those. */
#define BINARY(name, suffix, type, terms, op, min, max)                                                      \
    static inline size_t name##_##suffix(const type *a, const type *b, size_t step, size_t n,                \
                                         const terms *t, type *y)                                            \
    {                                                                                                        \
        const vf low = vf_set(min), high = vf_set(max);                                                      \
        size_t i = 0;                                                                                        \
        eight vb = same_eight(n ? *b : 0);                                                                   \
        for (; n - i >= 8; i += 8) {                                                                         \
            eight va = load_##suffix(a + i);                                                                 \
            if (step)                                                                                        \
                vb = load_##suffix(b + i);                                                                   \
            store_##suffix(y + i, (eight){vf_nearest(vf_bound(op(va.low, vb.low, t), low, high)),            \
                                          vf_nearest(vf_bound(op(va.high, vb.high, t), low, high))});        \
        }                                                                                                    \
        return i;                                                                                            \
    }

BINARY(add, u8, uint8_t, add_terms, add4, 0, UINT8_MAX)
BINARY(add, s8, int8_t, add_terms, add4, INT8_MIN, INT8_MAX)
BINARY(mul, u8, uint8_t, mul_terms, mul4, 0, UINT8_MAX)
BINARY(mul, s8, int8_t, mul_terms, mul4, INT8_MIN, INT8_MAX)

#define QLINEAR_ADD(suffix, type)                                                                            \
    void ISA(dq_qlinear_add_##suffix)(const type *a, float a_ratio, const type *b, float b_ratio,            \
                                      size_t step, float fixed, size_t n, type *y)                           \
    {                                                                                                        \
        const add_terms t = {vf_set(a_ratio), vf_set(b_ratio), vf_set(fixed)};                               \
        size_t i = add_##suffix(a, b, step, n, &t, y);                                                       \
        dq_qlinear_add_##suffix##_c(a + i, a_ratio, b + i * step, b_ratio, step, fixed, n - i, y + i);       \
    }
QLINEAR_ADD(u8, uint8_t)
QLINEAR_ADD(s8, int8_t)

#define QLINEAR_MUL(suffix, type)                                                                            \
    void ISA(dq_qlinear_mul_##suffix)(const type *a, int a_zero, const type *b, int b_zero, size_t step,     \
                                      float ratio, float zero, size_t n, type *y)                            \
    {                                                                                                        \
        const mul_terms t = {vf_set((float)a_zero), vf_set((float)b_zero), vf_set(ratio), vf_set(zero)};     \
        size_t i = mul_##suffix(a, b, step, n, &t, y);                                                       \
        dq_qlinear_mul_##suffix##_c(a + i, a_zero, b + i * step, b_zero, step, ratio, zero, n - i, y + i);   \
    }
QLINEAR_MUL(u8, uint8_t)
QLINEAR_MUL(s8, int8_t)

/* ---- Minima ---- */

#include "kernels/quantize/minmax_body.h"
