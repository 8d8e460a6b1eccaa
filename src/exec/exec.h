/* Runs the steps of a plan. Allocates nothing after the first run of a plan, but what late steps and strings
 * grow by. */
#ifndef DQ_EXEC_EXEC_H
#define DQ_EXEC_EXEC_H

#include "plan/plan.h"

typedef struct dq_exec {
    void *buffer; /* plan->buffer_size bytes */
    size_t buffer_capacity;
    dq_arena strings; /* bytes of string tensors of the last run */
    void (*trace)(void *arg, const dq_trace_event *event);
    void *trace_arg;
} dq_exec;

/** Runs the plan over tensors for the same values, of the same types and shapes, that it was made for.
 * Outputs are then in dq_plan_output, until the next run. */
dq_status dq_exec_run(dq_exec *exec, dq_plan *plan, const dq_given *given, uint32_t given_count,
                      dq_error *err);

void dq_exec_free(dq_exec *exec);

#endif
