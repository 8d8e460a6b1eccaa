/* SPDX-License-Identifier: Apache-2.0 */
/* Work estimate of an operator, which dq_limits.work bounds. It depends on shapes (and on a few values that
 * infer reads), never on kernels or threads. dqrun.h defines the unit. */
#ifndef DQ_OPS_WORK_H
#define DQ_OPS_WORK_H

#include "ops/op.h"

/** The node's work, saturated to UINT64_MAX. Requires the outputs' shapes. */
uint64_t dq_call_work(const dq_op_call *call);

/** The multiply-adds among that work, for matrix products, convolutions, recurrent networks and attention; 0
 * for other operators. */
uint64_t dq_call_macs(const dq_op_call *call, uint64_t work);

/** Bytes of the inputs and outputs as they are stored, each counted once: the least that a run moves.
 * Requires the outputs' shapes. */
uint64_t dq_call_bytes(const dq_op_call *call);

/** The part of the work that infer itself does, before the outputs have shapes; 0 for most operators. */
uint64_t dq_call_infer_work(const dq_op_call *call);

/** Saturating sum and product: they stop at UINT64_MAX. */
static inline uint64_t dq_work_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}
static inline uint64_t dq_work_mul(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/** Counts one run's work against its limit, and reports it to the caller's progress callback. */
typedef struct dq_budget {
    uint64_t limit, used;
    int (*progress)(void *arg, const dq_progress *progress); /* NULL: none. Non-zero cancels the run */
    void *progress_arg;
    dq_progress reported; /* phase and counts of the next report; `work` is filled in by the report */
} dq_budget;

/** Returns false if more than the limit is used up. */
static inline bool dq_budget_take(dq_budget *budget, uint64_t work)
{
    budget->used = dq_work_add(budget->used, work);
    return budget->used <= budget->limit;
}

#endif
