/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of a plan. Allocates nothing after the first run of a plan, but what dynamic steps, strings
 * and the items of sequences grow by. */
#ifndef DQ_EXEC_EXEC_H
#define DQ_EXEC_EXEC_H

#include "plan/plan.h"

typedef struct dq_exec {
    const dq_allocator *allocator; /* of the buffer and the strings; NULL: malloc */
    void *buffer;                  /* plan->buffer_size bytes */
    size_t buffer_capacity;
    dq_arena strings; /* bytes of string tensors, and items of sequences, of the last run */
    dq_tensor *const
        *targets; /* of the plan's wanted values: the caller's tensor, not of strings, that has the
                     value after the run, or NULL; NULL: none. They do not overlap one another */
    bool repeats; /* a run that fails may be repeated: inputs are overwritten only where that changes nothing
                   */
    void (*trace)(void *arg, const dq_trace_event *event);
    void *trace_arg;
} dq_exec;

/** Runs the plan over tensors for the same values, of the same types and shapes, that it was made for.
 * Outputs are then in dq_plan_output, until the next run. Steps of inner graphs are not traced: the step that
 * holds them is, with all of their time. */
dq_status dq_exec_run(dq_exec *exec, dq_plan *plan, const dq_binding *bindings, uint32_t binding_count,
                      dq_error *err);

/** The same for the plan of an inner graph, with an `exec` of its own: strings and items go to the arena of
 * the run around it, so that they outlive this one. */
dq_status dq_exec_run_inner(dq_exec *exec, dq_plan *plan, const dq_binding *bindings, uint32_t binding_count,
                            dq_arena *strings, dq_error *err);

/** Grows memory of the allocator (NULL: malloc), aligned to 64 bytes; the first `keep` bytes of what was in
 * it stay. Never NULL afterwards, so that empty tensors have an address too. What grows and need not stay
 * gets a quarter more, which is address space until somebody writes there. */
dq_status dq_exec_reserve(const dq_allocator *allocator, void **memory, size_t *capacity, size_t size,
                          size_t keep, const char *what, dq_error *err);

/** An exec without memory yet. */
void dq_exec_init(dq_exec *exec, const dq_allocator *allocator);
void dq_exec_free(dq_exec *exec);

#endif
