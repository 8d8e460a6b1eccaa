/* SPDX-License-Identifier: Apache-2.0 */
/* Graph rewriting: passes replace patterns of nodes by single nodes that compute the same on quantized
 * values.
 *
 * passes.def lists the passes in the order in which they run. The graph itself does not change: the result is
 * another list of nodes for a plan. Requested values are computed as written: a pattern does not extend past
 * one.
 *
 * A rewritten node computes the real-number formula of the nodes it replaces, rounded once. A scale that is
 * no normal number, or a value that may be NaN, prevents a rewrite (value_range.c). docs/rewrites.md says for
 * each pass whether it is exact, and its bound if not. */
#ifndef DQ_REWRITE_REWRITE_H
#define DQ_REWRITE_REWRITE_H

#include "ops/op.h"
#include "schema/schema.h"

/* ---- Passes ------------------------------------------------------------------------------------------- */

typedef enum dq_pass_kind {
    DQ_PASS_MODEL,     /* runs once, when the model is loaded, on all its graphs */
    DQ_PASS_PRECISION, /* looks at a whole graph and may change element types, before use lists are made */
    DQ_PASS_GRAPH,     /* looks at a whole graph */
    DQ_PASS_NODE       /* is tried at each node, which is the last one of its pattern */
} dq_pass_kind;

/** A row of passes.def. The texts are short phrases for people. */
typedef struct dq_pass {
    const char *name;
    dq_pass_kind kind;
    const char *matches, *replacement, *exactness, *tests;
} dq_pass;

/** A set of passes: bit i is the pass of row i. */
typedef uint64_t dq_pass_set;

/** The row with that index; NULL: past the last one. */
const dq_pass *dq_pass_get(size_t index);
/** Reads a list of names separated by commas (NULL: none). DQ_INVALID_ARGUMENT: an unknown name. */
dq_status dq_pass_set_read(const char *names, dq_pass_set *out, dq_error *err);

/* ---- Rewriting ---------------------------------------------------------------------------------------- */

/** A value that has a known tensor while nodes are evaluated. */
typedef struct dq_bound_value {
    const dq_value *value;
    const dq_tensor *tensor;
    bool initializer; /* follows from the model's initializers alone */
} dq_bound_value;

/** Nodes to compute while rewriting, with portable kernels. */
typedef struct dq_evaluation {
    dq_graph *graph;
    dq_node *const *nodes; /* in topological order */
    uint32_t node_count;
    dq_value *const *made; /* values that the rewriter has made */
    uint32_t made_count;
    const dq_bound_value *bound;
    uint32_t bound_count;
    const dq_value *const *results; /* the values to compute */
    uint32_t result_count;
} dq_evaluation;

typedef struct dq_rewrite_request {
    dq_ir *ir;
    dq_graph *graph; /* the main graph or an inner one */
    dq_schemas *schemas;
    const dq_dtype *dtypes;           /* by value id: element types as far as the schemas tell */
    const dq_value *const *requested; /* the values that callers want */
    uint32_t requested_count;
    dq_pass_set disabled;
    /** Convolutions of deeper windows turn planes into pixels (assign_layout_nhwc.c); SIZE_MAX: none does. */
    size_t deepest;
    dq_arena *arena; /* of the result */
    /** Computes e->results. out[i] is a tensor that lives as long as the result, in `arena` or elsewhere, or
     * NULL where it does not follow from what is bound. */
    dq_status (*evaluate)(void *arg, const dq_evaluation *e, dq_arena *arena, const dq_tensor **out,
                          dq_error *err);
    /** Asked between passes and between nodes: whether to stop, with DQ_CANCELLED. */
    bool (*cancelled)(void *arg);
    void (*explain)(void *arg, const char *text); /* told each decision; NULL: nobody */
    void *arg;                                    /* of the three */
} dq_rewrite_request;

/** The nodes that stand for the graph's. */
typedef struct dq_rewritten {
    dq_node *const *nodes; /* in topological order; some may be needless */
    uint32_t node_count;
    dq_value *const *values; /* made for them, ids from ir->value_count on */
    uint32_t value_count;
} dq_rewritten;

/** Runs all passes but those of kind MODEL. */
dq_status dq_rewrite(const dq_rewrite_request *request, dq_rewritten *out, dq_error *err);

/** The pass of kind MODEL, for all linked graphs of the model. False: memory ran out. */
bool dq_cse_quantize(dq_ir *ir);

#endif
