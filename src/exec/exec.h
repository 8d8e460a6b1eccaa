/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: runs the steps of a plan. After the first run of a plan only dynamic steps, strings and items
 * of sequences allocate, if they grow. */
#ifndef DQ_EXEC_EXEC_H
#define DQ_EXEC_EXEC_H

#include "plan/plan.h"

typedef struct dq_exec {
    const dq_allocator *allocator; /* Of the buffer and the strings; NULL: malloc. */
    void *buffer;                  /* plan->buffer_size bytes. */
    size_t buffer_capacity;
    dq_arena strings; /* Bytes of string tensors, and items of sequences, of the last run. */
    /* For each requested value of the plan: the caller's tensor (not of strings) that holds the value after
     * the run, or NULL. They do not overlap one another. NULL: no targets. */
    dq_tensor *const *targets;
    /* A failed run may be repeated: inputs are overwritten only by idempotent steps. */
    bool may_retry;
    void (*trace)(void *arg, const dq_trace_event *event);
    void *trace_arg;
} dq_exec;

/** Runs the plan. The bindings must be for the values, types and shapes of the plan. Outputs are in
 * dq_plan_output until the next run. The trace has no events for steps of subgraphs: the step that holds them
 * includes their time. */
dq_status dq_exec_run(dq_exec *exec, dq_plan *plan, const dq_binding *bindings, uint32_t binding_count,
                      dq_error *err);

/** The same for the plan of a subgraph, with an `exec` of its own. Strings and items go to the arena of the
 * outer run, so that they outlive this one. */
dq_status dq_exec_run_inner(dq_exec *exec, dq_plan *plan, const dq_binding *bindings, uint32_t binding_count,
                            dq_arena *strings, dq_error *err);

/** Grows memory of the allocator (NULL: malloc), aligned to 64 bytes, and keeps its first `keep` bytes. Never
 * NULL afterwards, so that empty tensors have an address. With `keep` 0, memory that grows gets a quarter
 * more, which is only address space until it is written. */
dq_status dq_exec_reserve(const dq_allocator *allocator, void **memory, size_t *capacity, size_t size,
                          size_t keep, const char *what, dq_error *err);

/** Initializes an exec that has no memory yet. */
void dq_exec_init(dq_exec *exec, const dq_allocator *allocator);
void dq_exec_free(dq_exec *exec);

#endif
