/* SPDX-License-Identifier: Apache-2.0 */
/* The session struct, for the files that implement its functions. */
#ifndef DQ_API_SESSION_H
#define DQ_API_SESSION_H

#include "api/handles.h"
#include "api/handover.h"
#include "base/fpenv.h"
#include "plan/rewrite_cache.h"

enum { DQ_SESSION_PLANS = 4 }; /* Number of plans that a session keeps, for shapes that occur again. */

typedef struct dq_planned {
    dq_plan *plan;
    bool is_rewritten;
    dq_tensor *inputs; /* Types and shapes that it was made for; dtype DQ_UNDEFINED: not set. */
} dq_planned;

struct dq_session {
    dq_allocator allocator; /* Of the session and all its memory; zeros: malloc. */
    dq_model *model;
    dq_kernels kernels;
    dq_threads *threads;
    dq_budget budget; /* Of the current run. */
    unsigned isa;
    bool fuse, honor_accuracy_level;
    dq_pass_set disabled_passes;
    dq_forced_algorithms forced_algorithms;
    const dq_rewritten_graph *rewritten; /* The nodes to plan; NULL: not made yet, or obsolete. */
    dq_exec exec;
    /* The last run's first, then those of earlier runs; plan NULL: none. */
    dq_planned plans[DQ_SESSION_PLANS];
    void (*log)(void *arg, const dq_log_record *record);
    int (*progress)(void *arg, const dq_progress *progress);
    void *arg;                  /* Argument of both functions. */
    bool ran;                   /* The last run succeeded: outputs are available. */
    const dq_tensor **inputs;   /* The caller's, by position in the graph's inputs. */
    dq_binding *bindings;       /* Bindings of a run; has the capacity for all inputs. */
    const dq_value **requested; /* The graph's outputs, then those of dq_session_add_output. */
    uint32_t requested_count;
    dq_tensor **targets; /* The caller's, by position in `requested`. */
    uint32_t requested_capacity, target_capacity;
    dq_handover handover;             /* Outputs that are taken over, by position in `requested`. */
    struct dq_inspection *inspection; /* Data about plans[0] that was returned to the caller; NULL: none. */
};

/** Checks an input tensor. DQ_BAD_INPUT: its type or shape does not match the input's declaration. */
dq_status dq_session_check_input(const dq_session *session, const dq_value *v, const dq_tensor *t,
                                 dq_error *err);
/** Checks that all inputs are set. DQ_BAD_INPUT: an input without a default is not. */
dq_status dq_session_check_inputs(const dq_session *session, dq_error *err);
/** Moves the plan for the inputs that are set to plans[0], and makes it if there is none. Call between
 * dq_fpenv_enter and dq_session_end. */
dq_status dq_session_plan(dq_session *session, uint32_t *binding_count, dq_error *err);
/** Makes a plan for other inputs, which the caller frees. The session's own plans stay, unless `given`
 * overrides the default of an input for the first time. Call between dq_fpenv_enter and dq_session_end. */
dq_status dq_session_plan_for(dq_session *session, const dq_binding *bindings, uint32_t binding_count,
                              dq_plan **out, dq_error *err);
/** Ends a call that planned or ran: lets the threads sleep, and restores the caller's floating-point
 * environment. Returns `status`, or DQ_CANCELLED if the session was cancelled meanwhile. */
dq_status dq_session_end(dq_session *session, dq_fpenv callers, dq_status status, dq_error *err);

/** session_inspect.c: frees the lists of steps and lifetimes of a plan. Call before the plan is reshaped or
 * freed. */
void dq_session_forget_inspection(dq_session *session);

#endif
