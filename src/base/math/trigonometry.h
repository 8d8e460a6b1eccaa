/* SPDX-License-Identifier: Apache-2.0 */
/* The reduction of angles. */
#ifndef DQ_BASE_TRIGONOMETRY_H
#define DQ_BASE_TRIGONOMETRY_H

#include "base/math/double_double.h"

/* From here on multiples of pi/2 in four doubles are not exact. */
#define FAR_ANGLE 0x1p20

/** The rest r of x = n pi/2 + r, |r| <= pi/4, for finite x with |x| >= FAR_ANGLE; returns n modulo 4. */
int dq_reduce_far_angle(double x, dd *r);

#endif
