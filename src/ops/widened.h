/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that compute on floats, for float16 and bfloat16, too: inputs of 16 bits are widened into the
 * call's scratch before the operator runs, constant ones once for all runs, and its results rounded once
 * more. Their schemas' types are one for both, so that the operator sees a call of floats in prepare and run.
 */
#ifndef DQ_OPS_WIDENED_H
#define DQ_OPS_WIDENED_H

#include "ops/op.h"

typedef dq_status dq_prepare_fn(dq_op_call *call, dq_error *err);
typedef dq_status dq_run_fn(const dq_op_call *call, dq_error *err);

/** What prepare (may be NULL) and run do: to the call of floats where an input or output has 16 bits, if
 * `when`, else to the call itself. */
dq_status dq_widened_prepare(dq_op_call *call, bool when, dq_prepare_fn *prepare, dq_error *err);
dq_status dq_widened_run(const dq_op_call *call, bool when, dq_run_fn *run, dq_error *err);

/** An operator that is widened when that, which depends on the call's node alone, is true. */
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
