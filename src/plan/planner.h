/* SPDX-License-Identifier: Apache-2.0 */
/* What plan.c and its neighbours know while a plan is made. Private to src/plan. */
#ifndef DQ_PLAN_PLANNER_H
#define DQ_PLAN_PLANNER_H

#include "plan/plan.h"

typedef struct dq_planner {
    dq_plan *plan;
    const dq_plan_request *request;
    dq_node *const *nodes;
    uint32_t node_count;
    uint32_t at; /* the position that is looked at */
    dq_interval *pieces;
    uint32_t piece_count, piece_capacity;
    uint32_t own_scratch; /* piece of the workers' scratch that stays where it is */
    uint32_t ahead;       /* piece of request->ahead */
} dq_planner;

static inline dq_slot *dq_planner_slot(const dq_planner *p, const dq_value *v)
{
    return dq_plan_slot(p->plan, v);
}

/** Makes the slots, all empty. */
dq_status dq_planner_make_slots(dq_planner *p, dq_error *err);

/** The last position in the list that reads the value, or a view of it that is planned already. */
static inline uint32_t *dq_planner_last_read(const dq_planner *p, const dq_value *v)
{
    return &p->plan->last_read[dq_plan_index(p->plan, v)];
}

/** The slot of an output; NULL: it is not wanted. */
static inline dq_slot *dq_planner_out(const dq_planner *p, const dq_step *step, uint32_t i)
{
    return step->call.out[i] ? dq_planner_slot(p, step->node->out[i]) : NULL;
}

/** Whether all that the node takes follows from initializers alone. */
bool dq_planner_all_fixed(const dq_planner *p, const dq_node *node);

/* ---- constants.c: values that are computed while planning --------------------------------------------- */

void dq_slot_set_constant(dq_slot *slot, const dq_tensor *t, bool fixed, bool persistent);
/** Gives the node's loose constants aligned data, but for the inputs in `except`. */
dq_status dq_planner_align(dq_planner *p, const dq_node *node, uint64_t except, dq_error *err);
bool dq_planner_can_fold(const dq_planner *p, const dq_step *step);
/** Runs the step now, or takes what was computed for another plan of the program. */
dq_status dq_planner_fold(dq_planner *p, dq_step *step, dq_error *err);

/* ---- allocate.c ------------------------------------------------------------------------------------------
 */

/** The third part of a plan, for all of its steps. */
dq_status dq_planner_allocate(dq_planner *p, dq_error *err);

/* ---- alias.c: memory that several values have ---------------------------------------------------------- */

/** Gives the outputs the memory of input 0 where they have its bytes, or a stretch of them; the step is then
 * needless. */
bool dq_planner_share(dq_planner *p, const dq_step *step);
/** The same where input 0 is constant, which the output then is, too. */
bool dq_planner_share_constant(dq_planner *p, const dq_step *step);
/** Puts inputs where they stand in the output of a step that is prepared, as far as nothing speaks against
 * it: their producers write there. Whether that holds for all; the step is then needless. */
bool dq_planner_join(dq_planner *p, const dq_step *step);
/** Gives an output the memory of an input that nobody reads any more. */
bool dq_planner_take_over(dq_planner *p, const dq_step *step, dq_slot *out);

/** output_binding.c: makes the plan's list of them, once all pieces have their places. */
dq_status dq_planner_list_output_bindings(dq_planner *p, dq_error *err);

#endif
