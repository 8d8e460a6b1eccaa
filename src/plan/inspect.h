/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection of a plan of the main graph: its steps, the nodes of the model that each step covers, and the
 * liveness intervals of its values. All of it follows from the plan and from dq_node.made_for, so that plans
 * store nothing for it. */
#ifndef DQ_PLAN_INSPECT_H
#define DQ_PLAN_INSPECT_H

#include "plan/plan.h"

/** A step that runs. */
typedef struct dq_run_step {
    const dq_plan *plan; /* The plan of the step: that of the batch tiles, or that of the whole batch. */
    const dq_step *step;
    uint64_t work, macs, bytes; /* Of all batch tiles; 0: a dynamic step. */
    const dq_node **written;
    uint32_t written_count;
} dq_run_step;

typedef struct dq_run_steps {
    dq_run_step *steps; /* In the order of a run: steps of batch tiles first. */
    uint32_t count;
} dq_run_steps;

/** Lists the steps. One step covers each node of the graph as written that `requested` needs. Exceptions are
 * nodes that are folded, and nodes without a step whose neighbors have none:
 *
 *  - A node of the planned list belongs to its own step. Without one (a view; a Concat whose inputs are
 * computed in place) it belongs to that of its first input, else to that of its first reader.
 *
 *  - A node that the rewriter replaced belongs to the node that was made for it or produces its result.
 *
 *  - Any other node belongs to the first step of its readers: a DequantizeLinear to its consumer. */
dq_status dq_plan_steps(const dq_plan *plan, const dq_value *const *requested, uint32_t requested_count,
                        dq_arena *arena, dq_run_steps *out, dq_error *err);

/** A value in the buffer, with its liveness interval. */
typedef struct dq_value_lifetime {
    const dq_value *value, *memory_of; /* See dq_lifetime. */
    size_t offset, bytes;
    uint32_t first, last; /* Indices of steps; the number of steps stands for the end of a run. */
} dq_value_lifetime;

/** Lists the values that are in the buffer, by their first step. */
dq_status dq_plan_lifetimes(const dq_plan *plan, const dq_value *const *requested, uint32_t requested_count,
                            dq_arena *arena, dq_value_lifetime **out, size_t *count, dq_error *err);

/** Bytes of the constants that steps or outputs read, packed or not. */
size_t dq_plan_constant_bytes(const dq_plan *plan);

#endif
