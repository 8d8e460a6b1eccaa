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
 * is kept for the next run. A step that depends on shapes only is prepared again when they change. */
#ifndef DQ_PLAN_PLAN_H
#define DQ_PLAN_PLAN_H

#include "ops/algorithm.h"
#include "ops/work.h"
#include "plan/memory_planner.h"
#include "plan/program.h"
#include "rewrite/rewrite.h"

typedef enum dq_where {
    DQ_AT_NONE,     /* No value of this plan. */
    DQ_AT_INPUT,    /* The caller's memory. */
    DQ_AT_CONSTANT, /* Known at planning time: data is set. */
    DQ_AT_BUFFER,   /* In the session's buffer, at `offset`. */
    DQ_AT_DYNAMIC   /* Memory of its own; the shape is known only in a run. */
} dq_where;

/** The state of one value in a plan. */
typedef struct dq_slot {
    dq_tensor t; /* First member: dq_slot_of casts it back. */
    dq_where where;
    bool shaped;       /* Type and shape are known at planning time and equal in all runs. */
    bool fixed;        /* Depends on initializers only: the same in every plan of the program. */
    bool requested;    /* A step or an output reads it. Set in the outline. */
    uint32_t root;     /* Index of the slot that owns the memory; its own index unless it is a view. */
    size_t shift;      /* Of a view: byte offset in the data of the root. */
    uint32_t interval; /* DQ_AT_BUFFER, of the root: index of its liveness interval during planning. */
    size_t offset;
    /* DQ_AT_DYNAMIC: memory that it owns; kept for other shapes. t.data may point elsewhere. */
    void *dynamic_memory;
    size_t dynamic_capacity;
    bool persistent; /* DQ_AT_CONSTANT: the data lives as long as the program. */
    /* DQ_AT_INPUT, of the root: 1 + the last step that reads it, UINT32_MAX if the end of the run reads it.
     * DQ_AT_DYNAMIC: the step that produces it. */
    uint32_t touched;
    uint32_t read_from; /* DQ_AT_INPUT, of the root: 1 + the first step that reads it. */
    uint32_t next;      /* 0, or 1 + index of the next slot of the same output binding. */
    uint32_t copy;      /* 0, or 1 + index of its copy, see dq_copy. */
    /* DQ_AT_DYNAMIC: the caller's memory, used if type and size match. */
    const dq_tensor *target;
} dq_slot;

typedef struct dq_step {
    const dq_node *node;
    uint32_t position;    /* Of the node in the request's list. */
    bool typed;           /* Output types are set: they are the same for all shapes. */
    bool constant;        /* The outputs are constant: the step does not run. */
    const char *decision; /* The rewrite or algorithm, for `why`; or NULL. */
    dq_op_call call;
    bool dynamic;
    uint64_t work; /* See ops/work.h. Of a dynamic step: in the last run. */
    uint32_t scratch_interval, worker_interval;
    size_t scratch_offset, worker_offset;
    dq_arena dynamic_arena; /* Dynamic step: memory of its state and of the next field. */
    /* Dynamic step: the inputs whose types and shapes it is prepared for; NULL: it is not prepared. */
    dq_tensor *prepared_for;
    bool reads_values;     /* Dynamic step: its shapes depend on values, so that each run prepares it. */
    void *dynamic_scratch; /* Dynamic step: scratch of both kinds, kept for other shapes … */
    size_t dynamic_scratch_capacity;
    /* … and so is this. Of a node with subgraphs: the executor's state, see exec/control_flow.h. */
    struct dq_flow *flow;
    void (*free_flow)(struct dq_flow *flow);
} dq_step;

/** An output that would alias an input of the caller. The end of a run copies it. */
typedef struct dq_copy {
    uint32_t from; /* Index of its slot. */
    dq_tensor t;
    uint32_t interval;
    size_t offset;
    void *memory; /* Used instead of the interval if the shape varies. */
    size_t capacity;
} dq_copy;

/** An output that can be computed in memory of the caller (exec/bound_outputs.c). Its interval in the buffer
 * stays reserved for runs without such memory: untouched pages cost nothing. */
typedef struct dq_output_binding {
    const dq_value *value;
    uint32_t first; /* The step that first writes to it. */
    /* 1 + index of the first slot in this memory; `next` links the others, which are live one after another
     * or are parts of it. Dynamic step: only its own slot. 0: the value is never in the caller's memory. */
    uint32_t slots;
    size_t offset;  /* Byte offset in the buffer. */
    const char *at; /* Its address in this run. */
} dq_output_binding;

typedef struct dq_plan {
    dq_program *program;
    const dq_allocator *allocator; /* Of all memory of the plan; NULL: malloc. */
    dq_graph *graph;
    const dq_kernels *kernels;
    dq_threads *threads;
    dq_budget *budget; /* Of the run, which also plans and runs subgraphs; NULL: none. */
    bool fuse;         /* Subgraphs are rewritten, too. */
    dq_pass_set disabled_passes;
    const dq_forced_algorithms *forced_algorithms; /* NULL: none. */
    bool honor_accuracy_level;
    void (*why)(void *arg, const char *message);
    void *why_arg;

    dq_arena outline; /* Memory of the following fields: */
    dq_slot *slots;   /* See dq_plan_index. */
    uint32_t slot_count;
    /* Values of the slots, by rising ids. NULL: the slot index is the id of the value. */
    const dq_value **values;
    bool *needed;        /* By position in the request's nodes. */
    uint32_t *reads;     /* By slot: the last position that reads it. */
    uint32_t *last_read; /* A copy, in which alias.c includes the reads of views. */
    dq_step *all; /* Of the nodes that are needed, except for those that are folded for all plans of the
                     program. */
    uint32_t all_count;
    uint64_t *works;        /* By position: work of steps that are not dynamic. */
    uint64_t constant_work; /* Work of the nodes that are folded for all plans of the program. */

    uint32_t generation; /* Counts the sets of shapes that the plan was made for. */
    dq_arena shaped; /* Memory of everything that depends on shapes: the following fields, and the state of
                        steps. */
    dq_step **steps; /* The steps that run (in the outline's arena). */
    uint32_t step_count;
    /* Work of nodes without a step. Each run counts it all the same: whether a run exceeds its budget must
     * not depend on earlier folding. */
    uint64_t stepless_work;
    uint32_t *caller_slots; /* Slots of values in the caller's memory and of their views: each run sets them
                               anew. */
    uint32_t caller_slot_count;
    dq_copy *copies;
    uint32_t copy_count;
    /* Of the requested values, in the order of the request; none in subgraphs. */
    dq_output_binding *output_bindings;
    uint32_t output_binding_count;
    size_t buffer_size;
    /* Batch tiling, which runs before the first step, see batch_tiling.h; NULL: none … */
    struct dq_batch_tiling *tiling;
    size_t ahead_offset; /* … and the offset of its memory in the buffer. */
    const void *bound;   /* The buffer to which data pointers and scratch are set. */
} dq_plan;

/** A bound input: a value whose tensor the caller owns. */
typedef struct dq_binding {
    const dq_value *value;
    const dq_tensor *tensor; /* Its data is read in runs only, unless it is constant. */
    bool varying;           /* The next run may give it another shape: steps that depend on it are dynamic. */
    bool constant;          /* The data is available, and stays the same as long as the plan lives. */
    bool fixed, persistent; /* Of a constant, as in dq_slot. */
    bool computed;          /* Its data is in the plan's buffer, computed before the first step. */
} dq_binding;

typedef struct dq_plan_request {
    dq_graph *graph;
    dq_node *const *nodes; /* In topological order; NULL: those of the graph. */
    uint32_t node_count;
    dq_value *const *made; /* Synthetic values, with ids from ir->value_count on. Their constants live as long
                              as the program. */
    uint32_t made_count;
    const dq_binding *bindings; /* A graph input without a binding has the value of its initializer. */
    uint32_t binding_count;
    const dq_value *const *requested; /* The values to compute. Nodes that none of them needs are left out. */
    uint32_t requested_count;
    const dq_kernels *kernels; /* They must outlive the plan, and so must the next two. */
    dq_threads *threads;
    dq_budget *budget;
    const dq_allocator *allocator;                 /* Of the plan's memory; NULL: malloc. */
    bool fuse;                                     /* Rewrites subgraphs … */
    dq_pass_set disabled_passes;                   /* … but not by these passes. */
    const dq_forced_algorithms *forced_algorithms; /* Must outlive the plan; NULL: none. */
    bool honor_accuracy_level;                     /* See dq_session_options. */
    bool by_batch_tiles; /* Allows batch tiling: if it pays off, the plan has `slices`. */
    bool part;           /* Weights are packed later, with those of the plan that is made next. */
    size_t ahead;        /* Bytes of the buffer that are in use before the first step. */
    void (*why)(void *arg, const char *message); /* Receives the decision for each node; NULL: nobody. */
    void *why_arg;
} dq_plan_request;

/** Makes a plan for the types and shapes of the bound inputs. Error messages name the model and the node. */
dq_status dq_plan_create(dq_program *program, const dq_plan_request *request, dq_plan **out, dq_error *err);
/** Makes the plan anew for other shapes. The request may differ only in shapes of bindings, in data of
 * constants, and in which of them vary. Memory of dynamic steps and plans of subgraphs (exec/inner.h) are
 * kept. On an error *plan is freed and NULL; a new plan might succeed. */
dq_status dq_plan_reshape(dq_plan **plan, const dq_plan_request *request, dq_error *err);
void dq_plan_free(dq_plan *plan);

/** Whether any step is dynamic. */
bool dq_plan_has_dynamic_steps(const dq_plan *plan);

/** The slot of a step's input or output. */
static inline dq_slot *dq_slot_of(const dq_tensor *t)
{
    return (dq_slot *)(uintptr_t)t;
}

/** Index of a value's slot. Values that are not in the plan share the last slot, which stays empty. */
uint32_t dq_plan_index(const dq_plan *plan, const dq_value *value);
static inline dq_slot *dq_plan_slot(const dq_plan *plan, const dq_value *value)
{
    return &plan->slots[dq_plan_index(plan, value)];
}

/** The tensor of a requested value, after a run. */
const dq_tensor *dq_plan_output(const dq_plan *plan, const dq_value *value);

/** Runs shape inference of a step. Unless the step is typed, it first binds the node's types to its schema
 * and sets output types as far as they follow. DQ_DEFERRED: a value is not known yet. Runs also call it, for
 * dynamic steps. */
dq_status dq_step_infer(dq_plan *plan, dq_step *step, dq_error *err);

/** Checks the outputs' types against the schema and the declarations of the graph. */
dq_status dq_step_check_outputs(const dq_step *step, dq_error *err);

/** Whether the tensor, sequence or optional has the declared type; undeclared parts match anything. */
bool dq_tensor_is(const dq_tensor *t, const dq_type *type);

/** Fails if that much work would exceed the limit. The budget does not change. */
dq_status dq_plan_allows(const dq_plan *plan, uint64_t work, dq_error *err);
/** Reports progress before each node is planned or run, on the session's thread only. DQ_CANCELLED if the
 * session's work is cancelled. */
dq_status dq_plan_go_on(const dq_plan *plan, dq_error *err);
/** The work that a run counts; 0: shapes or iterations are known only in the run. */
uint64_t dq_plan_total_work(const dq_plan *plan);
/** Takes work from the budget of the run. DQ_OUT_OF_MEMORY: that exceeds the budget. */
dq_status dq_plan_take(const dq_plan *plan, uint64_t work, dq_error *err);

/** Prefixes the message with "model: node: " ("node: " in a subgraph), once. */
dq_status dq_step_fault(const dq_plan *plan, const dq_step *step, dq_status status, dq_error *err);

#endif
