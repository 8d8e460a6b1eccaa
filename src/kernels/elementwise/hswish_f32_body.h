/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_hswish_f32. Included after the vec_<isa>.h of an ISA level whose minimum and maximum return
 * the second operand if both are equal or one is NaN. */
#ifndef DQ_KERNELS_HSWISH_F32_BODY_H
#define DQ_KERNELS_HSWISH_F32_BODY_H

#include "kernels/gemm_f32/gemm_f32.h"

#include <math.h>

/* dq_hswish_f32 as vectors, kept in registers. `near`: hswish_f32_quotient may replace the division. */
typedef struct hswish_f32 {
    vf scale, shift, low, high, divisor, factor, term, reciprocal;
    bool divides, moves, near;
} hswish_f32;

#ifdef vf_ordinary
/* Division of ordinary numbers (vf_ordinary) without a division instruction, which takes several times as
 * long. Requires that the divisor's reciprocal y has a relative error of at most 2^-25. Then the product q of
 * x and y is one of the two floats next to x / d, so that q * d - x is a float, and q minus y times that is
 * the correctly rounded quotient. Zeros keep their sign, as the divisor is above 0.
 *
 * Source: P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990. */
static inline bool hswish_f32_near(const dq_hswish_f32 *g)
{
    const float d = g->divisor;
    return d >= 0x1p-20f && d <= 0x1p20f && fabsf(fmaf(1 / d, d, -1)) <= 0x1p-25f;
}
static inline vf hswish_f32_quotient(const hswish_f32 *g, vf x)
{
    const vf q = vf_mul(x, g->reciprocal);
    return vf_less_fma(q, vf_fma_less(q, g->divisor, x), g->reciprocal);
}
#else
#define vf_ordinary(x) vf_less(x, x)
static inline bool hswish_f32_near(const dq_hswish_f32 *g)
{
    (void)g;
    return false;
}
static inline vf hswish_f32_quotient(const hswish_f32 *g, vf x)
{
    return vf_div(x, g->divisor);
}
#endif

static inline hswish_f32 hswish_f32_of(const dq_hswish_f32 *g)
{
    return (hswish_f32){vf_set(g->scale),   vf_set(g->shift),
                        vf_set(g->low),     vf_set(g->high),
                        vf_set(g->divisor), vf_set(g->factor),
                        vf_set(g->term),    vf_set(1 / g->divisor),
                        g->divisor != 1,    g->factor != 1 || !(g->term == 0 && signbit(g->term)),
                        hswish_f32_near(g)};
}

static inline vf hswish_f32_product(const hswish_f32 *g, vf x)
{
    return vf_mul(x, vf_min(g->high, vf_max(g->low, vf_fma(x, g->scale, g->shift))));
}

static inline vf hswish_f32_moved(const hswish_f32 *g, vf x)
{
    return vf_add(vf_mul(x, g->factor), g->term);
}

static inline vf hswish_f32_any(const hswish_f32 *g, vf x)
{
    x = hswish_f32_product(g, x);
    if (g->divides)
        x = g->near && vm_all(vf_ordinary(x)) ? hswish_f32_quotient(g, x) : vf_div(x, g->divisor);
    return g->moves ? hswish_f32_moved(g, x) : x;
}

#endif
