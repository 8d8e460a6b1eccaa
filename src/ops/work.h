/* SPDX-License-Identifier: Apache-2.0 */
/* The work of an operator, which dq_limits.work bounds: a number that follows from shapes (and a few values
 * that infer reads, too), never from the kernels or the threads that do it. dqrun.h says what is counted. */
#ifndef DQ_OPS_WORK_H
#define DQ_OPS_WORK_H

#include "ops/op.h"

/** The node's work; UINT64_MAX where it is more. The outputs have their shapes. */
uint64_t dq_call_work(const dq_op_call *call);

/** The part of it that infer itself takes time for, before the outputs have shapes; 0 for most operators. */
uint64_t dq_call_infer_work(const dq_op_call *call);

/** Sum and product that stop at UINT64_MAX. */
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
    dq_progress reported; /* phase and counts of the next report, but for `work` */
} dq_budget;

/** False, once more than the limit is used up. */
static inline bool dq_budget_take(dq_budget *budget, uint64_t work)
{
    budget->used = dq_work_add(budget->used, work);
    return budget->used <= budget->limit;
}

#endif
