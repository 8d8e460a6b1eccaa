/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers products of dequantized operands to quantized operators.
 *
 * Matches and replaces:
 *
 *   QuantizeLinear(Conv(DQ x, DQ w, bias))            → QLinearConv
 *   QuantizeLinear(ConvTranspose(DQ x, DQ w, bias))   → QLinearConv and others (lower_conv_transpose.c)
 *   QuantizeLinear(Gemm(DQ a, DQ b, bias))            → com.microsoft.QGemm
 *   QuantizeLinear(MatMul(DQ a, DQ b))                → QLinearMatMul
 *   QuantizeLinear(MatMul(DQ a, DQ b) + bias)         → com.microsoft.QGemm, between changes of shape
 *   MatMul(DQ a, DQ b) (+ bias), Gemm                 → com.microsoft.MatMulIntegerToFloat
 *   Conv(DQ x, DQ w, bias)                            → dqrun.ConvIntegerToFloat
 *   Conv, Gemm and MatMul of 16-bit values            → dqrun.QLinearConv16, dqrun.QLinearMatMul16
 *   … of 8-bit values whose sums may overflow int32   → the same (sum_bounds.c)
 *   MatMul and Gemm of two computed operands          → dqrun.QLinearMatMul16
 *
 * Data movement, Relu and Clip may come between the product and QuantizeLinear (sink_data_movement.c).
 *
 * Leaves alone: ConvTranspose, and Conv with a float result, whose sums may overflow int32. For two computed
 * operands that depends on their shapes, and QLinearMatMul16 decides when a plan is made.
 *
 * Exactness: at most one quantum. The integer sum is exact and requantized once; the graph as written rounds
 * a float sum.
 *
 * Bias: sums begin with the bias as int32 in the scale of the products (x_scale * w_scale). A float bias, or
 * one quantized in another scale, is rounded to that, and requantizing adds the remainder, so that results
 * equal the formula. dqrun's QLinearConv and QGemm do so if the remainder is at most half a quantum of the
 * result, else QLinearConv16 and QLinearMatMul16. For 16-bit values the bias remains float.
 *
 * Per-channel scales of the input of a depthwise convolution are multiplied with those of its filters and
 * rounded to float. */
#include "base/checked.h"
#include "rewrite/match_epilogue.h"
#include "rewrite/product.h"

#include <math.h>
#include <string.h>

/* ---- Matching a product ------------------------------------------------------------------------------- */

bool dq_match_is_product(const dq_node *node)
{
    return dq_match_op(node, "Conv") || dq_match_op(node, "ConvTranspose") || dq_match_op(node, "Gemm") ||
           dq_match_op(node, "MatMul");
}

/* Finds the product that produces `v`, directly or before an Add of a constant bias. */
static bool find_product(const dq_rewriter *f, const dq_value *v, dq_product *p)
{
    const dq_node *node = v->producer;
    *p = (dq_product){.node = node, .alpha = 1, .beta = 1};
    if (!node || v->graph != f->graph)
        return false;
    if (dq_match_is_product(node)) {
        p->bias = dq_node_input(node, 2);
        return true;
    }
    for (int side = 0; side < 2 && dq_match_op(node, "Add"); side++) {
        const dq_value *sum = node->in[side];
        const dq_node *by = sum->producer;
        if (!by || !dq_match_is_product(by) || sum->graph != f->graph || !dq_rewriter_has_one_use(f, sum) ||
            dq_node_input(by, 2))
            continue;
        p->node = by;
        p->bias = node->in[1 - side];
        p->added = true;
        return true;
    }
    return false;
}

/* Whether scale and zero point are per tensor, or have one element per channel along `axis`. */
static bool channels_fit(const dq_dequantized *w, int64_t axis, size_t rank, size_t channels)
{
    if (w->per_tensor)
        return true;
    int64_t given = w->axis < 0 ? w->axis + (int64_t)rank : w->axis;
    return given == axis && w->scale_t->count == channels;
}

static bool is_one_number(const dq_tensor *zero)
{
    for (size_t i = 1; zero && i < zero->count; i++)
        if (dq_tensor_get_int(zero, i) != dq_tensor_get_int(zero, 0))
            return false;
    return true;
}

/* Replaces scale and zero point by new constants of `count` elements (1: a scalar), which the caller fills
 * in. */
static bool remake_params(dq_rewriter *f, dq_dequantized *x, size_t count, dq_tensor **scale,
                          dq_tensor **zero)
{
    const int64_t dims[] = {(int64_t)count};
    x->per_tensor = count == 1;
    x->scale = dq_rewriter_make_constant(f, DQ_FLOAT, count > 1, dims, scale);
    if (x->zero)
        x->zero = dq_rewriter_make_constant(f, x->dtype, count > 1, dims, zero);
    if (f->failed)
        return false;
    x->scale_t = *scale;
    x->zero_t = x->zero ? *zero : NULL;
    return true;
}

/* Folds per-channel scales of x into the scales of the filters of a depthwise convolution: each channel is
 * read only by its own filters. */
static bool fold_channels(dq_rewriter *f, dq_product *p)
{
    const dq_tensor *qvalues = dq_match_constant(p->w.qvalues);
    const dq_dequantized x = p->x, w = p->w;
    const size_t channels = x.scale_t->count;
    if (!qvalues || qvalues->rank < 3 || qvalues->dims[0] < 1 || qvalues->dims[1] != 1 || x.moved ||
        (x.axis != 1 && x.axis + qvalues->rank != 1) ||
        dq_node_int(p->node, "group", 1) != (int64_t)channels || qvalues->dims[0] % (int64_t)channels != 0 ||
        !is_one_number(x.zero_t) || !channels_fit(&w, 0, qvalues->rank, (size_t)qvalues->dims[0]))
        return false;
    const size_t filters = (size_t)qvalues->dims[0];
    dq_tensor *scale, *zero, *one, *one_zero;
    if (!remake_params(f, &p->w, filters, &scale, &zero) || !remake_params(f, &p->x, 1, &one, &one_zero))
        return false;
    p->w.axis = 0;
    dq_data(one, float)[0] = 1;
    if (x.zero)
        dq_tensor_put_int(one_zero, 0, dq_match_zero_point(x.zero_t, 0));
    for (size_t i = 0; i < filters; i++) {
        const float both = dq_match_scale(x.scale_t, i / (filters / channels)) * dq_match_scale(w.scale_t, i);
        dq_data(scale, float)[i] = both;
        if (!isnormal(both))
            return false;
        if (w.zero)
            dq_tensor_put_int(zero, i, dq_match_zero_point(w.zero_t, i));
    }
    return true;
}

/* Reads the product's operands. False: they are not dequantized values of 8 or 16 bits. */
static bool read_operands(dq_rewriter *f, dq_product *p)
{
    return dq_match_dequantized(f, p->node->in[0], true, &p->x) && p->x.dtype != DQ_INT32 &&
           (p->x.per_tensor || dq_match_op(p->node, "Conv")) && dq_rewriter_move_to_quantized(f, &p->x) &&
           dq_match_dequantized_weights(f, p->node->in[1], &p->w) && (p->x.per_tensor || fold_channels(f, p));
}

static bool is_16_bits(dq_dtype dtype)
{
    return dtype == DQ_UINT16 || dtype == DQ_INT16;
}

/* ---- Conv and Gemm ------------------------------------------------------------------------------------ */

static dq_node *make_conv(dq_rewriter *f, const dq_product *p, const dq_quantized *q)
{
    const dq_node *conv = p->node;
    dq_value *in[10] = {NULL}, *out = q->node->out[0];
    if (!dq_rewriter_operand(f, &p->x, in) || !dq_rewriter_operand(f, &p->w, in + 3))
        return NULL;
    in[8] = p->sum_bias;
    in[9] = p->rest_bias;
    dq_rewriter_result(f, q, in + 6);
    if (f->failed)
        return NULL;
    dq_node *node = in[9] ? dq_rewriter_node(f, (dq_op_id){"dqrun", "QLinearConv", 1}, conv, 10, in, out,
                                             conv->attr_count)
                          : dq_rewriter_node(f, (dq_op_id){"", "QLinearConv", 10}, conv, in[8] ? 9 : 8, in,
                                             out, conv->attr_count);
    if (node)
        dq_rewriter_copy_attrs(conv, node);
    return node;
}

static dq_node *make_gemm(dq_rewriter *f, const dq_product *p, const dq_quantized *q)
{
    dq_value *in[10] = {NULL};
    if (!dq_rewriter_operand(f, &p->x, in) || !dq_rewriter_operand(f, &p->w, in + 3))
        return NULL;
    in[6] = p->sum_bias;
    in[9] = p->rest_bias;
    dq_rewriter_result(f, q, in + 7);
    if (f->failed)
        return NULL;
    dq_node *node = dq_rewriter_node(f, (dq_op_id){in[9] ? "dqrun" : "com.microsoft", "QGemm", 1}, p->node,
                                     in[9] ? 10 : 9, in, q->node->out[0], 3);
    if (!node)
        return NULL;
    node->attrs[0] =
        (dq_attr){.name = "transA", .kind = DQ_ATTR_INT, .u.i = dq_node_int(p->node, "transA", 0)};
    node->attrs[1] =
        (dq_attr){.name = "transB", .kind = DQ_ATTR_INT, .u.i = dq_node_int(p->node, "transB", 0)};
    node->attrs[2] = (dq_attr){.name = "alpha", .kind = DQ_ATTR_FLOAT, .u.f = (float)p->alpha};
    return node;
}

static bool conv_channels(dq_product *p)
{
    const dq_tensor *w = dq_match_constant(p->w.qvalues);
    if (!w || w->rank < 3)
        return false;
    p->channels = (size_t)w->dims[0];
    p->inner = w->rank - 2;
    return channels_fit(&p->w, 0, w->rank, p->channels);
}

/* The scales along the weights' second axis apply to each group. */
static bool transposed_channels(dq_product *p)
{
    const dq_tensor *w = dq_match_constant(p->w.qvalues);
    int64_t group = dq_node_int(p->node, "group", 1), channels;
    if (!w || w->rank < 3 || group < 1 || !dq_mul_i64(w->dims[1], group, &channels))
        return false;
    p->channels = (size_t)channels;
    p->inner = w->rank - 2;
    return channels_fit(&p->w, 1, w->rank, (size_t)w->dims[1]);
}

static bool gemm_channels(dq_product *p)
{
    const dq_tensor *w = dq_match_constant(p->w.qvalues);
    bool transposed = dq_node_int(p->node, "transB", 0) != 0;
    p->alpha = (double)dq_node_float(p->node, "alpha", 1);
    p->beta = p->added ? 1 : (double)dq_node_float(p->node, "beta", 1);
    if (!w)
        return p->w.per_tensor && !p->bias;
    p->channels = w->rank == 2 ? (size_t)w->dims[!transposed] : 0;
    return w->rank == 2 && channels_fit(&p->w, transposed ? 0 : 1, 2, p->channels);
}

/* ---- MatMul ------------------------------------------------------------------------------------------- */

static dq_node *make_matmul(dq_rewriter *f, const dq_product *p, const dq_quantized *q)
{
    dq_value *in[8];
    if (!dq_rewriter_operand(f, &p->x, in) || !dq_rewriter_operand(f, &p->w, in + 3))
        return NULL;
    dq_rewriter_result(f, q, in + 6);
    return f->failed
               ? NULL
               : dq_rewriter_node(f, (dq_op_id){"", "QLinearMatMul", 21}, p->node, 8, in, q->node->out[0], 0);
}

/* Reads the scales of b: one, or one per column of constant weights. */
static bool matmul_channels(dq_product *p)
{
    const dq_tensor *w = dq_match_constant(p->w.qvalues);
    p->channels = w && w->rank == 2 ? (size_t)w->dims[1] : 0;
    if (p->w.per_tensor)
        return true;
    return w && w->rank >= 2 &&
           channels_fit(&p->w, (int64_t)w->rank - 1, w->rank, (size_t)w->dims[w->rank - 1]);
}

/* Inserts a node before the product and returns its result. */
static dq_value *give(dq_rewriter *f, const dq_product *p, const char *op, int opset, uint32_t count,
                      dq_value *const *in, dq_dtype dtype, const dq_attr *attr)
{
    dq_value *out = dq_rewriter_make_value(f, p->node->out[0]->name, dtype);
    dq_node *node = out ? dq_rewriter_node(f, (dq_op_id){"", op, opset}, p->node, count, in, out, 1) : NULL;
    if (!node)
        return NULL;
    node->attrs[0] = *attr;
    return dq_rewriter_bind(f, node) && dq_rewriter_insert_before(f, node) ? out : NULL;
}

/* Makes a QGemm of a MatMul with bias: reshapes its operand to a matrix before it, and its result back.
 * Shapes are known at planning time, so that reshapes take no steps. */
static dq_node *make_matmul_bias(dq_rewriter *f, dq_product *p, const dq_quantized *q)
{
    const dq_attr last = {.name = "axis", .kind = DQ_ATTR_INT, .u.i = -1};
    const dq_attr front = {.name = "end", .kind = DQ_ATTR_INT, .u.i = -1};
    const dq_attr along = {.name = "axis", .kind = DQ_ATTR_INT, .u.i = 0};
    dq_tensor *columns;
    dq_value *x = p->x.qvalues;
    if (!(p->x.qvalues = give(f, p, "Flatten", 13, 1, &x, p->x.dtype, &last)))
        return NULL;
    dq_node *gemm = make_gemm(f, p, q);
    dq_value *out = gemm ? dq_rewriter_make_value(f, p->node->out[0]->name, q->dtype) : NULL;
    if (!out)
        return NULL;
    gemm->out[0] = out;
    dq_value *dims[2] = {give(f, p, "Shape", 15, 1, &x, DQ_INT64, &front),
                         dq_rewriter_make_constant(f, DQ_INT64, 1, (int64_t[]){1}, &columns)};
    if (!dims[0] || !dims[1] || !dq_rewriter_bind(f, gemm) || !dq_rewriter_insert_before(f, gemm))
        return NULL;
    dq_tensor_put_int(columns, 0, (int64_t)p->channels);
    dq_value *in[2] = {out, give(f, p, "Concat", 13, 2, dims, DQ_INT64, &along)};
    return in[1] ? dq_rewriter_node(f, (dq_op_id){"", "Reshape", 14}, p->node, 2, in, q->node->out[0], 0)
                 : NULL;
}

/* ---- Sums that may overflow int32 --------------------------------------------------------------------- */

static bool find_channels(dq_product *p)
{
    return dq_match_op(p->node, "Conv")            ? conv_channels(p)
           : dq_match_op(p->node, "ConvTranspose") ? transposed_channels(p)
           : dq_match_op(p->node, "Gemm")          ? gemm_channels(p)
                                                   : matmul_channels(p);
}

/* Whether per-column parameters belong to a single matrix. */
static bool is_one_matrix(const dq_product *p)
{
    const dq_tensor *w = dq_match_constant(p->w.qvalues);
    return p->w.per_tensor || (w && w->rank >= 2 && dq_dims_product(w->dims, 0, w->rank - 2) == 1);
}

/* Converts the left operand of a Gemm to that of a MatMul. */
static bool take_rows(dq_rewriter *f, const dq_product *p, dq_value **x)
{
    static const int64_t perm[] = {1, 0};
    const dq_attr swap = {.name = "perm", .kind = DQ_ATTR_INTS, .count = 2, .u.ints = perm};
    return dq_node_int(p->node, "transA", 0) == 0 ||
           (*x = give(f, p, "Transpose", 13, 1, x, p->x.dtype, &swap)) != NULL;
}

/* Makes a product that sums in integers wider than int32: of 16-bit values, and of 8-bit values whose sums
 * may overflow int32. `q` NULL: the result is float. */
static dq_node *make_16_bit(dq_rewriter *f, const dq_product *p, const dq_quantized *q, dq_value *out)
{
    bool conv = dq_match_op(p->node, "Conv");
    dq_value *in[9] = {NULL};
    if ((!conv && !is_one_matrix(p)) || !dq_product_double_sums(f, p) || !dq_rewriter_operand(f, &p->x, in) ||
        !dq_rewriter_operand(f, &p->w, in + 3) || !take_rows(f, p, in) ||
        (p->bias && !(in[8] = dq_product_float_bias(f, p))))
        return NULL;
    if (q)
        dq_rewriter_result(f, q, in + 6);
    dq_node *node =
        f->failed ? NULL
                  : dq_rewriter_node(f, (dq_op_id){"dqrun", conv ? "QLinearConv16" : "QLinearMatMul16", 1},
                                     p->node, in[8] ? 9 : 8, in, out, conv ? p->node->attr_count : 2);
    if (node && conv)
        dq_rewriter_copy_attrs(p->node, node);
    if (!node || conv)
        return node;
    node->attrs[0] =
        (dq_attr){.name = "transB", .kind = DQ_ATTR_INT, .u.i = dq_node_int(p->node, "transB", 0)};
    node->attrs[1] = (dq_attr){.name = "alpha", .kind = DQ_ATTR_FLOAT, .u.f = (float)p->alpha};
    return node;
}

/* Whether the product needs sums wider than int32, because of its types or because sums may overflow. */
static bool needs_16_bit(dq_rewriter *f, const dq_product *p)
{
    return is_16_bits(p->x.dtype) || is_16_bits(p->w.dtype) ||
           dq_product_int32_sums(f, p, "summed in wider integers") != DQ_SUMS_FIT;
}

/* ---- The pass ----------------------------------------------------------------------------------------- */

/* Makes the node that produces the product's quantized result. */
static dq_node *make_quantized(dq_rewriter *f, dq_product *p, const dq_quantized *q)
{
    dq_node *made = NULL;
    const bool bits_16 = is_16_bits(p->x.dtype) || is_16_bits(p->w.dtype) || is_16_bits(q->dtype);
    p->y_scale = (double)dq_match_scale(q->scale_t, 0);
    const bool transposed = dq_match_op(p->node, "ConvTranspose");
    if (!find_channels(p) || (p->bias && p->channels == 0) ||
        (p->bias && !bits_16 &&
         !dq_product_int32_bias(f, p, transposed ? "not fused" : "summed in wider integers")))
        return NULL;
    const dq_tensor *bias = p->sum_bias ? dq_match_constant(p->sum_bias) : NULL;
    const dq_tensor *floats = p->rest_bias ? dq_match_constant(p->rest_bias) : NULL;
    if (transposed)
        made = bits_16 || p->bias_overflows
                   ? NULL
                   : dq_lower_conv_transpose(f, p->node, &p->x, &p->w, bias, floats, q);
    else if (bits_16 || p->bias_overflows || needs_16_bit(f, p))
        made = make_16_bit(f, p, q, q->node->out[0]);
    else if (dq_match_op(p->node, "Conv"))
        made = make_conv(f, p, q);
    else if (dq_match_op(p->node, "Gemm"))
        made = make_gemm(f, p, q);
    else
        made = p->bias ? make_matmul_bias(f, p, q) : make_matmul(f, p, q);
    return made && dq_rewriter_bind(f, made) ? made : NULL;
}

/* Matches a QuantizeLinear of a product, with data movement, Relu and Clip in between. */
static bool fuse_quantized(dq_rewriter *f)
{
    dq_quantized q;
    dq_product p;
    dq_data_movement tail;
    if (!dq_match_quantized(f, f->nodes[f->at], true, &q))
        return false;
    const dq_value *v = dq_match_moves(f, &q, &tail);
    if (!find_product(f, v, &p))
        return false;
    if (!dq_rewriter_has_one_use(f, v)) {
        dq_rewriter_explain(f, p.node, "not fused: its float result is read elsewhere, too");
        return false;
    }
    if (!read_operands(f, &p)) {
        dq_rewriter_explain(
            f, p.node, "not fused: an operand is not dequantized from 8 or 16 bits with constant parameters");
        return false;
    }
    if (!dq_match_is_finite(f, v)) {
        dq_rewriter_explain(f, p.node, "not fused: its float result could overflow or be NaN");
        return false;
    }
    dq_node *made = make_quantized(f, &p, &q);
    if (!made || !dq_rewriter_replace_quantize(f, made, &q, &tail))
        return false;
    dq_rewriter_explain(f, p.node, "fused with its quantization into %s",
                        dq_match_op(p.node, "ConvTranspose") ? "QLinearConv"
                        : dq_match_op(made, "Reshape")       ? "QGemm"
                                                             : made->op_type);
    return true;
}

/* ---- Float results ------------------------------------------------------------------------------------ */

/* Whether the only reader is a QuantizeLinear with which the product is lowered. */
static bool is_quantized_next(dq_rewriter *f, const dq_value *v, dq_product p)
{
    dq_quantized q;
    const dq_node *next = dq_match_quantize_ahead(f, v);
    f->quiet = true; /* The other match explains. */
    bool fuses = next && dq_match_quantized(f, next, true, &q) && make_quantized(f, &p, &q);
    f->quiet = false;
    return fuses;
}

/* Whether the bias is a vector with an element per column of constant weights. */
static bool is_column_bias(const dq_product *p)
{
    const dq_tensor *bias = dq_match_constant(p->bias), *w = dq_match_constant(p->w.qvalues);
    return bias && w && bias->dtype == DQ_FLOAT && bias->rank == 1 && w->rank >= 2 &&
           bias->count == (size_t)w->dims[w->rank - 1];
}

/* Whether the only reader of a MatMul's result is an Add that is fused with it. */
static bool is_added_next(const dq_rewriter *f, const dq_product *p)
{
    const dq_value *v = p->node->out[0];
    dq_product with;
    if (p->added || !dq_rewriter_has_one_use(f, v))
        return false;
    const dq_node *reader = dq_rewriter_consumer(f, v);
    if (!dq_match_op(reader, "Add") || !find_product(f, reader->out[0], &with))
        return false;
    with.w = p->w;
    return is_column_bias(&with);
}

/* Transposes constant weights of a Gemm to those of a MatMul. */
static bool transpose_weights(dq_rewriter *f, dq_product *p)
{
    if (!dq_match_op(p->node, "Gemm") || dq_node_int(p->node, "transB", 0) == 0)
        return true;
    dq_value *transposed = dq_rewriter_make_value(f, p->node->in[1]->name, p->w.dtype);
    dq_node *transpose = transposed ? dq_rewriter_node(f, (dq_op_id){"", "Transpose", 13}, p->node, 1,
                                                       &p->w.qvalues, transposed, 0)
                                    : NULL;
    p->w.qvalues = transposed;
    return transpose && dq_rewriter_bind(f, transpose) && dq_rewriter_insert_or_fold(f, transpose) &&
           dq_match_constant(transposed);
}

static dq_node *make_to_float(dq_rewriter *f, dq_product *p, dq_value *out)
{
    dq_value *bias = (dq_value *)(uintptr_t)p->bias;
    if (needs_16_bit(f, p))
        return make_16_bit(f, p, NULL, out);
    if (dq_match_op(p->node, "Gemm") &&
        (p->alpha != 1 || !transpose_weights(f, p) || (bias && !(bias = dq_product_float_bias(f, p)))))
        return NULL;
    dq_value *in[7] = {p->x.qvalues, p->w.qvalues, p->x.scale, p->w.scale, p->x.zero, p->w.zero, bias};
    return dq_rewriter_node(f, (dq_op_id){"com.microsoft", "MatMulIntegerToFloat", 1}, p->node, 7, in, out,
                            0);
}

/* Whether the product of the operands' scales is a normal number: an infinite factor makes NaN of a sum of 0.
 */
static bool has_normal_scale(const dq_product *p)
{
    for (size_t i = 0; i < p->w.scale_t->count; i++)
        if (!isnormal(dq_match_scale(p->x.scale_t, 0) * dq_match_scale(p->w.scale_t, i)))
            return false;
    return true;
}

/* Matches a MatMul, an Add of a bias to one, or a Gemm, with a float result. */
static bool fuse_to_float(dq_rewriter *f)
{
    dq_node *last = f->nodes[f->at];
    bool gemm = dq_match_op(last, "Gemm");
    dq_product p;
    if ((!gemm && !dq_match_op(last, "Add") && !dq_match_op(last, "MatMul")) || !last->out[0] ||
        !find_product(f, last->out[0], &p) || (!gemm && !dq_match_op(p.node, "MatMul")) ||
        !read_operands(f, &p) || !has_normal_scale(&p) ||
        !(gemm ? gemm_channels(&p) && p.channels > 0 : matmul_channels(&p)) ||
        dq_node_int(p.node, "transA", 0) != 0 ||
        (!gemm && ((p.bias && !is_column_bias(&p)) || is_added_next(f, &p))) ||
        is_quantized_next(f, last->out[0], p))
        return false;
    dq_node *made = make_to_float(f, &p, last->out[0]);
    if (!made || !dq_rewriter_bind(f, made))
        return false;
    dq_rewriter_replace(f, f->at, made);
    dq_rewriter_explain(f, p.node, "fused with the dequantization of its operands into %s", made->op_type);
    return true;
}

/* Matches a Conv of 8-bit values with a float result, and Relu or Clip after it. */
static bool fuse_conv_to_float(dq_rewriter *f)
{
    const dq_node *conv = f->nodes[f->at];
    dq_product p;
    if (!dq_match_op(conv, "Conv") || !conv->out[0] || !find_product(f, conv->out[0], &p) ||
        !read_operands(f, &p) || !has_normal_scale(&p) || is_16_bits(p.x.dtype) || is_16_bits(p.w.dtype) ||
        !conv_channels(&p) || !dq_match_constant(p.w.qvalues) || is_quantized_next(f, conv->out[0], p))
        return false;
    dq_epilogue c = dq_epilogue_begin(conv->out[0], f->at, dq_match_constant(p.w.qvalues));
    /* Else a chain that ends in the QuantizeLinear fuses Relu and Clip (fuse_elementwise.c). */
    if (!dq_match_quantize_ahead(f, c.last))
        dq_epilogue_match_clips(f, &c);
    dq_value *in[7] = {p.x.qvalues, p.w.qvalues, p.x.zero, p.w.zero, p.x.scale, p.w.scale, NULL};
    if (dq_product_int32_sums(f, &p, "not fused") != DQ_SUMS_FIT ||
        (p.bias && !(in[6] = dq_product_float_bias(f, &p))))
        return false;
    if (!dq_epilogue_to_float(f, &c, conv, 7, in))
        return false;
    dq_rewriter_explain(f, conv, "fused with the dequantization of its operands into ConvIntegerToFloat");
    return true;
}

bool dq_lower_qdq_matmul(dq_rewriter *f)
{
    return fuse_quantized(f) || fuse_to_float(f) || fuse_conv_to_float(f);
}
