/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding: pairs of a head's elements are turned by the angle of their position. */
#ifndef DQ_OPS_ROTARY_H
#define DQ_OPS_ROTARY_H

#include "ops/op.h"

/** Turns the first 2 * half elements of x: a pair are elements i and i + half, or, interleaved, 2 * i and 2 *
 * i + 1; cosines and sines are those of pair i. */
void dq_rotate(float *x, size_t half, bool interleaved, const float *cosines, const float *sines);

/** Fails unless cosines and sines (inputs `cos` and `sin`) are tables of the same two axes. */
dq_status dq_rotary_check(const dq_op_call *call, uint32_t cos, uint32_t sin, dq_error *err);

/** Row `position` of both tables as floats, one behind the other (to[0 … half-1], to[half … 2*half-1]). */
void dq_rotary_row(const dq_op_call *call, uint32_t cos, uint32_t sin, size_t position, float *to);

#endif
