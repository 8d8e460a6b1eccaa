/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding: rotates pairs of elements of a head by an angle that depends on the position. */
#ifndef DQ_OPS_ROTARY_H
#define DQ_OPS_ROTARY_H

#include "ops/op.h"

/** Rotates the first 2 * half elements of x in place. Pair i is elements i and i + half, or if `interleaved`,
 * 2 * i and 2 * i + 1. Its angle has cosines[i] and sines[i]. */
void dq_rotate(float *x, size_t half, bool interleaved, const float *cosines, const float *sines);

/** Fails unless inputs `cos` and `sin` are tables of rank 2 and of the same shape. */
dq_status dq_rotary_check(const dq_op_call *call, uint32_t cos, uint32_t sin, dq_error *err);

/** Loads row `position` of both tables as floats: cosines to to[0 … half - 1], sines to
 * to[half … 2 * half - 1]. */
void dq_rotary_row(const dq_op_call *call, uint32_t cos, uint32_t sin, size_t position, float *to);

#endif
