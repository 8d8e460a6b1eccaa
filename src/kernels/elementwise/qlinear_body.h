/* SPDX-License-Identifier: Apache-2.0 */
/* Template: QLinearAdd and QLinearMul of 8-bit values, four vectors of floats at a time. Included once per
 * ISA level, after its vec_<isa>.h. If results cannot leave int32 (is_moderate), the saturation of the pack
 * instructions is the only clamping. Other ratios run the portable kernel.
 *
 * Macro parameters:
 *
 *   ISA(name)                      the level's function name
 *   floats_u8(p), floats_s8(p)     VF_LANES quantized values as floats
 *   bytes_u8(v), bytes_s8(v)       the integers of four vectors of int32 as saturated bytes, in order */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { STEP = 4 * VF_LANES };

/* Vectors of parameters. Sum: both ratios and the constant term. Product: both zero points, the ratio, the
 * result's zero point. */
typedef struct terms {
    vf t[4];
} terms;

static inline vf add(vf a, vf b, const terms *t)
{
    return vf_fma(a, t->t[0], vf_fma(b, t->t[1], t->t[2]));
}

/* The product of the integers is exact in float, too. */
static inline vf mul(vf a, vf b, const terms *t)
{
    vf product = vf_mul(vf_sub(a, t->t[0]), vf_sub(b, t->t[1]));
    return vf_add(vf_mul(product, t->t[2]), t->t[3]);
}

/* Kernel over n quantized values, a positive multiple of STEP. b advances by b_step bytes a step. */
typedef void steps_fn(const uint8_t *a, const uint8_t *b, size_t b_step, size_t n, const terms *t,
                      uint8_t *y);

/* Runs `steps` on a row. It pads the tail to STEP and drops the results of the padding. A scalar operand is
 * broadcast to one STEP, which is read again each time (b_step 0). */
static __attribute__((noinline)) void row(steps_fn *steps, const void *a, const void *b, size_t step,
                                          size_t n, const terms *t, void *y)
{
    uint8_t left[3][STEP];
    const size_t whole = n / STEP * STEP, rest = n - whole;
    if (step == 0 && n)
        b = memset(left[1], *(const uint8_t *)b, STEP);
    if (whole)
        steps(a, b, step * STEP, whole, t, y);
    if (rest == 0)
        return;
    memcpy(memset(left[0], 0, STEP), (const uint8_t *)a + whole, rest);
    if (step)
        memcpy(memset(left[1], 0, STEP), (const uint8_t *)b + whole, rest);
    steps(left[0], left[1], STEP, STEP, t, left[2]);
    memcpy((uint8_t *)y + whole, left[2], rest);
}

/* Whether results are below 2^30 in magnitude; false for NaN. */
static inline bool is_moderate(float most)
{
    return most < 0x1p30f;
}

#define STEPS(op, suffix)                                                                                    \
    static void op##_##suffix(const uint8_t *a, const uint8_t *b, size_t b_step, size_t n, const terms *t,   \
                              uint8_t *y)                                                                    \
    {                                                                                                        \
        const terms kept = *t;                                                                               \
        for (const uint8_t *end = a + n; a < end; a += STEP, b += b_step, y += STEP) {                       \
            vi v[4];                                                                                         \
            for (int k = 0; k < 4; k++)                                                                      \
                v[k] = vf_nearest(                                                                           \
                    op(floats_##suffix(a + k * VF_LANES), floats_##suffix(b + k * VF_LANES), &kept));        \
            vi_store(y, bytes_##suffix(v));                                                                  \
        }                                                                                                    \
    }

#define QLINEAR(suffix, type)                                                                                \
    STEPS(add, suffix)                                                                                       \
    STEPS(mul, suffix)                                                                                       \
    void ISA(dq_qlinear_add_##suffix)(const type *a, float a_ratio, const type *b, float b_ratio,            \
                                      size_t step, float fixed, size_t n, type *y)                           \
    {                                                                                                        \
        const terms t = {{vf_set(a_ratio), vf_set(b_ratio), vf_set(fixed), vf_set(0)}};                      \
        if (is_moderate((fabsf(a_ratio) + fabsf(b_ratio)) * 256 + fabsf(fixed)))                             \
            row(add_##suffix, a, b, step, n, &t, y);                                                         \
        else                                                                                                 \
            dq_qlinear_add_##suffix##_c(a, a_ratio, b, b_ratio, step, fixed, n, y);                          \
    }                                                                                                        \
    void ISA(dq_qlinear_mul_##suffix)(const type *a, int a_zero, const type *b, int b_zero, size_t step,     \
                                      float ratio, float zero, size_t n, type *y)                            \
    {                                                                                                        \
        const terms t = {{vf_set((float)a_zero), vf_set((float)b_zero), vf_set(ratio), vf_set(zero)}};       \
        if (is_moderate(fabsf(ratio) * (256 * 256) + fabsf(zero)))                                           \
            row(mul_##suffix, a, b, step, n, &t, y);                                                         \
        else                                                                                                 \
            dq_qlinear_mul_##suffix##_c(a, a_zero, b, b_zero, step, ratio, zero, n, y);                      \
    }

QLINEAR(u8, uint8_t)
QLINEAR(s8, int8_t)
