/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is, for the files that implement its functions. */
#ifndef DQ_API_SESSION_H
#define DQ_API_SESSION_H

#include "api/handles.h"
#include "api/handover.h"
#include "base/fpenv.h"
#include "plan/rewrite_cache.h"

enum { DQ_SESSION_PLANS = 4 }; /* that a session keeps, for shapes that come again */

typedef struct dq_planned {
    dq_plan *plan;
    bool is_rewritten;
    dq_tensor *inputs; /* types and shapes that it was made for; dtype DQ_UNDEFINED: not given */
} dq_planned;

struct dq_session {
    dq_allocator allocator; /* of the session and all that it has; zeros: malloc */
    dq_model *model;
    dq_kernels kernels;
    dq_threads *threads;
    dq_budget budget; /* of the run */
    unsigned isa;
    bool fuse, honor_accuracy_level;
    dq_pass_set disabled_passes;
    dq_forced_algorithms forced_algorithms;
    const dq_rewritten_graph *rewritten; /* the nodes to plan, once made; NULL: anew */
    dq_exec exec;
    dq_planned plans[DQ_SESSION_PLANS]; /* the last run's first, then earlier runs'; plan NULL: none */
    void (*log)(void *arg, const dq_log_record *record);
    int (*progress)(void *arg, const dq_progress *progress);
    void *arg;                  /* of both */
    bool ran;                   /* the last run gave outputs */
    const dq_tensor **inputs;   /* the caller's, by position in the graph's inputs */
    dq_binding *bindings;       /* room for all inputs: those that a run has */
    const dq_value **requested; /* the graph's outputs, then those that dq_session_add_output added */
    uint32_t requested_count;
    dq_tensor **targets; /* the caller's, by position in `requested` */
    uint32_t requested_capacity, target_capacity;
    dq_handover handover;             /* outputs that are taken over, by position in `requested` */
    struct dq_inspection *inspection; /* what the caller was told of plans[0]; NULL: nothing */
};

/** DQ_BAD_INPUT: the tensor's type or shape is not what the input declares. */
dq_status dq_session_check_input(const dq_session *session, const dq_value *v, const dq_tensor *t,
                                 dq_error *err);
/** DQ_BAD_INPUT: an input without a default is not set. */
dq_status dq_session_check_inputs(const dq_session *session, dq_error *err);
/** Brings to plans[0] the plan for the inputs that are set, made now if there is none. Between
 * dq_fpenv_enter and dq_session_end. */
dq_status dq_session_plan(dq_session *session, uint32_t *binding_count, dq_error *err);
/** A plan for other inputs, which the caller frees. The session's own plans stay as they are, unless an input
 * with a default is among those that are given for the first time. Likewise. */
dq_status dq_session_plan_for(dq_session *session, const dq_binding *bindings, uint32_t binding_count,
                              dq_plan **out, dq_error *err);
/** Ends a call that planned or ran: the threads rest, the caller's floating-point environment is back. The
 * status is DQ_CANCELLED where the session was cancelled meanwhile. */
dq_status dq_session_end(dq_session *session, dq_fpenv callers, dq_status status, dq_error *err);

/** session_inspect.c: drops the lists of steps and lifetimes of a plan. Called before the plan is reshaped or
 * freed. */
void dq_session_forget_inspection(dq_session *session);

#endif
