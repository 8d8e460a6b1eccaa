/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: the steps of a graph for one set of input shapes, and the memory of every value. A plan belongs to
 * one session. A run writes only data pointers and the results of dynamic steps.
 *
 * Planning has three phases. The outline does not depend on shapes: slots, nodes that are needed, a step for
 * each of them, types, and values that depend on initializers only. Shape inference then sets shapes, and
 * computes values that depend on shapes and constants only. Allocation prepares the steps and plans the
 * memory. dq_plan_reshape repeats the second and third phase on the same outline for other shapes of the same
 * inputs; no result of the earlier shapes remains.
 *
 * Dynamic steps: the shape of an output may depend on data (a Reshape to a computed shape, NonZero). Such a
 * step, and every step that depends on it, is inferred and prepared when it runs, in memory of its own, which
 * is kept for the next run. */
#ifndef DQ_PLAN_PLAN_H
#define DQ_PLAN_PLAN_H

#include "ops/algorithm.h"
#include "ops/work.h"
#include "plan/memory_planner.h"
#include "plan/program.h"
#include "rewrite/rewrite.h"

typedef enum dq_where {
    DQ_AT_NONE,     /* no value of this plan */
    DQ_AT_INPUT,    /* the caller's memory */
    DQ_AT_CONSTANT, /* known at planning time: data is set */
    DQ_AT_BUFFER,   /* in the session's buffer, at offset */
    DQ_AT_DYNAMIC   /* memory of its own; the shape is known only in a run */
} dq_where;

/** One value. */
typedef struct dq_slot {
    dq_tensor t; /* first: dq_slot_of */
    dq_where where;
    bool shaped;    /* type and shape are known at planning time and the same in each run */
    bool fixed;     /* depends on initializers only: the same in every plan of the program */
    bool requested; /* a step or an output reads it; outline */
    uint32_t root;  /* index of the slot that owns the memory; its own index unless it is a view */
    size_t shift;   /* of a view: byte offset in the data of the root */
    uint32_t piece; /* DQ_AT_BUFFER, of the root: index of its liveness interval during planning */
    size_t offset;
    void *dynamic_memory; /* DQ_AT_DYNAMIC: its own, for t.data, which may point elsewhere; kept for other
                             shapes */
    size_t dynamic_capacity;
    bool persistent;    /* DQ_AT_CONSTANT: the data lives as long as the program */
    uint32_t touched;   /* DQ_AT_INPUT, of the root: 1 + the last step that reads it, UINT32_MAX where the
                           end of a run does; DQ_AT_DYNAMIC: the step that gives it */
    uint32_t read_from; /* DQ_AT_INPUT, of the root: 1 + the first step that reads it */
    uint32_t next;      /* 0, or 1 + index of another slot of the same home */
    uint32_t copy;      /* 0, or 1 + index of its copy, see dq_copy */
    const dq_tensor
        *target; /* DQ_AT_DYNAMIC: the caller's memory, to be used where type and size are these */
} dq_slot;

typedef struct dq_step {
    const dq_node *node;
    uint32_t position;    /* of the node in the request's list */
    bool typed;           /* output types are set: they are the same for all shapes */
    bool constant;        /* the outputs are constant: the step does not run */
    const char *decision; /* the rewrite or algorithm, for `why`; or NULL */
    dq_op_call call;
    bool dynamic;
    uint64_t work; /* not late: see ops/work.h */
    uint32_t scratch_piece, worker_piece;
    size_t scratch_offset, worker_offset;
    dq_arena dynamic_arena; /* late: for state */
    void *dynamic_scratch;  /* late: of both kinds; kept for other shapes, and so is … */
    size_t dynamic_scratch_capacity;
    struct dq_flow *flow; /* of a node with inner graphs: the executor's, see exec/control_flow.h */
    void (*free_flow)(struct dq_flow *flow);
} dq_step;

/** An output that would alias an input of the caller: copied at the end of a run. */
typedef struct dq_copy {
    uint32_t from; /* index of its slot */
    dq_tensor t;
    uint32_t piece;
    size_t offset;
    void *memory; /* in place of the piece, when the shape varies */
    size_t capacity;
} dq_copy;

/** An output that can be computed in memory of the caller (exec/bound_outputs.c). Its part of the buffer
 * stays reserved for runs without such memory: untouched pages cost nothing. */
typedef struct dq_output_binding {
    const dq_value *value;
    uint32_t first; /* the step that first writes there */
    uint32_t slots; /* 1 + index of the first of those that lie there, one after the other or as parts of it,
                       linked by `next`; late: only its own; 0: the value never has the caller's memory */
    size_t offset;  /* in the buffer */
    const char *at; /* where that is in the run */
} dq_output_binding;

typedef struct dq_plan {
    dq_program *program;
    const dq_allocator *allocator; /* of all that the plan has; NULL: malloc */
    dq_graph *graph;
    const dq_kernels *kernels;
    dq_threads *threads;
    dq_budget *budget; /* of the run, in which inner graphs are planned and run, too; NULL: none */
    bool fuse;         /* inner graphs are rewritten, too */
    dq_pass_set disabled_passes;
    const dq_forced_algorithms *forced_algorithms; /* NULL: none */
    bool honor_accuracy_level;
    void (*why)(void *arg, const char *sentence);
    void *why_arg;

    dq_arena outline; /* for all of these: */
    dq_slot *slots;   /* see dq_plan_index */
    uint32_t slot_count;
    const dq_value **values; /* of the slots, by rising ids; NULL: slots stand by the id of their value */
    bool *needed;            /* by position in the request's nodes */
    uint32_t *reads;         /* by slot: the last position that reads it */
    uint32_t *last_read;     /* a copy, to which alias.c adds the reads of views */
    dq_step *all;            /* of the nodes that are needed, but for those that are computed once for all */
    uint32_t all_count;
    uint64_t *works;        /* by position: of steps that are not late */
    uint64_t constant_work; /* of those that are computed once for all */

    uint32_t generation; /* counts the shapes that it was made for */
    dq_arena shaped;     /* for what depends on them: all of these, and what steps know */
    dq_step **steps;     /* those that run (in the outline's arena) */
    uint32_t step_count;
    uint64_t stepless_work; /* of nodes that take no step, which count in each run all the same: what a run
                               ends with must not depend on what was computed before it */
    uint32_t *caller_slots; /* slots of values in callers' memory and their views: set anew in each run */
    uint32_t caller_slot_count;
    dq_copy *copies;
    uint32_t copy_count;
    dq_output_binding *output_bindings; /* of the wanted values, as in the request; none in inner graphs */
    uint32_t output_binding_count;
    size_t buffer_size;
    struct dq_batch_tiling *tiling; /* what runs before the first step, see batch_tiling.h; or NULL … */
    size_t ahead_offset;            /* … and its memory */
    const void *bound;              /* the buffer that data pointers and scratch were set for */
} dq_plan;

/** A bound input: a value whose tensor the caller owns. */
typedef struct dq_binding {
    const dq_value *value;
    const dq_tensor *tensor; /* its data is looked at in runs only, unless it is constant */
    bool varying;            /* the next run may give it another shape: the steps behind it are late */
    bool constant;           /* the data is there, and stays the same as long as the plan lives */
    bool fixed, persistent;  /* of a constant, as in dq_slot */
    bool computed;           /* in the plan's buffer, before its first step */
} dq_binding;

typedef struct dq_plan_request {
    dq_graph *graph;
    dq_node *const *nodes; /* in topological order; NULL: those of the graph */
    uint32_t node_count;
    dq_value *const *made; /* values beside the model's, ids from ir->value_count on; their constants live as
                              long as the program */
    uint32_t made_count;
    const dq_binding *bindings; /* a graph input that is not among them has its initializer's value */
    uint32_t binding_count;
    const dq_value *const *requested; /* what to compute; nodes that nothing here needs are left out */
    uint32_t requested_count;
    const dq_kernels *kernels; /* live longer than the plan, and so do: */
    dq_threads *threads;
    dq_budget *budget;
    const dq_allocator *allocator;                 /* of the plan's memory; NULL: malloc */
    bool fuse;                                     /* inner graphs are to be rewritten */
    dq_pass_set disabled_passes;                   /* … but not by these */
    const dq_forced_algorithms *forced_algorithms; /* live longer than the plan; NULL: none */
    bool honor_accuracy_level;                     /* see dq_session_options */
    bool by_batch_tiles; /* some at a time where that pays: the plan then has `slices` */
    bool part;           /* weights are packed with those of a plan that is made next */
    size_t ahead;        /* bytes of the buffer to use before the first step */
    void (*why)(void *arg, const char *sentence); /* told what was decided of each node; NULL: nobody */
    void *why_arg;
} dq_plan_request;

/** Plans for the types and shapes of the given values. The sentence of a fault names model and node. */
dq_status dq_plan_create(dq_program *program, const dq_plan_request *request, dq_plan **out, dq_error *err);
/** Makes the plan anew for other shapes: the request is as it was but for the shapes of what is given, data
 * of constants, and which of them vary. Memory of dynamic steps, and the plans of inner graphs
 * (exec/inner.h), stay. On a fault *plan is freed, and NULL: it may be one that a plan from nothing does not
 * have. */
dq_status dq_plan_reshape(dq_plan **plan, const dq_plan_request *request, dq_error *err);
void dq_plan_free(dq_plan *plan);

/** Whether any step is dynamic. */
bool dq_plan_has_dynamic_steps(const dq_plan *plan);

/** The slot of a step's input or output. */
static inline dq_slot *dq_slot_of(const dq_tensor *t)
{
    return (dq_slot *)(uintptr_t)t;
}

/** Index of a value's slot. A value that is not in the plan has the last one, which stays empty. */
uint32_t dq_plan_index(const dq_plan *plan, const dq_value *value);
static inline dq_slot *dq_plan_slot(const dq_plan *plan, const dq_value *value)
{
    return &plan->slots[dq_plan_index(plan, value)];
}

/** The tensor of a requested value, after a run. */
const dq_tensor *dq_plan_output(const dq_plan *plan, const dq_value *value);

/** Binds the node's types to its schema and sets the outputs' types as far as they follow, unless the step is
 * typed, and infers. DQ_DEFERRED: a value is missing. Also for dynamic steps in a run. */
dq_status dq_step_infer(dq_plan *plan, dq_step *step, dq_error *err);

/** Checks the outputs' types against the schema and the declarations of the graph. */
dq_status dq_step_check_outputs(const dq_step *step, dq_error *err);

/** Whether the tensor, sequence or optional has the declared type; undeclared parts match anything. */
bool dq_tensor_is(const dq_tensor *t, const dq_type *type);

/** Fails if that much work would exceed the limit; takes nothing from the budget. */
dq_status dq_plan_allows(const dq_plan *plan, uint64_t work, dq_error *err);
/** Called before each node is planned or run, by the session's thread alone: reports progress. DQ_CANCELLED
 * once the session's work is cancelled. */
dq_status dq_plan_go_on(const dq_plan *plan, dq_error *err);
/** The work that a run counts; 0: shapes or iterations are known in the run only. */
uint64_t dq_plan_total_work(const dq_plan *plan);
/** Takes work from the budget of the run. DQ_OUT_OF_MEMORY: the budget is exceeded. */
dq_status dq_plan_take(const dq_plan *plan, uint64_t work, dq_error *err);

/** Prefixes the message with "model: node: " ("node: " inside a subgraph), once. */
dq_status dq_step_fault(const dq_plan *plan, const dq_step *step, dq_status status, dq_error *err);

#endif
