/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs that the caller takes over (dq_session_take_output). Once an output has been taken, each run
 * computes it in a tensor that is allocated for the caller before the run, through the executor's targets
 * (exec/bound_outputs.h); taking it hands that tensor over. Outputs that have no memory of their own are
 * copied. */
#ifndef DQ_API_HANDOVER_H
#define DQ_API_HANDOVER_H

#include "plan/plan.h"

typedef struct dq_handover_entry {
    bool active;     /* taken in some run: later ones write to `next` where they can */
    bool taken;      /* the last run's output was */
    bool bound;      /* `next` has the last run's output */
    dq_tensor *next; /* for the caller, kept from run to run until it is taken; NULL: none */
} dq_handover_entry;

/** One entry for each wanted value of a session, by position. Zeros but for the allocator: empty. */
typedef struct dq_handover {
    const dq_allocator *allocator; /* of all this, and of what is handed over; NULL: malloc */
    dq_handover_entry *entries;
    dq_tensor **targets; /* for dq_exec.targets: the caller's own, or `next`, or NULL */
    uint32_t count, entry_capacity, target_capacity;
} dq_handover;

/** Adds entries until there are `count`. */
dq_status dq_handover_grow(dq_handover *h, uint32_t count, dq_error *err);
void dq_handover_free(dq_handover *h);

/** Before each run of a plan: fills h->targets. `callers`: the tensors of dq_session_set_output. */
dq_status dq_handover_prepare(dq_handover *h, const dq_plan *plan, dq_tensor *const *callers, dq_error *err);

/** After a run that succeeded: output i, not taken yet, as a tensor for the caller, who frees it with
 * dq_tensor_free. `requested` are the plan's. */
dq_status dq_handover_take(dq_handover *h, uint32_t i, const dq_plan *plan, const dq_value *const *requested,
                           dq_tensor **out, dq_error *err);

#endif
