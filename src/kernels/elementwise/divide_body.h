/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of many floats by one, over the vector that a vec_<isa>.h defines: four fused operations, where
 * dividing takes five to ten cycles a vector.
 *
 * With r the reciprocal of s rounded to float and l what that left, rounded, fma(x, r, x * l) is next to
 * x / s: off by less than a unit in its last place. The remainder x - q * s of such a q is a float, and
 * fma(remainder, r, q) the rounded quotient (Markstein, IBM Journal of Research and Development 34, 1990),
 * where nothing leaves float's range on the way. */
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

/* x / s for dq_divides(s) and |x| between 2^-60 and 2^80, the quotient not beyond 2^120, and for x = +0.
 * Where x is smaller, the quotient may be off by 2^-60. */
static inline vf divided(vf x, const divisor *s)
{
    if (!VF_FUSED)
        return vf_div(x, s->by);
    vf q = vf_fma(x, s->reciprocal, vf_mul(x, s->rest));
    return vf_fma(vf_fma(q, s->minus, x), s->reciprocal, q);
}

#endif
