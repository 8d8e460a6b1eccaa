/* SPDX-License-Identifier: Apache-2.0 */
/* When quantizing may multiply with the scale's reciprocal in place of dividing. */
#ifndef DQ_KERNELS_RECIPROCAL_H
#define DQ_KERNELS_RECIPROCAL_H

#include <math.h>
#include <stdbool.h>

/* Let r be 1 / s rounded. A product of x and r * (1 - DQ_RECIPROCAL_OFF) lies farther from the quotient x / s
 * than three roundings of 2^-24 and the quotient's own move it, on the side of 0; with r * (1 +
 * DQ_RECIPROCAL_OFF) on the other. The quotient is between them, and where both round to the same integer, so
 * does it. */
#define DQ_RECIPROCAL_OFF 0x1p-21f

/** Whether divide_body.h divides by s. */
static inline bool dq_divides(float s)
{
    return s >= 0x1p-60f && s <= 0x1p60f;
}

/** Neither s nor 1 / s is near the ends of float's range, so that the reciprocal has all its bits. */
static inline bool dq_reciprocal_serves(float s)
{
    return fabsf(s) >= 0x1p-100f && fabsf(s) <= 0x1p100f;
}

#endif
