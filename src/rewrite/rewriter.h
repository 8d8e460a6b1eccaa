/* SPDX-License-Identifier: Apache-2.0 */
/* The rewriter's state and the operations of passes: look up values and their uses, make nodes, replace
 * nodes. match.h matches patterns. Private to src/rewrite.
 *
 * Invariants that passes rely on:
 *
 * - The graph as written never changes: dq_value.producer is the node of the model, whatever has replaced it.
 * A pass matches on the graph as written; the list of nodes and the use lists describe the current state.
 *
 * - A pass of kind NODE is tried at the last node of its pattern. It replaces that node and may insert others
 * before it. Nodes that nothing reads any more stay in the list; the plan leaves them out.
 *
 * - A replacement produces the same value as the node that it replaces, so that readers need no change.
 *
 * - Values that callers or subgraphs read are computed as written: they have more than one use. */
#ifndef DQ_REWRITE_REWRITER_H
#define DQ_REWRITE_REWRITER_H

#include "rewrite/rewrite.h"

/** A use: one input of one node that reads a value. Index 0 of dq_rewriter.uses is none. */
typedef struct dq_use {
    const dq_value *value;
    dq_node *node;
    /* Of the node in the list. Of an inserted node: the position before which it is inserted. */
    uint32_t position;
    uint32_t next, previous;
} dq_use;

/** The record of a value while passes of kind NODE run. */
typedef struct dq_value_record {
    uint32_t use_count; /* Number of needed nodes that read it, and 2 for each caller that requests it. */
    uint32_t first_use, last_use;
    uint32_t producer;  /* 1 + position of the node that produces it; 0: none in the list. */
    dq_value *constant; /* The constant that it equals (fold_quantization_params.c), or NULL. */
    dq_value *moved;    /* The quantized value after data movement, if a pass has repeated the movement on
                           quantized values; or NULL. */
    /* The DequantizeLinear with which a pass has replaced its producer, or NULL. */
    const dq_node *dequantize;
    bool has_bad_scale; /* Its producer is a QuantizeLinear or DequantizeLinear whose scales no pass accepts.
                         */
} dq_value_record;

/** For each value index i, the positions of the nodes that read it, ascending: positions[start[i] … start[i +
 * 1] - 1]. A node that reads it twice occurs twice. */
typedef struct dq_use_positions {
    uint32_t *start, *positions;
} dq_use_positions;

/** Nodes inserted before one position, in their order. */
typedef struct dq_insertion {
    struct dq_inserted *first, *last;
} dq_insertion;

typedef struct dq_rewriter {
    const dq_rewrite_request *request;
    dq_graph *graph;
    const dq_value *const *requested;
    uint32_t requested_count;
    dq_arena *arena;   /* Memory of the result. */
    dq_arena *scratch; /* Memory that only passes use. */
    const char *pass;  /* Name of the current pass, for explanations. */
    bool quiet;        /* Suppresses explanations: a pass only tries something. */
    /* The list of nodes. Passes of kind NODE replace nodes at their positions, and insert nodes before them.
     */
    dq_node **nodes;
    uint32_t count;
    dq_insertion *insertions; /* By position, see dq_rewriter_apply_insertions. */
    uint32_t inserted;
    uint32_t at; /* Current position of a pass of kind NODE. */
    /* Values, by index (dq_rewriter_index). */
    dq_value_record *records;
    /* Number of the graph's values, the captured values, and the values that passes made before the records.
     */
    uint32_t record_count;
    uint32_t written_count; /* Number of the graph's and captured values. */
    const dq_dtype *dtypes; /* Of the graph's own values: element types, as far as they are known. */
    dq_value **values;      /* Values that passes made: indices from written_count on. */
    uint32_t value_count, value_capacity;
    dq_use *uses;
    uint32_t used, use_capacity;
    /* By position: index in `uses` of the first use of the node; its uses are contiguous. NULL after the
     * passes of kind NODE. */
    uint32_t *uses_of;
    uint32_t *next_pending; /* By position: work list of drop_uses. */
    bool failed;            /* Out of memory; `err` has the message. */
    dq_error *err;
} dq_rewriter;

/* ---- Values and their uses (uses.c) ------------------------------------------------------------------- */

/** For dq_rewriter_index: the index of a value of an outer graph. */
uint32_t dq_rewriter_capture_index(const dq_rewriter *f, const dq_value *v);
/** The index of a value. The graph's own values come first, in the graph's order; then captured values, one
 * index for all other values of outer graphs, and values that passes make. The tables of a small subgraph of
 * a large model are therefore small. */
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
/** Number of inputs of needed nodes that read the value. A subgraph counts once, a caller twice.
 * DQ_USES_UNKNOWN for a value without a record. */
uint32_t dq_rewriter_use_count(const dq_rewriter *f, const dq_value *v);
/** Whether exactly one input of one node reads the value, and no caller. */
bool dq_rewriter_has_one_use(const dq_rewriter *f, const dq_value *v);
/** The node of the value's last use, which may be the node that holds the reading subgraph. NULL: none, or
 * the value has no record. */
const dq_node *dq_rewriter_consumer(const dq_rewriter *f, const dq_value *v);
/** The first node after position `at` that has the value as an input, and its position; NULL: none. */
dq_node *dq_rewriter_next_use(const dq_rewriter *f, uint32_t at, const dq_value *v, uint32_t *position);
/** Whether anything reads a result of the node. */
bool dq_rewriter_is_read(const dq_rewriter *f, const dq_node *node);

/** Makes records and use lists for the current list of nodes, before passes of kind NODE. */
bool dq_rewriter_make_records(dq_rewriter *f);
/** Adds the uses of a node that is inserted before f->at. */
void dq_rewriter_add_uses(dq_rewriter *f, dq_node *inserted);
/** Counts reads in the current list: by value index, the needed nodes that read it, and DQ_USES_UNKNOWN for
 * each caller; by position, whether the node is needed. False: out of memory. */
bool dq_rewriter_count_final_uses(dq_rewriter *f, uint32_t **uses, bool **needed);
/** Lists the positions of needed nodes by the values that they read. False: out of memory. */
bool dq_rewriter_list_uses(dq_rewriter *f, const bool *needed, uint32_t index_count, dq_use_positions *uses);

/* ---- Making nodes and values (build.c) ---------------------------------------------------------------- */

/** Makes a value with a constant tensor, whose data is zeroed for the caller to fill in. NULL: out of memory
 * (f->failed). */
dq_value *dq_rewriter_make_constant(dq_rewriter *f, dq_dtype dtype, size_t rank, const int64_t *dims,
                                    dq_tensor **t);
/** Makes a value for a new node to produce. */
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
/** Gives a new node `count` outputs instead of one; NULL: an output that nobody reads. */
bool dq_rewriter_set_outputs(dq_rewriter *f, dq_node *node, uint32_t count, dq_value *const *outs);
/** Copies the attributes of `from` to `to`, which was made with as many. */
void dq_rewriter_copy_attrs(const dq_node *from, dq_node *to);
/** Binds the node to its schema and implementation, and checks its types. False, with an explanation, if the
 * types do not fit or there is no implementation. */
bool dq_rewriter_bind(dq_rewriter *f, dq_node *node);
/** Checks the node's types, as far as they are known, against its schema. Writes those of its outputs that
 * were unknown to `dtypes`, by index in the graph (NULL: nowhere). */
dq_status dq_rewriter_bind_types(const dq_rewriter *f, const dq_node *node, dq_dtype *dtypes, dq_error *err);

/** Replaces the node at `position` by `made`, and updates the use lists. */
void dq_rewriter_replace(dq_rewriter *f, uint32_t position, dq_node *made);
/** Inserts `node` before the one at f->at. It enters the list in dq_rewriter_apply_insertions. */
bool dq_rewriter_insert_before(dq_rewriter *f, dq_node *node);
/** The same, but data movement of constants is folded: its results are then constants. */
bool dq_rewriter_insert_or_fold(dq_rewriter *f, dq_node *node);
/** Rebuilds the list with the inserted nodes. */
bool dq_rewriter_apply_insertions(dq_rewriter *f);
/** Evaluates nodes whose inputs are constants or bound, and gives the tensor of `result`. *out is NULL if it
 * does not follow from them. */
dq_status dq_rewriter_evaluate(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                               const dq_bound_value *bound, uint32_t bound_count, const dq_value *result,
                               const dq_tensor **out, dq_error *err);
/** The same for several results. */
dq_status dq_rewriter_evaluate_all(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                                   const dq_bound_value *bound, uint32_t bound_count,
                                   const dq_value *const *results, uint32_t result_count,
                                   const dq_tensor **out, dq_error *err);

/** Reports a decision about a node through request->explain. */
void dq_rewriter_explain(const dq_rewriter *f, const dq_node *node, const char *format, ...) DQ_PRINTF(3, 4);
/** Reports that memory ran out: sets f->failed and f->err, and returns false. */
bool dq_rewriter_no_memory(dq_rewriter *f);

/* ---- The passes of passes.def ------------------------------------------------------------------------- */

/** A pass of kind NODE examines f->nodes[f->at] and returns whether it has replaced it. */
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

/** verify.c: verifies the list: topological order, single assignment, a producer for every value that is
 * read, every node bound. The message names `pass`. */
dq_status dq_rewriter_verify(const dq_rewriter *f, const char *pass, dq_error *err);

#endif
