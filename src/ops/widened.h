/* SPDX-License-Identifier: Apache-2.0 */
/* Adapter that runs operators for float32 on float16 and bfloat16. It widens 16-bit inputs into the call's
 * scratch before the operator runs (constant ones once for all runs) and rounds the results once more. In the
 * schemas of these operators one type constraint covers inputs and outputs, so prepare and run see a call of
 * floats. */
#ifndef DQ_OPS_WIDENED_H
#define DQ_OPS_WIDENED_H

#include "ops/op.h"

typedef dq_status dq_prepare_fn(dq_op_call *call, dq_error *err);
typedef dq_status dq_run_fn(const dq_op_call *call, dq_error *err);

/** Call `prepare` (may be NULL) and `run`: with the float32 call if `when` and an input or output has 16
 * bits, else with `call` itself. */
dq_status dq_widened_prepare(dq_op_call *call, bool when, dq_prepare_fn *prepare, dq_error *err);
dq_status dq_widened_run(const dq_op_call *call, bool when, dq_run_fn *run, dq_error *err);

/** Defines an operator that is widened if `when`, an expression that depends on the call's node alone. */
#define DQ_OP_WIDENED(op, when, infer, prepare, run, flags)                                                  \
    static dq_status op##_prepare_any(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return dq_widened_prepare(call, when, prepare, err);                                                 \
    }                                                                                                        \
    static dq_status op##_run_any(const dq_op_call *call, dq_error *err)                                     \
    {                                                                                                        \
        return dq_widened_run(call, when, run, err);                                                         \
    }                                                                                                        \
    const dq_op_impl op = {infer, op##_prepare_any, op##_run_any, flags};

#endif
