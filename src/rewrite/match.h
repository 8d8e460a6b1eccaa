/* SPDX-License-Identifier: Apache-2.0 */
/* What all passes recognise: dequantized operands, quantized results, constants, data movement, bounds, sums
 * that integers hold. Private to src/rewrite. */
#ifndef DQ_REWRITE_MATCH_H
#define DQ_REWRITE_MATCH_H

#include "rewrite/rewriter.h"

/* ---- Operands and results (match.c) ------------------------------------------------------------------- */

/** A DequantizeLinear whose scale and zero point are constants: value = (codes - zero) * scale in float. */
typedef struct dq_dequantized {
    const dq_node *node;
    dq_value *qvalues, *scale, *zero; /* zero may be NULL: 0 */
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

/** Whether the node is this operator of ai.onnx. */
bool dq_match_op(const dq_node *node, const char *op);
/** Whether the node's operator has one of the traits (ops/op.h). */
bool dq_match_trait(const dq_node *node, unsigned traits);
/** The constant tensor of a value: an initializer that no caller has overridden, or what a Constant node
 * holds. NULL: none. */
const dq_tensor *dq_match_constant(const dq_value *v);
/** The element type of a value as far as the model says, else DQ_UNDEFINED. */
dq_dtype dq_match_dtype(const dq_rewriter *f, const dq_value *v);
/** Whether the value's element type is float16 or bfloat16. */
bool dq_match_is_half(const dq_rewriter *f, const dq_value *v);
/** Whether `v` comes from a DequantizeLinear of 8-bit quantized values (`any`: of any), not blocked, as *out
 * then says; at once, or through nodes that only move elements. */
bool dq_match_dequantized(const dq_rewriter *f, const dq_value *v, bool any, dq_dequantized *out);
/** fold_quantization_params.c: the same for constant weights of 8 or 16 bits; quantized constants of 2 and 4
 * bits become such of 8. */
bool dq_match_dequantized_weights(dq_rewriter *f, const dq_value *v, dq_dequantized *out);
/** Whether the node is a QuantizeLinear to 8 bits (`any`: to any), per tensor, as *out then says. */
bool dq_match_quantized(const dq_rewriter *f, const dq_node *node, bool any, dq_quantized *out);
/** The constant that the value equals where fold_quantization_params found one, else the value; NULL for
 * NULL. */
dq_value *dq_match_resolve(const dq_rewriter *f, dq_value *v);
/** Conv, ConvTranspose, Gemm, MatMul (lower_qdq_matmul.c). */
bool dq_match_is_product(const dq_node *node);
/** lower_dynamic_matmul.c: whether `v` surely is one float, of at most `rank` dimensions: a constant, or the
 * scale of a DynamicQuantizeLinear. */
bool dq_match_is_scalar_float(const dq_value *v, size_t rank);
/** The DynamicQuantizeLinear whose results only this integer product reads, its scale joined with another one
 * in `scales`; NULL: none. */
const dq_node *dq_match_own_quantize(const dq_rewriter *f, const dq_node *product, const dq_value *scale,
                                     const dq_value *scales);

/** Element i of floats that are a constant of the model, and may be unaligned. */
float dq_match_float(const dq_tensor *t, size_t i);
/** Element i, or the only one. */
float dq_match_scale(const dq_tensor *scale, size_t i);
int64_t dq_match_zero_point(const dq_tensor *zero, size_t i); /* NULL: 0 */
/** Scale and zero point of one quantization. */
typedef struct dq_quant_params {
    float scale;
    int64_t zero;
    dq_dtype dtype;
} dq_quant_params;

dq_quant_params dq_match_params(const dq_tensor *scale, const dq_tensor *zero, dq_dtype dtype);
/** QuantizeLinear of v. */
int64_t dq_match_quantize(const dq_quant_params *p, float v);
/** Whether two pairs of scale and zero point are the same constants. */
bool dq_match_same_params(const dq_tensor *scale_a, const dq_tensor *zero_a, const dq_tensor *scale_b,
                          const dq_tensor *zero_b);

/** An operand as quantized operators take it: writes quantized value, scale and zero point to in[0 … 2]. A
 * zero point that was left out becomes a constant 0 of the same type. False: it cannot be had as quantized
 * values. */
bool dq_rewriter_operand(dq_rewriter *f, const dq_dequantized *x, dq_value **in);
/** Constant 8-bit quantized values as the same numbers in the other 8-bit type. */
bool dq_rewriter_flip_sign(dq_rewriter *f, dq_dequantized *x);
/** A result likewise: writes scale and zero point to in[0 … 1]. */
void dq_rewriter_result(dq_rewriter *f, const dq_quantized *q, dq_value **in);

/* ---- Ranges of values (value_range.c) ----------------------------------------------------------------- */

/** Marks the QuantizeLinear and DequantizeLinear nodes that stay as written, because a scale is not a normal
 * number or a dequantized value overflows float, and explains which. dq_match_dequantized and
 * dq_match_quantized then refuse them. */
bool dq_rewriter_check_scales(dq_rewriter *f);
/** The largest magnitude of dequantized values. */
double dq_match_largest_magnitude(const dq_dequantized *x);
/** Bounds of all elements of a value, none of which is NaN. Bounds may be infinite. */
typedef struct dq_range {
    double lo, hi;
} dq_range;
/** Finds such bounds. False: NaN may arise, as far as is known. */
bool dq_match_range(const dq_rewriter *f, const dq_value *v, dq_range *r);
/** Whether all elements of a value surely are finite, and those that it is computed from. */
bool dq_match_is_finite(const dq_rewriter *f, const dq_value *v);
/** Whether every window of a pool, or every axis that a reduction reduces, surely holds elements. */
bool dq_match_holds_elements(const dq_node *node);

/* ---- Sums of products (sum_bounds.c) ------------------------------------------------------------------ */

/** Sums of products of values of one quantization with constant weights. */
typedef struct dq_product_sums {
    const dq_dequantized *x;     /* any values of its type; the zero point of all, or several */
    const dq_tensor *w, *w_zero; /* zero points of the weights: NULL (0), one, or one a channel */
    const dq_tensor *bias;       /* int32, one or one a channel; NULL: none */
    size_t channels;             /* sums of other weights each */
    bool columns;                /* w is matrices whose columns are the channels; else they lie end to end */
} dq_product_sums;

/** Whether int32 holds every such sum, of weights of 8 bits; else explains what they reach, and `otherwise`.
 */
bool dq_match_int32_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s,
                          const char *otherwise);
/** Whether double holds them exactly, by their number and types alone; else explains that they stay. */
bool dq_match_double_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s);

/* ---- Data movement before and after an operator (sink_data_movement.c) -------------------------------- */

/** The value before the nodes that only move elements; of a long chain of them one inside it. */
const dq_value *dq_match_skip_moves(const dq_rewriter *f, const dq_value *v);
/** Whether those nodes would do the same to quantized values of these parameters. */
bool dq_match_moves_commute(const dq_rewriter *f, const dq_value *v, const dq_quant_params *p);
/** Whether those nodes only transpose; then *axis, which was one of `from`, is the same axis of `v`. */
bool dq_match_transposed_axis(const dq_value *v, const dq_value *from, size_t rank, int64_t *axis);
/** A node that moves elements once more, on quantized values (or others), giving `outs`; `pad` is what a Pad
 * fills in. NULL: it cannot be. */
dq_node *dq_rewriter_move_quantized(dq_rewriter *f, const dq_node *node, dq_value *qvalues, dq_dtype dtype,
                                    int64_t pad, dq_value **outs);
/** The quantized values of a dequantized value; moves are repeated on them. NULL: not possible. */
dq_value *dq_rewriter_quantized_value(dq_rewriter *f, const dq_dequantized *x);
/** Makes x->codes those. */
bool dq_rewriter_move_to_quantized(dq_rewriter *f, dq_dequantized *x);

/** The bounds that Relu and Clip nodes between an operator and its QuantizeLinear put on a value. */
typedef struct dq_clip {
    float lo, hi;
} dq_clip;

enum { DQ_MAX_MOVES = 8 };

/** The nodes between an operator and its QuantizeLinear, the nearest to that one first. */
typedef struct dq_move_chain {
    dq_clip clip;
    const dq_node *moves[DQ_MAX_MOVES];
    int64_t pads[DQ_MAX_MOVES]; /* the quantized value that a Pad fills in */
    uint32_t count;
    bool clips_last; /* the moves come before the clip: a maximum of no elements passes it */
    bool pads_any;   /* a Pad is among the moves */
    bool compares;   /* Relu, Clip or a move that chooses is among them: NaN passes through it */
} dq_move_chain;

/** Narrows *c by a Relu or Clip with constant bounds, whose input then stands for it; false: another node. */
bool dq_match_clip(const dq_node *node, dq_clip *c);
/** Walks from the QuantizeLinear's input back through Relu, Clip and moves that nobody else reads, to the
 * value before them. It stops before a comparison where that value may be NaN. */
const dq_value *dq_match_moves_without_nan(const dq_rewriter *f, const dq_quantized *q, dq_move_chain *tail);
/** The same for a caller that proves itself that the value is never NaN, if tail->compares. */
const dq_value *dq_match_moves(const dq_rewriter *f, const dq_quantized *q, dq_move_chain *tail);
/** Walks from a value on through Relu, Clip and moves that are each the only reader, to a QuantizeLinear;
 * NULL: to none. */
const dq_node *dq_match_quantize_ahead(const dq_rewriter *f, const dq_value *v);
/** Puts `made`, which gives the QuantizeLinear's result, in its place, and repeats the chain's moves and
 * bounds after it. */
bool dq_rewriter_replace_quantize(dq_rewriter *f, dq_node *made, const dq_quantized *q,
                                  const dq_move_chain *tail);

/* ---- What one pass offers to others ------------------------------------------------------------------- */

/** lower_conv_transpose.c: makes what gives the quantized result of a ConvTranspose of constant weights whose
 * channels' parameters fit; with an int32 bias (or NULL) for each channel in the scale of the products, and
 * the same in floats where that is not exact (else NULL). All but the last node are inserted then. NULL: it
 * cannot be (the reason explained). */
dq_node *dq_lower_conv_transpose(dq_rewriter *f, const dq_node *node, const dq_dequantized *x,
                                 const dq_dequantized *w, const dq_tensor *bias, const dq_tensor *float_bias,
                                 const dq_quantized *q);
/** lower_qdq_tiled.c: the operator from quantized values of x to those of y, as dqrun.TiledQdq. NULL: it
 * cannot be. */
dq_node *dq_rewriter_tiled(dq_rewriter *f, const dq_node *node, dq_value *qvalues, const dq_quant_params *x,
                           const dq_quant_params *y, dq_value *out);
/** fuse_elementwise.c: a node before f->at that requantizes the quantized values `codes` of `x` to `q`, as
 * QuantizeLinear does one element after the other. NULL: it cannot be. */
dq_node *dq_rewriter_requantize(dq_rewriter *f, const dq_dequantized *x, dq_value *qvalues,
                                const dq_quantized *q, const dq_node *like);

#endif
