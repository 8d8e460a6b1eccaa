/* SPDX-License-Identifier: Apache-2.0 */
/* Argument reduction of the trigonometric functions. */
#ifndef DQ_BASE_TRIGONOMETRY_H
#define DQ_BASE_TRIGONOMETRY_H

#include "base/math/double_double.h"

/* From this magnitude on, multiples of pi/2 in four doubles are not exact. */
#define FAR_ANGLE 0x1p20

/** Reduces finite x with |x| >= FAR_ANGLE: x = n pi/2 + r with |r| <= pi/4. Returns n modulo 4. */
int dq_reduce_far_angle(double x, dd *r);

#endif
