/* SPDX-License-Identifier: Apache-2.0 */
/* Requantizing by a ratio of scales: the real-number formula, rounded once to nearest, ties to even.
 *
 * A product of two floats is exact in double, and fused multiply-add gives the rest of a product of two
 * doubles, so that a value next to a tie is compared with it exactly. Kernels multiply by one float,
 * which is fast and nearly always right; for 8-bit results prepare finds a float that is right for every
 * value that there can be. */
#ifndef DQ_OPS_EXACT_RATIO_H
#define DQ_OPS_EXACT_RATIO_H

#include "ops/quantize/q8.h"

/** A positive ratio. Both numbers are exact: products of at most two floats, or of a float and an integer
 * below 2^29, none of them denormal. */
typedef struct dq_ratio {
    double numerator, denominator;
    double quotient; /* rounded */
} dq_ratio;

static inline dq_ratio dq_ratio_make(double numerator, double denominator)
{
    return (dq_ratio){numerator, denominator, numerator / denominator};
}

/** The integer on the side of the tie (an integer and a half) that `order` says, which is the sign of value
 * minus tie; 0: the even one. */
static inline double dq_next_to_tie(double tie, int order)
{
    const double below = tie - 0.5;
    return order < 0 || (order == 0 && fmod(below, 2) == 0) ? below : below + 1;
}

/** Rounds `value`, whose relative error is some 2^-50, to the nearest integer. Returns whether it is so close
 * to a tie
 * (*tie) that this may be the wrong one. Values beyond 2^20 become 2^20. */
static inline bool dq_round_unless_tied(double value, double *nearest, double *tie)
{
    const double most = 0x1p20, shift = 0x1.8p52, close = 1e-6;
    value = value < -most ? -most : value > most ? most : value;
    *nearest = (value + shift) - shift;
    const double rest = value - *nearest;
    *tie = *nearest + (rest < 0 ? -0.5 : 0.5);
    return fabs(rest) > 0.5 - close;
}

/** s * ratio, rounded; |s| below 2^53, |result| at most 2^20. */
double dq_ratio_round(const dq_ratio *ratio, double s);

/** The quantized value of s * ratio. */
static inline int dq_ratio_quantize(const dq_ratio *ratio, const dq_q8 *q, double s)
{
    const double v = dq_ratio_round(ratio, s) + q->zero;
    return v > q->max ? q->max : v < q->min ? q->min : (int)v;
}

/** Finds a float m with rint(s * m) = dq_ratio_quantize(s) - zero point, both saturated, for all integers s
 * of at most `most` in magnitude (below 2^24), the product rounded to float. False: there is none nearby. */
bool dq_ratio_multiplier(const dq_ratio *ratio, const dq_q8 *q, int32_t most, float *m);

/** Two operands and their result, all of 8 bits, scales positive and normal. */
typedef struct dq_q8_pair {
    dq_q8 a, b, y;
} dq_q8_pair;

/** The quantized values of the sum and of the product of two quantized values. */
int dq_q8_add(const dq_q8_pair *p, int a, int b);
int dq_q8_mul(const dq_q8_pair *p, int a, int b);

/** Finds numbers for kernels qlinear_add and qlinear_mul with which all 65,536 pairs have these results: of a
 * sum both ratios and the constant term with a as the first operand, then with b as the first one; of a
 * product the ratio and what is added. False: there are none nearby. */
enum { DQ_ADD_TERMS = 6, DQ_MUL_TERMS = 2 };
bool dq_q8_add_terms(const dq_q8_pair *p, float terms[DQ_ADD_TERMS]);
bool dq_q8_mul_terms(const dq_q8_pair *p, float terms[DQ_MUL_TERMS]);

/** Finds numbers for the same kernels, of which `low` gives no result above the exact one and `high` none
 * below it: where both give the same result, it is the exact one. Few pairs have two results. False: floats
 * are too coarse for such ratios. */
bool dq_q8_add_bounds(const dq_q8_pair *p, float low[DQ_ADD_TERMS], float high[DQ_ADD_TERMS]);
bool dq_q8_mul_bounds(const dq_q8_pair *p, float low[DQ_MUL_TERMS], float high[DQ_MUL_TERMS]);

#endif
