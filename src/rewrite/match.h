/* SPDX-License-Identifier: Apache-2.0 */
/* Pattern matching for all passes: dequantized operands, quantized results, constants, data movement, bounds,
 * and sums that fit in integers. Private to src/rewrite. */
#ifndef DQ_REWRITE_MATCH_H
#define DQ_REWRITE_MATCH_H

#include "rewrite/rewriter.h"

/* ---- Operands and results (match.c) ------------------------------------------------------------------- */

/** A DequantizeLinear whose scale and zero point are constants: value = (codes - zero) * scale in float. */
typedef struct dq_dequantized {
    const dq_node *node;
    dq_value *qvalues, *scale, *zero; /* zero may be NULL: 0. */
    const dq_tensor *scale_t, *zero_t;
    const dq_value *moved; /* The requested value, if data movement follows the node; else NULL. */
    dq_dtype dtype;        /* Of the quantized values. */
    bool per_tensor;
    int64_t axis; /* If not per_tensor: the channel axis in the requested value. */
} dq_dequantized;

/** A QuantizeLinear from float, per tensor, whose scale and zero point are constants. */
typedef struct dq_quantized {
    const dq_node *node;
    dq_value *scale, *zero; /* zero may be NULL: 0. */
    const dq_tensor *scale_t, *zero_t;
    dq_dtype dtype;
} dq_quantized;

/** Whether the node is this operator of ai.onnx. */
bool dq_match_op(const dq_node *node, const char *op);
/** Whether the node's operator has one of the traits (ops/op.h). */
bool dq_match_trait(const dq_node *node, unsigned traits);
/** The constant tensor of a value: an initializer that no caller has overridden, or the value of a Constant
 * node. NULL: none. */
const dq_tensor *dq_match_constant(const dq_value *v);
/** The element type of a value as far as the model determines it, else DQ_UNDEFINED. */
dq_dtype dq_match_dtype(const dq_rewriter *f, const dq_value *v);
/** Whether the value's element type is float16 or bfloat16. */
bool dq_match_is_half(const dq_rewriter *f, const dq_value *v);
/** Whether `v` is the result of a DequantizeLinear of 8-bit quantized values (`any`: of any type), not
 * blocked, directly or after data movement. *out then describes it. */
bool dq_match_dequantized(const dq_rewriter *f, const dq_value *v, bool any, dq_dequantized *out);
/** fold_quantization_params.c: the same for constant weights of 8 or 16 bits. Quantized constants of 2 and 4
 * bits become 8-bit ones. */
bool dq_match_dequantized_weights(dq_rewriter *f, const dq_value *v, dq_dequantized *out);
/** Whether the node is a per-tensor QuantizeLinear to 8 bits (`any`: to any type). *out then describes it. */
bool dq_match_quantized(const dq_rewriter *f, const dq_node *node, bool any, dq_quantized *out);
/** The constant that fold_quantization_params found equal to the value, else the value itself; NULL for NULL.
 */
dq_value *dq_match_resolve(const dq_rewriter *f, dq_value *v);
/** Conv, ConvTranspose, Gemm, MatMul (lower_qdq_matmul.c). */
bool dq_match_is_product(const dq_node *node);
/** lower_dynamic_matmul.c: whether `v` is known to be one float of at most `rank` dimensions: a constant, or
 * the scale of a DynamicQuantizeLinear. */
bool dq_match_is_scalar_float(const dq_value *v, size_t rank);
/** The DynamicQuantizeLinear whose results only this integer product reads; `scales` combines its scale with
 * another one. NULL: none. */
const dq_node *dq_match_own_quantize(const dq_rewriter *f, const dq_node *product, const dq_value *scale,
                                     const dq_value *scales);

/** Element i of constant floats of the model, which may be unaligned. */
float dq_match_float(const dq_tensor *t, size_t i);
/** Element i, or the only element. */
float dq_match_scale(const dq_tensor *scale, size_t i);
int64_t dq_match_zero_point(const dq_tensor *zero, size_t i); /* NULL: 0. */
/** Scale, zero point and type of a per-tensor quantization. */
typedef struct dq_quant_params {
    float scale;
    int64_t zero;
    dq_dtype dtype;
} dq_quant_params;

dq_quant_params dq_match_params(const dq_tensor *scale, const dq_tensor *zero, dq_dtype dtype);
/** The result of QuantizeLinear for v. */
int64_t dq_match_quantize(const dq_quant_params *p, float v);
/** Whether two pairs of scale and zero point are the same constants. */
bool dq_match_same_params(const dq_tensor *scale_a, const dq_tensor *zero_a, const dq_tensor *scale_b,
                          const dq_tensor *zero_b);

/** Writes an operand in the form of quantized operators: quantized value, scale and zero point to in[0 … 2].
 * An omitted zero point becomes a constant 0 of the same type. False: there are no quantized values. */
bool dq_rewriter_operand(dq_rewriter *f, const dq_dequantized *x, dq_value **in);
/** Converts constant 8-bit quantized values and their zero point to the other signedness; the real values
 * stay. */
bool dq_rewriter_flip_sign(dq_rewriter *f, dq_dequantized *x);
/** The same for a result: writes scale and zero point to in[0 … 1]. */
void dq_rewriter_result(dq_rewriter *f, const dq_quantized *q, dq_value **in);

/* ---- Ranges of values (value_range.c) ----------------------------------------------------------------- */

/** Marks the QuantizeLinear and DequantizeLinear nodes that stay as written, because a scale is not a normal
 * number or a dequantized value overflows float; explains each. dq_match_dequantized and dq_match_quantized
 * then refuse them. */
bool dq_rewriter_check_scales(dq_rewriter *f);
/** The largest magnitude of dequantized values. */
double dq_match_largest_magnitude(const dq_dequantized *x);
/** Bounds of all elements of a value, none of which is NaN. Bounds may be infinite. */
typedef struct dq_range {
    double lo, hi;
} dq_range;
/** Finds such bounds. False: NaN cannot be excluded. */
bool dq_match_range(const dq_rewriter *f, const dq_value *v, dq_range *r);
/** Whether all elements of a value, and those that it is computed from, are known to be finite. */
bool dq_match_is_finite(const dq_rewriter *f, const dq_value *v);
/** Whether no window of a pool and no reduced axis can be empty. */
bool dq_match_holds_elements(const dq_node *node);

/* ---- Sums of products (sum_bounds.c) ------------------------------------------------------------------ */

/** Sums of products of quantized values with constant weights. */
typedef struct dq_product_sums {
    const dq_dequantized *x;     /* Any values of its type; one zero point for all, or several. */
    const dq_tensor *w, *w_zero; /* Zero points of the weights: NULL (0), one, or one per channel. */
    const dq_tensor *bias;       /* int32, one or one per channel; NULL: none. */
    size_t channels;             /* Number of channels; each has weights of its own. */
    bool columns; /* `w` holds matrices whose columns are the channels; else the weights of each channel are
                     contiguous. */
} dq_product_sums;

/** Whether int32 holds every such sum, for weights of 8 bits. If not, explains the largest sum, and
 * `otherwise`. */
bool dq_match_int32_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s,
                          const char *otherwise);
/** Whether double holds them exactly, judged by their number and types only. If not, explains that the nodes
 * stay as written. */
bool dq_match_double_holds(dq_rewriter *f, const dq_node *node, const dq_product_sums *s);

/* ---- Data movement before and after an operator (sink_data_movement.c) -------------------------------- */

/** The value before the data movement that produces `v`. If the chain is long, a value inside it. */
const dq_value *dq_match_skip_moves(const dq_rewriter *f, const dq_value *v);
/** Whether the data movement commutes with quantization with these parameters. */
bool dq_match_moves_commute(const dq_rewriter *f, const dq_value *v, const dq_quant_params *p);
/** Whether the data movement only transposes. Then *axis, an axis of `from` on entry, becomes the same axis
 * of `v`. */
bool dq_match_transposed_axis(const dq_value *v, const dq_value *from, size_t rank, int64_t *axis);
/** Makes a copy of a data movement node that reads the quantized (or other) values `codes` and produces
 * `outs`. `pad` is the value with which a Pad fills. NULL: not possible. */
dq_node *dq_rewriter_move_quantized(dq_rewriter *f, const dq_node *node, dq_value *qvalues, dq_dtype dtype,
                                    int64_t pad, dq_value **outs);
/** The quantized values of a dequantized value, after a copy of the data movement. NULL: not possible. */
dq_value *dq_rewriter_quantized_value(dq_rewriter *f, const dq_dequantized *x);
/** Sets x->codes to that value. */
bool dq_rewriter_move_to_quantized(dq_rewriter *f, dq_dequantized *x);

/** The bounds of the Relu and Clip nodes between an operator and its QuantizeLinear. */
typedef struct dq_clip {
    float lo, hi;
} dq_clip;

enum { DQ_MAX_MOVES = 8 };

/** The nodes between an operator and its QuantizeLinear, the one nearest to the QuantizeLinear first. */
typedef struct dq_data_movement {
    dq_clip clip;
    const dq_node *moves[DQ_MAX_MOVES];
    int64_t pads[DQ_MAX_MOVES]; /* The quantized value with which a Pad fills. */
    uint32_t count;
    bool clips_last; /* The data movement precedes the clip: the maximum of an empty window passes through the
                        clip. */
    bool pads_any;   /* The data movement includes a Pad. */
    bool compares; /* They include Relu, Clip or an operator that selects elements: NaN passes through it. */
} dq_data_movement;

/** Narrows *c by a Relu or Clip with constant bounds, whose input may then replace its output. False: another
 * node. */
bool dq_match_clip(const dq_node *node, dq_clip *c);
/** Walks backward from the QuantizeLinear's input through Relu, Clip and data movement without other readers,
 * and returns the value before them. It stops before a comparison if that value may be NaN. */
const dq_value *dq_match_moves_without_nan(const dq_rewriter *f, const dq_quantized *q,
                                           dq_data_movement *tail);
/** The same for a caller that proves itself that the value is never NaN, if tail->compares. */
const dq_value *dq_match_moves(const dq_rewriter *f, const dq_quantized *q, dq_data_movement *tail);
/** Walks forward from a value to a QuantizeLinear, through Relu, Clip and data movement that each are the
 * only reader. NULL: no such chain. */
const dq_node *dq_match_quantize_ahead(const dq_rewriter *f, const dq_value *v);
/** Replaces the QuantizeLinear by `made`, which produces its result, and repeats the chain's data movement
 * and bounds after it. */
bool dq_rewriter_replace_quantize(dq_rewriter *f, dq_node *made, const dq_quantized *q,
                                  const dq_data_movement *tail);

/* ---- Functions of one pass that other passes use ----------------------------------------------------- */

/** lower_conv_transpose.c: makes nodes that compute the quantized result of a ConvTranspose with constant
 * weights whose per-channel parameters fit. `bias` is int32 in the scale of the products, one per channel, or
 * NULL; `float_bias` is the same in floats if `bias` is not exact, else NULL. All nodes but the returned last
 * one are inserted. NULL: not possible (with an explanation). */
dq_node *dq_lower_conv_transpose(dq_rewriter *f, const dq_node *node, const dq_dequantized *x,
                                 const dq_dequantized *w, const dq_tensor *bias, const dq_tensor *float_bias,
                                 const dq_quantized *q);
/** lower_qdq_tiled.c: makes a dqrun.TiledQdq of the operator, from quantized values of x to those of y. NULL:
 * not possible. */
dq_node *dq_rewriter_tiled(dq_rewriter *f, const dq_node *node, dq_value *qvalues, const dq_quant_params *x,
                           const dq_quant_params *y, dq_value *out);
/** fuse_elementwise.c: inserts a node before f->at that requantizes the quantized values `codes` of `x` to
 * `q`, element by element as QuantizeLinear does. NULL: not possible. */
dq_node *dq_rewriter_requantize(dq_rewriter *f, const dq_dequantized *x, dq_value *qvalues,
                                const dq_quantized *q, const dq_node *like);

#endif
