/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of operators that broadcast some operands: the result is walked in runs, along which every
 * operand either moves by one element or stays. */
#ifndef DQ_OPS_BROADCAST_H
#define DQ_OPS_BROADCAST_H

#include "ops/op.h"

enum { DQ_LOOP_OPERANDS = 8 };

typedef struct dq_loop {
    size_t operands, rank; /* rank at least 1 */
    size_t dims[DQ_MAX_RANK];
    size_t strides[DQ_LOOP_OPERANDS][DQ_MAX_RANK]; /* in elements */
} dq_loop;

/** Results at … at + n - 1, n >= 1: element k of operand i is offset[i] + k * step[i], step 0 or 1. An
 * operand of one element always has step 0. */
typedef struct dq_loop_run {
    size_t at, n;
    size_t offset[DQ_LOOP_OPERANDS], step[DQ_LOOP_OPERANDS];
} dq_loop_run;

typedef void dq_loop_fn(void *arg, const dq_loop_run *run);

/** Gives output 0 the broadcast shape of the given inputs, and type `dtype`. */
dq_status dq_loop_infer(dq_op_call *call, const uint32_t inputs[], size_t count, dq_dtype dtype,
                        dq_error *err);
/** The loop over output 0; the inputs' order is that of the operands. */
void dq_loop_plan(const dq_op_call *call, const uint32_t inputs[], size_t count, dq_loop *loop);
/** Calls fn for the runs of results begin … end - 1. */
void dq_loop_range(const dq_loop *loop, size_t begin, size_t end, dq_loop_fn *fn, void *arg);

#endif
