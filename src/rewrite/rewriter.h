/* SPDX-License-Identifier: Apache-2.0 */
/* What the fusion patterns share. Private to src/plan.
 *
 * Patterns look at the graph from the node that would come last: a function for each kind of last node, that
 * puts a new node in its place in the list or leaves it. Nodes that nothing needs any more are left
 * out when the plan is made. */
#ifndef DQ_REWRITE_REWRITER_H
#define DQ_REWRITE_REWRITER_H

#include "plan/plan.h"
#include "rewrite/rewrite.h"

/** By the index of a value, the positions of the nodes that read it, rising:
 * positions[start[i] … start[i + 1] - 1]. A node that reads it twice is there twice. */
typedef struct dq_use_list {
    uint32_t *start, *positions;
} dq_use_list;

/** New nodes before one position, in their order. */
typedef struct dq_insertion {
    struct dq_inserted *first, *last;
} dq_insertion;

typedef struct dq_rewriter {
    dq_program *program;
    dq_graph *graph;
    dq_arena *arena;   /* what stays */
    dq_arena *passing; /* what only the patterns look at */
    dq_node **nodes;   /* a pass replaces nodes; positions stay */
    uint32_t count;
    uint32_t inserted;
    dq_insertion *insertions; /* by position: new nodes before it, see dq_rewriter_apply_insertions */
    uint32_t at;              /* the node that is looked at */
    /* by the index of a value, see dq_rewriter_at: */
    dq_value **moved;        /* its codes, where moves have been made once more on codes; or NULL */
    const dq_node **instead; /* a DequantizeLinear made to give it; or NULL */
    dq_value **settled;      /* the constant that stands for it; or NULL */
    bool *unfit; /* a QuantizeLinear or DequantizeLinear gives it with scales that no pattern takes */
    const dq_dtype *dtypes; /* of the graph's own values: element types, as far as they follow */
    uint32_t *uses;         /* readers of the value in the graph, and callers that want it */
    const dq_node **reader; /* the last node of the graph that reads it, or holds a graph that does */
    dq_use_list readings;   /* positions of all of them */
    uint32_t use_count;     /* length of uses: of the graph's and captured values, and promote_half.c's */
    uint32_t known;         /* indices of values that were there before fusion */
    dq_value **values;      /* made: indices from `known` on */
    uint32_t value_count, value_capacity;
    size_t deepest; /* convolutions of deeper windows turn planes into pixels; SIZE_MAX: none does */
    dq_why_fn why;
    void *why_arg;
    bool failed; /* memory ran out; `err` has the sentence */
    dq_error *err;
} dq_rewriter;

/** A DequantizeLinear whose scale and zero point are constants: value = (codes - zero) * scale in float. */
typedef struct dq_dequantized {
    const dq_node *node;
    dq_value *codes, *scale, *zero; /* zero may be NULL: 0 */
    const dq_tensor *scale_t, *zero_t;
    const dq_value *moved; /* not NULL: the value that was asked for, where moves stand behind the node */
    dq_dtype dtype;        /* of the codes */
    bool per_tensor;
    int64_t axis; /* not per tensor: of the value that was asked for */
} dq_dequantized;

/** A QuantizeLinear from float with one scale and zero point, constants. */
typedef struct dq_quantized {
    const dq_node *node;
    dq_value *scale, *zero; /* zero may be NULL: 0 */
    const dq_tensor *scale_t, *zero_t;
    dq_dtype dtype;
} dq_quantized;

/** For dq_rewriter_at: of a value of an outer graph. */
uint32_t dq_rewriter_capture_at(const dq_rewriter *f, const dq_value *v);
/** The index of a value in what the fuser knows by value: its place in the graph; then come the values that
 * the graph captures, one index for all other values of outer graphs, and the values that are made. So a
 * small inner graph of a large model costs no more than its own size. */
static inline uint32_t dq_rewriter_at(const dq_rewriter *f, const dq_value *v)
{
    return v->graph == f->graph ? v->place : dq_rewriter_capture_at(f, v);
}

/** The constant tensor of a value: an initializer that no caller has overridden, or what a Constant node
 * holds. NULL: none. */
const dq_tensor *dq_rewriter_constant(const dq_value *v);
/** The element type of a value as far as the model says, else DQ_UNDEFINED. */
dq_dtype dq_rewriter_dtype(const dq_rewriter *f, const dq_value *v);
/** Whether the value's element type is float16 or bfloat16. */
bool dq_rewriter_is_half(const dq_rewriter *f, const dq_value *v);
/** Whether the node is this operator of ai.onnx. */
bool dq_rewriter_is(const dq_node *node, const char *op);
enum { DQ_REWRITER_WANTED = 1 << 20 };
/** How often nodes read the value that are needed, and a graph inside once, and a caller twice;
 * DQ_REWRITER_WANTED where that is not counted, as of values that patterns made. */
uint32_t dq_rewriter_uses(const dq_rewriter *f, const dq_value *v);
/** Whether only one node's one input reads the value, and no caller. */
bool dq_rewriter_has_one_use(const dq_rewriter *f, const dq_value *v);
/** Whether anything reads a result of the node. */
bool dq_rewriter_is_read(const dq_rewriter *f, const dq_node *node);
/** Walks from a value on through Relu, Clip and moves that are each the only reader, to a QuantizeLinear;
 * NULL: to none. */
const dq_node *dq_rewriter_quantized_next(const dq_rewriter *f, const dq_value *v);
/** Whether `v` comes from a DequantizeLinear of 8-bit codes (`any`: of any), not blocked, as *out then says;
 * at once, or through nodes that only move elements. */
bool dq_rewriter_dequantized(const dq_rewriter *f, const dq_value *v, bool any, dq_dequantized *out);
/** value_range.c: finds the QuantizeLinear and DequantizeLinear nodes that stay as written, as a scale is not
 * a normal number, or a dequantized value overflows float; tells which. The two functions that read such
 * nodes then refuse them. */
bool dq_rewriter_check_scales(dq_rewriter *f);
/** The largest magnitude of dequantized values. */
double dq_rewriter_largest_magnitude(const dq_dequantized *x);
/** Bounds of all elements of a value, none of which is NaN. Bounds may be infinite. */
typedef struct dq_range {
    double lo, hi;
} dq_range;
/** Finds such bounds. False: NaN may arise, as far as is known. */
bool dq_rewriter_range(const dq_rewriter *f, const dq_value *v, dq_range *r);
/** Whether all elements of a value are finite for sure, those that it is computed from included. */
bool dq_rewriter_is_finite(const dq_rewriter *f, const dq_value *v);
/** Whether every window of a pool, or every axis that a reduction reduces, holds elements for sure. */
bool dq_rewriter_holds_elements(const dq_node *node);
/** fold_quantization_params.c: finds what DequantizeLinear and QuantizeLinear take that follows from
 * constants. */
bool dq_fold_quantization_params(dq_rewriter *f);
/** The constant that stands for such a value, else the value. */
dq_value *dq_rewriter_resolve(const dq_rewriter *f, dq_value *v);
/** As dq_rewriter_dequantized of 8 or 16 bits, and settled; constant codes of 2 and 4 bits become such of 8.
 */
bool dq_rewriter_dequantized_weights(dq_rewriter *f, const dq_value *v, dq_dequantized *out);
/** Whether the node is a QuantizeLinear to 8 bits (`any`: to any), per tensor, as *out then says. */
bool dq_rewriter_quantized(const dq_rewriter *f, const dq_node *node, bool any, dq_quantized *out);
/** Element i of floats that are a constant of the model, and may be loose. */
float dq_rewriter_float(const dq_tensor *t, size_t i);
/** Element i, or the only one. */
float dq_rewriter_scale(const dq_tensor *scale, size_t i);
int64_t dq_rewriter_zero(const dq_tensor *zero, size_t i); /* NULL: 0 */
/** Scale and zero point of one quantization. */
typedef struct dq_quant_params {
    float scale;
    int64_t zero;
    dq_dtype dtype;
} dq_quant_params;

dq_quant_params dq_rewriter_params(const dq_tensor *scale, const dq_tensor *zero, dq_dtype dtype);
/** The code that QuantizeLinear gives for v. */
int64_t dq_rewriter_quantize(const dq_quant_params *p, float v);
/** Whether two pairs of scale and zero point are the same constants. */
bool dq_rewriter_same_params(const dq_tensor *scale_a, const dq_tensor *zero_a, const dq_tensor *scale_b,
                             const dq_tensor *zero_b);

/** A new value holding a new constant; its data is zeroed and to be filled in. NULL: memory ran out
 * (f->failed). */
dq_value *dq_rewriter_make_constant(dq_rewriter *f, dq_dtype dtype, size_t rank, const int64_t *dims,
                                    dq_tensor **t);
/** A new value that a new node gives. */
dq_value *dq_rewriter_make_value(dq_rewriter *f, const char *name, dq_dtype dtype);
/** An operand as quantized operators take it: writes codes, scale and zero point to in[0 … 2]. A
 *  zero point that was left out becomes a constant 0 of the codes' type. False: it cannot be had in codes. */
bool dq_rewriter_operand(dq_rewriter *f, const dq_dequantized *x, dq_value **in);
/** Constant 8-bit codes as the same values in the other 8-bit type. */
bool dq_rewriter_flip_sign(dq_rewriter *f, dq_dequantized *x);
/** A result likewise: writes scale and zero point to in[0 … 1]. */
void dq_rewriter_result(dq_rewriter *f, const dq_quantized *q, dq_value **in);
/** Gives `to` the attributes of `from`, in the room that it has for them. */
void dq_rewriter_copy_attrs(const dq_node *from, dq_node *to);

/** A node of (domain, op) that gives `out`, with room for `attr_count` attributes, named after `like`. Its
 * opset is `opset`. NULL: memory ran out. */
dq_node *dq_rewriter_node(dq_rewriter *f, const char *domain, const char *op, int opset, const dq_node *like,
                          uint32_t in_count, dq_value *const *in, dq_value *out, uint32_t attr_count);
/** Gives a new node `count` outputs in place of its one; NULL: one that nobody reads. */
bool dq_rewriter_set_outputs(dq_rewriter *f, dq_node *node, uint32_t count, dq_value *const *outs);
/** Binds the node to schema and implementation, and holds its types against the schema; false (and the reason
 * told) when they do not fit or there is none. */
bool dq_rewriter_bind(dq_rewriter *f, dq_node *node);
/** Puts `node` before the one that is looked at, once the pass is over. */
bool dq_rewriter_insert_before(dq_rewriter *f, dq_node *node);
/** Makes the list anew with what was put between its nodes. */
bool dq_rewriter_apply_insertions(dq_rewriter *f);
/** The same, but a node that moves constants is computed now: its results are then constants. */
bool dq_rewriter_insert_or_fold(dq_rewriter *f, dq_node *node);
/** Counts the constants that nodes take from the graphs around theirs, and writes them to `given` (unless
 * NULL): given to a plan as inputs are. */
uint32_t dq_rewriter_captured_constants(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                                        dq_given *given);
/** Runs nodes of constants and of what is given, and copies the wanted value's tensor to the
 * arena. *out is NULL where it does not follow from constants alone. */
dq_status dq_rewriter_evaluate(const dq_rewriter *f, dq_node *const *nodes, uint32_t count,
                               const dq_given *given, uint32_t given_count, const dq_value *wanted,
                               dq_tensor **out, dq_error *err);

/** What is known of types, held against the node's schema; `dtypes`, by place in the graph, takes what is new
 * of the outputs' types; NULL: nothing does. */
dq_status dq_rewriter_bind_types(const dq_rewriter *f, const dq_node *node, dq_dtype *dtypes, dq_error *err);
/** Memory ran out: says so in f->err, and is false. */
bool dq_rewriter_no_memory(dq_rewriter *f);

/* ---- sink_data_movement.c: moves in front of an operator and behind it
 * --------------------------------------- */

/** A node that moves elements once more, on codes (or other values), giving `outs`; `pad` is the code that a
 * Pad fills in. NULL: it cannot be. */
dq_node *dq_rewriter_move_quantized(dq_rewriter *f, const dq_node *node, dq_value *codes, dq_dtype dtype,
                                    int64_t pad, dq_value **outs);
/** Whether the node only moves elements, without choosing any or making new ones. */
bool dq_rewriter_is_data_movement(const dq_node *node);
/** Conv, ConvTranspose, Gemm, MatMul (lower_qdq_matmul.c). */
bool dq_rewriter_is_product(const dq_node *node);
/** The value before the nodes that only move elements; of a long chain of them one inside it. */
const dq_value *dq_rewriter_skip_moves(const dq_rewriter *f, const dq_value *v);
/** Whether those nodes would do the same to codes of these parameters. */
bool dq_rewriter_moves_commute(const dq_rewriter *f, const dq_value *v, const dq_quant_params *p);
/** Whether those nodes only transpose; then *axis, which was one of `from`, is the same axis of `v`. */
bool dq_rewriter_transposed_axis(const dq_value *v, const dq_value *from, size_t rank, int64_t *axis);
/** The codes of a dequantized value, for which moves may be made once more. NULL: not possible. */
dq_value *dq_rewriter_quantized_value(dq_rewriter *f, const dq_dequantized *x);
/** Makes x->codes those. */
bool dq_rewriter_move_to_quantized(dq_rewriter *f, dq_dequantized *x);

/** What Relu and Clip nodes between an operator and its QuantizeLinear leave of a value. */
typedef struct dq_clip {
    float lo, hi;
} dq_clip;

enum { DQ_MAX_MOVES = 8 };

/** What stands between an operator and its QuantizeLinear, the nearest to that one first. */
typedef struct dq_move_chain {
    dq_clip clip;
    const dq_node *moves[DQ_MAX_MOVES];
    int64_t pads[DQ_MAX_MOVES]; /* the code that a Pad fills in */
    uint32_t count;
    bool clips_last; /* the moves come before the clip: a maximum of no elements passes it */
    bool pads_any;   /* a Pad is among the moves */
    bool compares;   /* Relu, Clip or a move that chooses is among them: NaN passes through it */
} dq_move_chain;

/** Narrows *c by a Relu or Clip with constant bounds, whose input then stands for it; false: another node. */
bool dq_rewriter_read_clip(const dq_node *node, dq_clip *c);
/** Walks from the QuantizeLinear's input back through Relu, Clip and moves that nobody else reads, to the
 * value before them. It stops before a comparison where that value may be NaN. */
const dq_value *dq_rewriter_before_moves_without_nan(const dq_rewriter *f, const dq_quantized *q,
                                                     dq_move_chain *tail);
/** The same for a caller that proves itself that the value is never NaN, if tail->compares. */
const dq_value *dq_rewriter_before_moves(const dq_rewriter *f, const dq_quantized *q, dq_move_chain *tail);
/** Puts `made`, which gives the QuantizeLinear's codes, in its place, and what the tail needs behind it. */
bool dq_rewriter_replace_quantize(dq_rewriter *f, dq_node *made, const dq_quantized *q,
                                  const dq_move_chain *tail);

/** lower_conv_transpose.c: what gives the codes of a ConvTranspose of constant weights whose channels'
 * parameters fit; with an int32 bias (or NULL) for each channel in the scale of the products, and the same in
 * floats where that is not exact (else NULL). All but the last node are in the list then. NULL: it cannot be
 * (the reason told). */
dq_node *dq_lower_conv_transpose(dq_rewriter *f, const dq_node *node, const dq_dequantized *x,
                                 const dq_dequantized *w, const dq_tensor *bias, const dq_tensor *float_bias,
                                 const dq_quantized *q);

/** lower_dynamic_matmul.c: whether `v` says for sure that it is one float, of at most `rank` dimensions: a
 * constant, or a DynamicQuantizeLinear's scale. */
bool dq_rewriter_is_scalar_float(const dq_value *v, size_t rank);
/** The DynamicQuantizeLinear whose results, its scale joined with another one in `scales`,
 * the integer product reads and nobody else; NULL: there is none. */
const dq_node *dq_rewriter_own_quantize(const dq_rewriter *f, const dq_node *product, const dq_value *scale,
                                        const dq_value *scales);

/** lower_qdq_tiled.c: the operator from codes of x to codes of y, as dqrun.OnCodes. NULL: it cannot be. */
dq_node *dq_rewriter_tiled(dq_rewriter *f, const dq_node *node, dq_value *codes, const dq_quant_params *x,
                           const dq_quant_params *y, dq_value *out);

/** fuse_elementwise.c: a node before f->at that makes codes of `q` of the codes `x` has at `codes`: exact, as
 * QuantizeLinear takes one element after the other. NULL: it cannot be. */
dq_node *dq_rewriter_requantize(dq_rewriter *f, const dq_dequantized *x, dq_value *codes,
                                const dq_quantized *q, const dq_node *like);

/* ---- uses.c ----------------------------------------------------------------------------------------
 */

/** Counts f->uses, and lists f->readings, of nodes that are needed for what callers want. */
bool dq_rewriter_count_uses(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count);
/** The first node after position `at` that reads the value as an input and is needed, and its position; NULL:
 * none. */
dq_node *dq_rewriter_next_use(const dq_rewriter *f, uint32_t at, const dq_value *v, uint32_t *position);
/** By the index of a value, how often nodes that are needed read it, and callers DQ_REWRITER_WANTED times
 * each; by position in the list, whether the node is needed. False: memory ran out. */
bool dq_rewriter_count_final_uses(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count,
                                  uint32_t **uses, bool **needed);
/** Lists what the nodes read that are needed. False: memory ran out. */
bool dq_rewriter_list_uses(dq_rewriter *f, const bool *needed, uint32_t index_count, dq_use_list *readings);

/** Tells a decision about a node. */
void dq_rewriter_explain(const dq_rewriter *f, const dq_node *node, const char *format, ...) DQ_PRINTF(3, 4);

/* ---- sum_bounds.c: integers that hold the sums of products, whatever the data ------------------------ */

/** Sums of products of values of one quantization with constant weights. */
typedef struct dq_product_sums {
    const dq_dequantized *x;     /* any values of its type; the zero point of all, or several */
    const dq_tensor *w, *w_zero; /* zero points of the weights: NULL (0), one, or one a channel */
    const dq_tensor *bias;       /* int32, one or one a channel; NULL: none */
    size_t channels;             /* sums of other weights each */
    bool columns;                /* w is matrices whose columns are the channels; else they lie end to end */
} dq_product_sums;

/** Whether int32 holds every such sum, of weights of 8 bits; else tells what they reach, and `otherwise`. */
bool dq_rewriter_int32_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s,
                             const char *otherwise);
/** Whether double holds them exactly, by their number and types alone; else tells that they are not fused. */
bool dq_rewriter_double_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s);

/* ---- The patterns: each looks at f->nodes[f->at], may replace it and put nodes before it, and says whether
 * it replaced it -------- */

bool dq_lower_qdq_matmul(dq_rewriter *f); /* lower_qdq_matmul.c: Conv, Gemm, MatMul */
bool dq_lower_qdq_elementwise(
    dq_rewriter *f);               /* lower_qdq_elementwise.c: Add, Mul, Concat, pools, Where, Softmax */
bool dq_lower_lut(dq_rewriter *f); /* lower_lut.c: functions of one 8-bit value, and moves of codes */
bool dq_lower_qlinear_lut(dq_rewriter *f); /* lower_lut.c: the same of quantized operators */
bool dq_lower_qdq_tiled(dq_rewriter *f);   /* lower_qdq_tiled.c: what stays in float, some slices at a time */
bool dq_fold_transpose(dq_rewriter *f);    /* fold_transpose.c: transposed operands of float products */
bool dq_lower_weight_only(dq_rewriter *f); /* lower_weight_only.c: float products with weights in codes */
bool dq_match_layer_norm(dq_rewriter *f);  /* match_layer_norm.c: layer normalization written out */
bool dq_lower_dynamic_matmul(dq_rewriter *f, uint32_t at); /* lower_dynamic_matmul.c: dynamic quantization */
bool dq_fold_conv_epilogue(dq_rewriter *f,
                           uint32_t at); /* fold_conv_epilogue.c: what follows float convolutions */
bool dq_lower_dynamic_conv(dq_rewriter *f,
                           uint32_t at); /* lower_dynamic_conv.c: ConvInteger and its scaling */
/** lower_lut.c: functions of one 8-bit value in half precision, before dq_promote_half looks for regions;
 * needs no counts of uses. */
bool dq_lower_half_lut(dq_rewriter *f);
/** promote_half.c: in the whole graph, before all others: puts a new list and new values in their place. */
void dq_promote_half(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count);
/** fuse_elementwise.c: in the whole graph, behind the others. */
void dq_fuse_elementwise(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count);
/** assign_layout_nhwc.c: in the whole graph, behind all others. */
void dq_assign_layout_nhwc(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count);

#endif
