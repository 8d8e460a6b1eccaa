/* SPDX-License-Identifier: Apache-2.0 */
/* The rewriter's state, and what passes do with it: look up values and their uses, make nodes, replace nodes.
 * match.h recognises patterns. Private to src/rewrite.
 *
 * Invariants that passes rely on:
 * - The graph as written never changes: dq_value.producer is the node that the model has, whatever has
 * replaced it. A pass matches on the graph as written; the list and the use lists say what is left of it.
 * - A pass of kind NODE is tried at the last node of its pattern, puts a new node in its place and may insert
 * others before it. Nodes that nothing reads any more stay in the list and are left out by the plan.
 * - A node that a pass has made gives the same value as the one that it replaces, so that readers need no
 * change.
 * - Values that callers or inner graphs read are computed as written: they have more than one use. */
#ifndef DQ_REWRITE_REWRITER_H
#define DQ_REWRITE_REWRITER_H

#include "rewrite/rewrite.h"

/** One input of one node that reads a value; index 0 of dq_rewriter.uses is none. */
typedef struct dq_use {
    const dq_value *value;
    dq_node *node;
    uint32_t position; /* of the node in the list; of a node that was inserted: of the one before which it
                          stands */
    uint32_t next, previous;
} dq_use;

/** What is known of a value while passes of kind NODE run. */
typedef struct dq_value_record {
    uint32_t use_count; /* nodes that are needed and read it, and 2 for each caller that wants it */
    uint32_t first_use, last_use;
    uint32_t producer;  /* 1 + position of the node that gives it; 0: none of the list */
    dq_value *constant; /* the constant that it equals (fold_quantization_params.c), or NULL */
    dq_value *moved;    /* the quantized value of moved data, where the move was repeated, or NULL */
    const dq_node
        *dequantize;    /* the DequantizeLinear that a pass has put in the place of its producer, or NULL */
    bool has_bad_scale; /* QuantizeLinear or DequantizeLinear gives it with scales that no pass takes */
} dq_value_record;

/** By the index of a value, the positions of the nodes that read it, rising:
 * positions[start[i] … start[i + 1] - 1]. A node that reads it twice is there twice. */
typedef struct dq_use_positions {
    uint32_t *start, *positions;
} dq_use_positions;

/** New nodes before one position, in their order. */
typedef struct dq_insertion {
    struct dq_inserted *first, *last;
} dq_insertion;

typedef struct dq_rewriter {
    const dq_rewrite_request *request;
    dq_graph *graph;
    const dq_value *const *requested;
    uint32_t requested_count;
    dq_arena *arena;   /* of the result */
    dq_arena *scratch; /* of what only the passes look at */
    const char *pass;  /* the name of the pass that runs, for explanations */
    bool quiet;        /* explains nothing: a pass only tries */
    /* The list of nodes. Passes of kind NODE replace nodes at their positions, and insert nodes before them.
     */
    dq_node **nodes;
    uint32_t count;
    dq_insertion *insertions; /* by position, see dq_rewriter_apply_insertions */
    uint32_t inserted;
    uint32_t at; /* the position that a pass of kind NODE looks at */
    /* Values, by index (dq_rewriter_index). */
    dq_value_record *records;
    uint32_t record_count; /* of the graph's and captured values, and of those of passes before the records */
    uint32_t written_count; /* of the graph's and captured values alone */
    const dq_dtype *dtypes; /* of the graph's own values: element types, as far as they follow */
    dq_value **values;      /* made by passes: indices from written_count on */
    uint32_t value_count, value_capacity;
    dq_use *uses;
    uint32_t used, use_capacity;
    uint32_t *uses_of; /* by position: its node's first in `uses`, one after the other; NULL once passes of
                          kind NODE are over */
    uint32_t *next_pending; /* by position: what drop_uses has still to do */
    bool failed;            /* memory ran out; `err` has the message */
    dq_error *err;
} dq_rewriter;

/* ---- Values and their uses (uses.c) ------------------------------------------------------------------- */

/** For dq_rewriter_index: of a value of an outer graph. */
uint32_t dq_rewriter_capture_index(const dq_rewriter *f, const dq_value *v);
/** The index of a value: its place in the graph; then the values that the graph captures, one index for all
 * other values of outer graphs, and the values that passes make. A small inner graph of a large model costs
 * no more than its own size. */
static inline uint32_t dq_rewriter_index(const dq_rewriter *f, const dq_value *v)
{
    return v->graph == f->graph ? v->index : dq_rewriter_capture_index(f, v);
}
/** The record of a value; NULL: a value that passes of kind NODE have made. */
static inline dq_value_record *dq_rewriter_record(const dq_rewriter *f, const dq_value *v)
{
    const uint32_t index = dq_rewriter_index(f, v);
    return index < f->record_count && f->records ? &f->records[index] : NULL;
}

enum { DQ_USES_UNKNOWN = 1 << 20 };
/** How many inputs of needed nodes read the value; an inner graph counts once, a caller twice.
 * DQ_USES_UNKNOWN for a value without a record. */
uint32_t dq_rewriter_use_count(const dq_rewriter *f, const dq_value *v);
/** Whether one input of one node reads the value, and no caller does. */
bool dq_rewriter_has_one_use(const dq_rewriter *f, const dq_value *v);
/** The node of the value's last use, which may hold the graph that reads it; NULL: none, or the value has no
 * record. */
const dq_node *dq_rewriter_consumer(const dq_rewriter *f, const dq_value *v);
/** The first node after position `at` that reads the value as an input of its own, and its position; NULL:
 * none. */
dq_node *dq_rewriter_next_use(const dq_rewriter *f, uint32_t at, const dq_value *v, uint32_t *position);
/** Whether anything reads a result of the node. */
bool dq_rewriter_is_read(const dq_rewriter *f, const dq_node *node);

/** Makes the records and use lists of the list as it stands, before passes of kind NODE. */
bool dq_rewriter_make_records(dq_rewriter *f);
/** Adds the uses of a node that is inserted before f->at. */
void dq_rewriter_add_uses(dq_rewriter *f, dq_node *inserted);
/** By the index of a value, how many needed nodes read it in the list as it stands, and DQ_USES_UNKNOWN for
 * each caller; by position, whether the node is needed. False: memory ran out. */
bool dq_rewriter_count_final_uses(dq_rewriter *f, uint32_t **uses, bool **needed);
/** Lists the positions of needed nodes by the values that they read. False: memory ran out. */
bool dq_rewriter_list_uses(dq_rewriter *f, const bool *needed, uint32_t index_count, dq_use_positions *uses);

/* ---- Making nodes and values (build.c) ---------------------------------------------------------------- */

/** A new value with a new constant, whose data is zeroed and to be filled in. NULL: memory ran out
 * (f->failed). */
dq_value *dq_rewriter_make_constant(dq_rewriter *f, dq_dtype dtype, size_t rank, const int64_t *dims,
                                    dq_tensor **t);
/** A new value that a new node gives. */
dq_value *dq_rewriter_make_value(dq_rewriter *f, const char *name, dq_dtype dtype);
/** Names an operator: domain, type and opset version. */
typedef struct dq_op_id {
    const char *domain, *name;
    int opset;
} dq_op_id;
/** Makes a node of that operator with output `out` and space for `attr_count` attributes. It stands for
 * `like` and has its name. NULL: memory ran out. */
dq_node *dq_rewriter_node(dq_rewriter *f, dq_op_id op, const dq_node *like, uint32_t in_count,
                          dq_value *const *in, dq_value *out, uint32_t attr_count);
/** Gives a new node `count` outputs in place of its one; NULL: one that nobody reads. */
bool dq_rewriter_set_outputs(dq_rewriter *f, dq_node *node, uint32_t count, dq_value *const *outs);
/** Gives `to` the attributes of `from`, in the room that it has for them. */
void dq_rewriter_copy_attrs(const dq_node *from, dq_node *to);
/** Binds the node to its schema and implementation, and checks its types. False, and the reason explained,
 * when they do not fit or there is none. */
bool dq_rewriter_bind(dq_rewriter *f, dq_node *node);
/** Checks the node's types, as far as they are known, against its schema; `dtypes`, by place in the graph,
 * takes those of its outputs that were unknown; NULL: nothing does. */
dq_status dq_rewriter_bind_types(const dq_rewriter *f, const dq_node *node, dq_dtype *dtypes, dq_error *err);

/** Puts `made` in the place of the node at `position`, and moves the use lists along. */
void dq_rewriter_replace(dq_rewriter *f, uint32_t position, dq_node *made);
/** Inserts `node` before the one at f->at; the list has it after dq_rewriter_apply_insertions. */
bool dq_rewriter_insert_before(dq_rewriter *f, dq_node *node);
/** The same, but a node that moves constants is computed now: its results are then constants. */
bool dq_rewriter_insert_or_fold(dq_rewriter *f, dq_node *node);
/** Makes the list anew with the nodes that were inserted. */
bool dq_rewriter_apply_insertions(dq_rewriter *f);
/** Computes nodes whose inputs are constants or bound, and gives the tensor of `result`. *out is NULL where
 * it does not follow from them. */
dq_status dq_rewriter_evaluate(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                               const dq_bound_value *bound, uint32_t bound_count, const dq_value *result,
                               const dq_tensor **out, dq_error *err);
/** The same for several results. */
dq_status dq_rewriter_evaluate_all(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                                   const dq_bound_value *bound, uint32_t bound_count,
                                   const dq_value *const *results, uint32_t result_count,
                                   const dq_tensor **out, dq_error *err);

/** Explains a decision about a node to the one who asks why. */
void dq_rewriter_explain(const dq_rewriter *f, const dq_node *node, const char *format, ...) DQ_PRINTF(3, 4);
/** Memory ran out: sets f->failed and f->err, and is false. */
bool dq_rewriter_no_memory(dq_rewriter *f);

/* ---- The passes of passes.def ------------------------------------------------------------------------- */

/** A pass of kind NODE looks at f->nodes[f->at] and says whether it has replaced it. */
typedef bool dq_node_pass_fn(dq_rewriter *f);
/** A pass of kind GRAPH works on the whole list. */
typedef void dq_graph_pass_fn(dq_rewriter *f);

#define DQ_PASS_OF_MODEL(name)
#define DQ_PASS_OF_PRECISION(name) dq_graph_pass_fn dq_##name;
#define DQ_PASS_OF_GRAPH(name) dq_graph_pass_fn dq_##name;
#define DQ_PASS_OF_NODE(name) dq_node_pass_fn dq_##name;
#define DQ_PASS(kind, name, matches, replacement, exactness, tests) DQ_PASS_OF_##kind(name)
#include "rewrite/passes.def"
#undef DQ_PASS

/** verify.c: whether the list is sound: topological order, single assignment, nothing read that no node
 * gives, every node bound. `pass` is named in the message. */
dq_status dq_rewriter_verify(const dq_rewriter *f, const char *pass, dq_error *err);

#endif
