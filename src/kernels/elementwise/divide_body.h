/* SPDX-License-Identifier: Apache-2.0 */
/* Template: division of many floats by one scalar, correctly rounded. Included once per ISA level, after its
 * vec_<isa>.h. It takes four fused operations; a division takes five to ten cycles per vector.
 *
 * Let r be the reciprocal of s rounded to float, and l the rounded error of r. Then q = fma(x, r, x * l) is
 * within one unit in the last place of x / s. The remainder x - q * s is exactly representable as a float,
 * and fma(remainder, r, q) is the correctly rounded quotient, unless an intermediate result overflows or
 * underflows.
 *
 * Source: P. Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, IBM
 * Journal of Research and Development 34, 1990. */
#ifndef DQ_KERNELS_DIVIDE_BODY_H
#define DQ_KERNELS_DIVIDE_BODY_H

#include "kernels/quantize/reciprocal.h"

typedef struct divisor {
    vf by, minus, reciprocal, rest;
} divisor;

static inline divisor divisor_of(float s)
{
    const float r = 1 / s;
    return (divisor){vf_set(s), vf_set(-s), vf_set(r), vf_set((float)(1 / (double)s - (double)r))};
}

/* Returns x / s, correctly rounded. Requires dq_divides(s), |x| in [2^-60, 2^80] or x = +0, and a quotient of
 * at most 2^120. For smaller |x| the absolute error is at most 2^-60. */
static inline vf divided(vf x, const divisor *s)
{
    if (!VF_FUSED)
        return vf_div(x, s->by);
    vf q = vf_fma(x, s->reciprocal, vf_mul(x, s->rest));
    return vf_fma(vf_fma(q, s->minus, x), s->reciprocal, q);
}

#endif
