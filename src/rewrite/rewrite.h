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
    DQ_PASS_MODEL,     /* Runs once, when the model is loaded, on all its graphs. */
    DQ_PASS_PRECISION, /* Works on a whole graph and may change element types, before use lists are made. */
    DQ_PASS_GRAPH,     /* Works on a whole graph. */
    DQ_PASS_NODE       /* Is tried at each node, as the last one of its pattern. */
} dq_pass_kind;

/** A row of passes.def. The texts are short phrases for people. */
typedef struct dq_pass {
    const char *name;
    dq_pass_kind kind;
    const char *matches, *replacement, *exactness, *tests;
} dq_pass;

/** A set of passes: bit i is the pass of row i. */
typedef uint64_t dq_pass_set;

/** The row with that index; NULL: past the last row. */
const dq_pass *dq_pass_get(size_t index);
/** Reads a list of names separated by commas (NULL: none). DQ_INVALID_ARGUMENT: an unknown name. */
dq_status dq_pass_set_read(const char *names, dq_pass_set *out, dq_error *err);

/* ---- Rewriting ---------------------------------------------------------------------------------------- */

/** A value with a known tensor during evaluation. */
typedef struct dq_bound_value {
    const dq_value *value;
    const dq_tensor *tensor;
    bool initializer; /* Depends on the model's initializers only. */
} dq_bound_value;

/** Nodes to evaluate while rewriting, with portable kernels. */
typedef struct dq_evaluation {
    dq_graph *graph;
    dq_node *const *nodes; /* In topological order. */
    uint32_t node_count;
    dq_value *const *made; /* Values that the rewriter has made. */
    uint32_t made_count;
    const dq_bound_value *bound;
    uint32_t bound_count;
    const dq_value *const *results; /* The values to compute. */
    uint32_t result_count;
} dq_evaluation;

typedef struct dq_rewrite_request {
    dq_ir *ir;
    dq_graph *graph; /* The main graph or a subgraph. */
    dq_schemas *schemas;
    const dq_dtype *dtypes;           /* By value id: element types as far as schemas determine them. */
    const dq_value *const *requested; /* The values that callers request. */
    uint32_t requested_count;
    dq_pass_set disabled;
    /** Largest window depth for which a convolution accepts NCHW; deeper ones transpose to NHWC
     * (assign_layout_nhwc.c). SIZE_MAX: none does. */
    size_t nchw_max_depth;
    dq_arena *arena; /* Memory of the result. */
    /** Computes e->results. out[i] is a tensor that lives as long as the result, in `arena` or elsewhere, or
     * NULL if it does not follow from the bound values. */
    dq_status (*evaluate)(void *arg, const dq_evaluation *e, dq_arena *arena, const dq_tensor **out,
                          dq_error *err);
    /** Called between passes and between nodes: whether to stop with DQ_CANCELLED. */
    bool (*cancelled)(void *arg);
    void (*explain)(void *arg, const char *text); /* Receives each decision; NULL: nobody. */
    void *arg;                                    /* Argument of the three functions. */
} dq_rewrite_request;

/** The rewritten graph: nodes that replace those of the graph. */
typedef struct dq_rewritten {
    dq_node *const *nodes; /* In topological order; some may be unread. */
    uint32_t node_count;
    dq_value *const *values; /* Synthetic values, with ids from ir->value_count on. */
    uint32_t value_count;
} dq_rewritten;

/** Runs all passes except those of kind MODEL. */
dq_status dq_rewrite(const dq_rewrite_request *request, dq_rewritten *out, dq_error *err);

/** The pass of kind MODEL, for all linked graphs of the model. False: out of memory. */
bool dq_cse_quantize(dq_ir *ir);

#endif
