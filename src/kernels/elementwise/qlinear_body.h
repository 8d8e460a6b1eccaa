/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAdd and QLinearMul, four vectors of floats at a time. What cannot leave int32 needs no bounds but
 * those of the packs on the way to bytes, which saturate; rows of other ratios are portable C's.
 *
 * Before this, an instruction set's file includes its vec_<isa>.h and defines ISA(name) and
 *   floats_u8(p), floats_s8(p)     VF_LANES codes as floats
 *   bytes_u8(v), bytes_s8(v)       integers of four vectors of int32 as saturated bytes, in order */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { STEP = 4 * VF_LANES };

/* Of a sum: both ratios and what is added; of a product: both zero points, the ratio and the zero point. */
typedef struct terms {
    vf t[4];
} terms;

static inline vf add(vf a, vf b, const terms *t)
{
    return vf_fma(a, t->t[0], vf_fma(b, t->t[1], t->t[2]));
}

/* The integers' product is exact in float, too. */
static inline vf mul(vf a, vf b, const terms *t)
{
    vf product = vf_mul(vf_sub(a, t->t[0]), vf_sub(b, t->t[1]));
    return vf_add(vf_mul(product, t->t[2]), t->t[3]);
}

/* Codes of n bytes, a multiple of STEP and at least one; b goes on by b_step bytes a step. */
typedef void steps_fn(const uint8_t *a, const uint8_t *b, size_t b_step, size_t n, const terms *t,
                      uint8_t *y);

/* What is left of a row is made as long as a step, whose other codes are dropped; an operand that is one code
 * for all is a step of them, met again and again. */
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

/* Not NaN, either. */
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
