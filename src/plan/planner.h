/* SPDX-License-Identifier: Apache-2.0 */
/* The planner's state while it makes a plan. Private to src/plan. */
#ifndef DQ_PLAN_PLANNER_H
#define DQ_PLAN_PLANNER_H

#include "plan/plan.h"

typedef struct dq_planner {
    dq_plan *plan;
    const dq_plan_request *request;
    dq_node *const *nodes;
    uint32_t node_count;
    uint32_t at; /* Position of the current node. */
    dq_interval *intervals;
    uint32_t interval_count, piece_capacity;
    uint32_t pinned_scratch; /* Index of the interval of the workers' scratch whose offset is the same for all
                             steps. */
    uint32_t ahead;          /* Index of the interval of request->ahead. */
} dq_planner;

static inline dq_slot *dq_planner_slot(const dq_planner *p, const dq_value *v)
{
    return dq_plan_slot(p->plan, v);
}

/** Makes the slots, all empty. */
dq_status dq_planner_make_slots(dq_planner *p, dq_error *err);

/** The last position in the list that reads the value or one of its views that are already planned. */
static inline uint32_t *dq_planner_last_read(const dq_planner *p, const dq_value *v)
{
    return &p->plan->last_read[dq_plan_index(p->plan, v)];
}

/** The slot of an output; NULL: it is not requested. */
static inline dq_slot *dq_planner_out(const dq_planner *p, const dq_step *step, uint32_t i)
{
    return step->call.out[i] ? dq_planner_slot(p, step->node->out[i]) : NULL;
}

/** Whether all inputs and captures of the node depend on initializers only. */
bool dq_planner_all_fixed(const dq_planner *p, const dq_node *node);

/* ---- constants.c: constant folding ------------------------------------------------------------------- */

void dq_slot_set_constant(dq_slot *slot, const dq_tensor *t, bool fixed, bool persistent);
/** Copies the node's unaligned constants to aligned memory, except for the inputs in `except`. */
dq_status dq_planner_align(dq_planner *p, const dq_node *node, uint64_t except, dq_error *err);
bool dq_planner_can_fold(const dq_planner *p, const dq_step *step);
/** Runs the step now, or uses the result that another plan of the program computed. */
dq_status dq_planner_fold(dq_planner *p, dq_step *step, dq_error *err);

/* ---- allocate.c -------------------------------------------------------------------------------------- */

/** The third phase of planning: prepares all steps and plans their memory. */
dq_status dq_planner_allocate(dq_planner *p, dq_error *err);

/* ---- alias.c: values that share memory ---------------------------------------------------------------- */

/** Makes the outputs views of input 0 if they are its bytes or a contiguous part of them. True: the step need
 * not run. */
bool dq_planner_make_view(dq_planner *p, const dq_step *step);
/** The same if input 0 is constant; the outputs are then constant, too. */
bool dq_planner_share_constant(dq_planner *p, const dq_step *step);
/** Zero-copy Concat: places inputs of a prepared step in its output, so that their producers write there, as
 * far as nothing prevents it. True if it does so for all inputs: the step need not run. */
bool dq_planner_concat_in_place(dq_planner *p, const dq_step *step);
/** In-place execution: gives an output the memory of an input that no later step reads. */
bool dq_planner_reuse_input(dq_planner *p, const dq_step *step, dq_slot *out);

/** output_binding.c: lists the plan's output bindings, after all intervals have offsets. */
dq_status dq_planner_list_output_bindings(dq_planner *p, dq_error *err);

#endif
