/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest part of a model that still shows a difference between two ways to compute it (dqrun reduce).
 */
#ifndef DQ_TOOLS_INSIGHT_REDUCE_H
#define DQ_TOOLS_INSIGHT_REDUCE_H

#include "insight/pool.h"
#include "io/model_cut.h"

#include <compare.h> /* of tensors: in quotes it would be this folder's own */

/** A candidate that was run in both ways. */
typedef struct insight_reduce_step {
    const char *phase; /**< "end", "start" or "middle": which nodes are left out */
    size_t nodes;
    bool differs;
    const char *difference; /**< "scores: 3 of 10 elements differ; …", or why it cannot run; "" */
} insight_reduce_step;

typedef struct insight_reduce_request {
    dq_model *model;
    const void *bytes; /**< the file */
    size_t size;
    dq_schemas *schemas;
    const dq_limits *limits;
    size_t input_count;
    const char *const *input_names;
    const dq_tensor *const *input_tensors;
    const dq_session_options *options; /**< the way to examine */
    /** The way to compare with; NULL: reference values, which then also feed the edges of candidates. */
    const dq_session_options *against;
    size_t ref_count;
    const char *const *ref_names;
    const dq_tensor *const *ref_tensors;
    compare_tolerance tolerance;
    void (*report)(void *arg, const insight_reduce_step *step); /**< NULL: none */
    void *arg;
} insight_reduce_request;

/** A part of the model, loaded and run both ways. Starts as {0}. */
typedef struct insight_trial {
    bool *keep; /**< by node of the file, the search's own */
    size_t nodes;
    void *bytes;
    size_t size;
    dq_model *model;
    dq_session *session, *against; /**< `against` NULL: reference values */
    size_t input_count, output_count;
    const char **input_names, **output_names;
    const dq_tensor **input_tensors, **expected;
    bool ran, differs;
    size_t different;      /**< the first output that differs */
    char difference[1024]; /**< its name and difference, or why the trial cannot run */
} insight_trial;

typedef struct insight_reduction {
    bool differs; /**< false: nothing does, and the rest is empty */
    size_t nodes_before, trials;
    insight_trial best;     /**< the smallest that differs: bytes, inputs, outputs and expected values */
    const char **operators; /**< of its nodes, in the order of the file */
    struct insight_cuts *cuts;
} insight_reduction;

/** Searches. Free with insight_reduction_free in every case; request and model must outlive the result.
 * DQ_UNSUPPORTED: the model differs, and none of its parts does. */
dq_status insight_reduce(const insight_reduce_request *request, insight_reduction *out, dq_error *err);
void insight_reduction_free(insight_reduction *r);

/* ---- The graph, for reduce.c --------------------------------------------------------------------------- */

/** A result of a node. */
typedef struct insight_cut_value {
    const char *name;
    size_t node;
    bool used;        /**< a node reads it, or the graph gives it */
    bool is_output;   /**< the graph gives it */
    bool is_constant; /**< follows from initializers alone */
    const dq_tensor
        *tensor; /**< of the graph as written, or its reference; NULL: the graph cannot be cut here */
    const dq_tensor *ref; /**< to compare with; NULL: none, or another way is run */
} insight_cut_value;

typedef struct insight_cut_node {
    const char *name, *op_type;
    size_t value_count, read_count;
    insight_cut_value **values; /**< an entry is NULL where a result is left out */
    insight_cut_value **reads;  /**< results of nodes, each once */
    const char **outer;         /**< NULL-terminated: inputs of the graph that it reads, each once */
} insight_cut_node;

typedef struct insight_cuts {
    insight_pool pool;
    const insight_reduce_request *request;
    model_edit *edit;
    size_t node_count, value_count;
    insight_cut_node *nodes;
    insight_cut_value *values; /**< sorted by name */
    dq_session *written;       /**< of all values as written */
    bool *target;              /**< nodes whose results candidates give */
    /** Candidates end at quantized values and outputs of the model. A part that ends at a float inside the
     * graph may be rewritten as the whole model is not. */
    bool ends_are_quantized;
} insight_cuts;

/** Reads the graph and runs it as written. */
dq_status insight_cuts_open(const insight_reduce_request *r, insight_cuts *c, dq_error *err);
void insight_cuts_close(insight_cuts *c);

/** Whether a candidate may give the value, to be compared. */
bool insight_cuts_can_compare(const insight_cuts *c, const insight_cut_value *value);
/** Whether the node has such a result. */
bool insight_cuts_is_comparable(const insight_cuts *c, const insight_cut_node *node);
/** Adds to `keep` the nodes whose results cannot be fed: those without a tensor, and Constant. */
void insight_cuts_complete(const insight_cuts *c, bool *keep);
/** Makes the nodes that no kept node reads the targets; leaves out those that cannot be compared. */
void insight_cuts_aim_at_ends(insight_cuts *c, bool *keep);
/** Leaves out the nodes that no target needs. */
void insight_cuts_prune(const insight_cuts *c, bool *keep);
size_t insight_cuts_count(const insight_cuts *c, const bool *keep);

/** Runs the part with these nodes, complete and pruned, and compares. A part that cannot be loaded or run by
 * the first way is no failure: `difference` says why. Free with insight_trial_close in every case. */
dq_status insight_trial_run(const insight_cuts *c, const bool *keep, insight_trial *t, dq_error *err);
void insight_trial_close(insight_trial *t);
typedef struct insight_inputs {
    size_t count;
    const char *const *names;
    const dq_tensor *const *tensors;
} insight_inputs;

/** Makes a session and runs it on these inputs. The caller frees it in every case. */
dq_status insight_run_on(dq_model *model, const dq_session_options *options, insight_inputs inputs,
                         dq_session **session, dq_error *err);

#endif
