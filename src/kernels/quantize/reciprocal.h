/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of quantization: their bounds, and the conditions under which quantizing may multiply by the
 * scale's reciprocal instead of dividing. */
#ifndef DQ_KERNELS_RECIPROCAL_H
#define DQ_KERNELS_RECIPROCAL_H

#include <math.h>
#include <stdbool.h>

/* Bounds of a quotient from the reciprocal. Let r be 1 / s, rounded. The product of x and r * (1 -
 * DQ_RECIPROCAL_OFF) is nearer to 0 than the rounded quotient x / s: the factor moves it by more than three
 * roundings of 2^-24 and the quotient's own rounding. The product with r * (1 + DQ_RECIPROCAL_OFF) is farther
 * from 0. The quotient is between the two; if both round to the same integer, so does the quotient. */
#define DQ_RECIPROCAL_OFF 0x1p-21f

/** Beyond this quotient, in magnitude, each zero point gives a bound of a byte: quantizing to bytes may clamp
 * to it before it adds the zero point. */
#define DQ_FAR_QUOTIENT 131072.0f

/** Whether divide_body.h is correct for the divisor s. */
static inline bool dq_divides(float s)
{
    return s >= 0x1p-60f && s <= 0x1p60f;
}

/** Whether neither s nor 1 / s is near the limits of float's range, so that the reciprocal has full
 * precision. */
static inline bool dq_reciprocal_serves(float s)
{
    return fabsf(s) >= 0x1p-100f && fabsf(s) <= 0x1p100f;
}

#endif
