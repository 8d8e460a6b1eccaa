/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting loop. It walks the result in contiguous segments; along one, each operand advances by one
 * element or stays at one (step 1 or 0). */
#ifndef DQ_OPS_BROADCAST_H
#define DQ_OPS_BROADCAST_H

#include "ops/op.h"

enum { DQ_LOOP_OPERANDS = 8 };

typedef struct dq_loop {
    size_t operands, rank; /* rank at least 1 */
    size_t dims[DQ_MAX_RANK];
    size_t strides[DQ_LOOP_OPERANDS][DQ_MAX_RANK]; /* in elements */
} dq_loop;

/** A segment: results at … at + n - 1, n >= 1. Element k of operand i is at offset[i] + k * step[i], where
 * step is 0 or 1. An operand of one element always has step 0. */
typedef struct dq_loop_segment {
    size_t at, n;
    size_t offset[DQ_LOOP_OPERANDS], step[DQ_LOOP_OPERANDS];
} dq_loop_segment;

typedef void dq_loop_fn(void *arg, const dq_loop_segment *run);

/** Sets output 0 to the broadcast shape of the `count` inputs, and to type `dtype`. */
dq_status dq_loop_infer(dq_op_call *call, const uint32_t inputs[], size_t count, dq_dtype dtype,
                        dq_error *err);
/** Plans the loop over output 0. Operand k is input inputs[k]. */
void dq_loop_plan(const dq_op_call *call, const uint32_t inputs[], size_t count, dq_loop *loop);
/** Calls fn for the segments of results begin … end - 1. */
void dq_loop_range(const dq_loop *loop, size_t begin, size_t end, dq_loop_fn *fn, void *arg);

#endif
