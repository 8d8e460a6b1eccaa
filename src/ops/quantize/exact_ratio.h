/* SPDX-License-Identifier: Apache-2.0 */
/* Requantization by a ratio of scales: the real-number formula, rounded once to nearest, ties to even.
 *
 * A product of two floats is exact in double, and a fused multiply-add gives the rounding error of a product
 * of two doubles. A value next to a tie is thereby compared with it exactly. Kernels multiply by one float,
 * which is fast and nearly always correct; for 8-bit results, prepare finds a float that is correct for every
 * possible value. */
#ifndef DQ_OPS_EXACT_RATIO_H
#define DQ_OPS_EXACT_RATIO_H

#include "ops/quantize/q8.h"

/** A positive ratio. Both numbers are exact: products of at most two floats, or of a float and an integer
 * below 2^29, none of them denormal. */
typedef struct dq_ratio {
    double numerator, denominator;
    double quotient; /* numerator / denominator, rounded */
} dq_ratio;

static inline dq_ratio dq_ratio_make(double numerator, double denominator)
{
    return (dq_ratio){numerator, denominator, numerator / denominator};
}

/** The integer next to a tie (an integer and a half), on the side that `order` gives: the sign of value minus
 * tie, or 0 for the even one. */
static inline double dq_next_to_tie(double tie, int order)
{
    const double below = tie - 0.5;
    return order < 0 || (order == 0 && fmod(below, 2) == 0) ? below : below + 1;
}

/** Rounds `value`, whose relative error is about 2^-50, to the nearest integer. Returns whether it is so
 * close to *tie that this may be the wrong one. Values beyond 2^20 are clamped to it. */
static inline bool dq_round_unless_tied(double value, double *nearest, double *tie)
{
    const double most = 0x1p20, shift = 0x1.8p52, close = 1e-6;
    value = value < -most ? -most : value > most ? most : value;
    *nearest = (value + shift) - shift;
    const double rest = value - *nearest;
    *tie = *nearest + (rest < 0 ? -0.5 : 0.5);
    return fabs(rest) > 0.5 - close;
}

/** Returns s * ratio, rounded. Requires |s| below 2^53, and |result| is at most 2^20. */
double dq_ratio_round(const dq_ratio *ratio, double s);

/** The quantized value of s * ratio. */
static inline int dq_ratio_quantize(const dq_ratio *ratio, const dq_q8 *q, double s)
{
    const double v = dq_ratio_round(ratio, s) + q->zero;
    return v > q->max ? q->max : v < q->min ? q->min : (int)v;
}

/** Finds a float m with rint(s * m) = dq_ratio_quantize(s) - zero point, both saturated, for all integers s
 * of at most `most` in magnitude (below 2^24); the product is rounded to float. Returns false if none near
 * the ratio is correct. */
bool dq_ratio_multiplier(const dq_ratio *ratio, const dq_q8 *q, int32_t most, float *m);

/** Two operands and their result, all of 8 bits; scales are positive and normal. */
typedef struct dq_q8_pair {
    dq_q8 a, b, y;
} dq_q8_pair;

/** The quantized sum and product of two quantized values. */
int dq_q8_add(const dq_q8_pair *p, int a, int b);
int dq_q8_mul(const dq_q8_pair *p, int a, int b);

/** Find parameters of the kernels qlinear_add and qlinear_mul with which all 65,536 pairs have these results.
 * Of a sum: both ratios and the constant term with a as the first operand, then the same with b as the first
 * one. Of a product: the ratio and the constant term. False: none near the exact ones are correct. */
enum { DQ_ADD_TERMS = 6, DQ_MUL_TERMS = 2 };
bool dq_q8_add_terms(const dq_q8_pair *p, float terms[DQ_ADD_TERMS]);
bool dq_q8_mul_terms(const dq_q8_pair *p, float terms[DQ_MUL_TERMS]);

/** Find parameters of the same kernels: with `low` no result is above the exact one, with `high` none is
 * below it. If both give the same result, it is the exact one; few pairs differ. False: floats are too coarse
 * for such ratios. */
bool dq_q8_add_bounds(const dq_q8_pair *p, float low[DQ_ADD_TERMS], float high[DQ_ADD_TERMS]);
bool dq_q8_mul_bounds(const dq_q8_pair *p, float low[DQ_MUL_TERMS], float high[DQ_MUL_TERMS]);

#endif
