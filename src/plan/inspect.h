/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan of the main graph says of itself, for readers: its steps with the nodes of the model that each
 * of them covers, and where its values live in the buffer. Nothing of this is kept for plans that nobody
 * looks into: it follows from the plan, and from dq_node.made_for. */
#ifndef DQ_PLAN_INSPECT_H
#define DQ_PLAN_INSPECT_H

#include "plan/plan.h"

/** A step that runs. */
typedef struct dq_run_step {
    const dq_plan *plan; /* whose step it is: of some slices at a time, or of all */
    const dq_step *step;
    uint64_t work; /* of all slices; 0: late */
    const dq_node **written;
    uint32_t written_count;
} dq_run_step;

typedef struct dq_run_steps {
    dq_run_step *steps; /* in the order of a run: those of slices first */
    uint32_t count;
} dq_run_steps;

/** Lists the steps. Each node of the graph as written that `requested` needs is covered by one step, but for
 * those that are computed while planning, and those without a step or a neighbour that has one:
 *  - a node of the list that is planned belongs to its own step, or, where it takes none (a view; a Concat
 * whose inputs are computed in place), to that of its first input, else to that of its first reader;
 *  - a node that fusion replaced belongs to the node that was made for it or gives its result;
 *  - any other belongs to the first step among those of its readers: a DequantizeLinear to what reads it. */
dq_status dq_plan_steps(const dq_plan *plan, const dq_value *const *requested, uint32_t requested_count,
                        dq_arena *arena, dq_run_steps *out, dq_error *err);

/** A value in the buffer. */
typedef struct dq_life {
    const dq_value *value, *memory_of; /* see dq_lifetime */
    size_t offset, bytes;
    uint32_t first, last; /* steps; the number of steps: the end of a run */
} dq_life;

/** Lists the values that have their place in the buffer, by their first step. */
dq_status dq_plan_lives(const dq_plan *plan, const dq_value *const *requested, uint32_t requested_count,
                        dq_arena *arena, dq_life **out, size_t *count, dq_error *err);

/** Bytes of the constants that steps or outputs read, packed or not. */
size_t dq_plan_constant_bytes(const dq_plan *plan);

#endif
