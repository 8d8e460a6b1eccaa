/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that the caller takes over (dq_session_take_output). After an output is taken once, each run
 * computes it in a tensor that is allocated for the caller before the run, with the executor's targets
 * (exec/bound_outputs.h). Taking it hands that tensor over. Outputs without memory of their own are copied.
 */
#ifndef DQ_API_HANDOVER_H
#define DQ_API_HANDOVER_H

#include "plan/plan.h"

typedef struct dq_handover_entry {
    bool active;          /* Taken in some run: later runs write to `next` if they can. */
    bool placed_interval; /* The last run's output was taken. */
    bool bound;           /* `next` holds the last run's output. */
    dq_tensor *next;      /* The tensor for the caller, kept from run to run until it is taken; NULL: none. */
} dq_handover_entry;

/** One entry for each requested value of a session, by position. All zeros except the allocator: empty. */
typedef struct dq_handover {
    /* Of all this memory, and of tensors that are handed over; NULL: malloc. */
    const dq_allocator *allocator;
    dq_handover_entry *entries;
    dq_tensor **targets; /* For dq_exec.targets: the caller's own tensor, or `next`, or NULL. */
    uint32_t count, entry_capacity, target_capacity;
} dq_handover;

/** Adds entries until there are `count`. */
dq_status dq_handover_grow(dq_handover *h, uint32_t count, dq_error *err);
void dq_handover_free(dq_handover *h);

/** Fills h->targets; called before each run of a plan. `callers`: the tensors of dq_session_set_output. */
dq_status dq_handover_prepare(dq_handover *h, const dq_plan *plan, dq_tensor *const *callers, dq_error *err);

/** Gives output i of a successful run, if it was not taken yet, as a tensor for the caller, who frees it with
 * dq_tensor_free. `requested` are the plan's. */
dq_status dq_handover_take(dq_handover *h, uint32_t i, const dq_plan *plan, const dq_value *const *requested,
                           dq_tensor **out, dq_error *err);

#endif
