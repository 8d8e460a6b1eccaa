/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers QuantizeLinear(op(DequantizeLinear x …)) for operators that are no products.
 *
 * Replaces:
 *
 * - Add, Sum of two, Mul: dqrun.QLinearAdd, QLinearMul. The real-number formula, rounded once.
 *
 * - AveragePool, GlobalAveragePool, ReduceMean: dqrun.QLinearAveragePool, QLinearGlobalAveragePool,
 * QLinearReduceMean, likewise.
 *
 * - Softmax: dqrun.QLinearSoftmax. The standard's formula in float, rounded once.
 *
 * - Concat, Where: com.microsoft QLinearConcat, QLinearWhere; Concat of 16-bit quantized values: Concat
 * itself. Exact.
 *
 * - Concat of quantized values with one scale and zero point, which a product reads:
 * DequantizeLinear(Concat(x …)). Exact.
 *
 * Exactness: the graph as written rounds intermediate floats, so that near ties results may differ by one
 * quantum. com.microsoft's operators of the same names have other formulas (docs/com-microsoft.md).
 *
 * Data movement, Relu and Clip may surround the operator (sink_data_movement.c). */
#include "ops/pool/exact_mean.h"
#include "rewrite/match.h"

#include <math.h>
#include <string.h>

/* ---- Add and Mul -------------------------------------------------------------------------------------- */

/* Gets an operand in the result's type; converts constants of the other 8-bit type. */
static bool take(dq_rewriter *f, const dq_value *v, dq_dtype dtype, dq_value **in)
{
    dq_dequantized x;
    return dq_match_dequantized(f, v, false, &x) && x.per_tensor && dq_match_scale(x.scale_t, 0) > 0 &&
           (x.dtype == dtype || dq_rewriter_flip_sign(f, &x)) && dq_rewriter_operand(f, &x, in);
}

static dq_q8 params_of(const dq_value *scale, const dq_value *zero, dq_dtype dtype)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    return (dq_q8){.scale = dq_match_scale(dq_match_constant(scale), 0),
                   .zero = (int)dq_match_zero_point(dq_match_constant(zero), 0),
                   .min = (int)row->min,
                   .max = (int)row->max};
}

/* Sets the parameters with which the kernel gives the results of the real-number formula, if there are such.
 */
static bool set_terms(dq_rewriter *f, dq_node *node, bool adds, dq_dtype dtype)
{
    const dq_q8_pair pair = {params_of(node->in[1], node->in[2], dtype),
                             params_of(node->in[4], node->in[5], dtype),
                             params_of(node->in[6], node->in[7], dtype)};
    const size_t count = adds ? DQ_ADD_TERMS : DQ_MUL_TERMS;
    float *terms = DQ_NEW_ARRAY(f->arena, count, float);
    if (!terms)
        return dq_rewriter_no_memory(f);
    node->attr_count = adds ? dq_q8_add_terms(&pair, terms) : dq_q8_mul_terms(&pair, terms);
    if (node->attr_count)
        node->attrs[0] =
            (dq_attr){.name = "terms", .kind = DQ_ATTR_FLOATS, .count = count, .u.floats = terms};
    return true;
}

static dq_node *make_binary(dq_rewriter *f, const dq_node *node, const dq_quantized *q, const char *op)
{
    dq_value *in[8];
    if (node->in_count != 2 || !dq_match_is_finite(f, node->out[0]) || !take(f, node->in[0], q->dtype, in) ||
        !take(f, node->in[1], q->dtype, in + 3))
        return NULL;
    dq_rewriter_result(f, q, in + 6);
    dq_node *made =
        f->failed ? NULL : dq_rewriter_node(f, (dq_op_id){"dqrun", op, 1}, node, 8, in, q->node->out[0], 1);
    return made && set_terms(f, made, strcmp(op, "QLinearAdd") == 0, q->dtype) ? made : NULL;
}

/* ---- Pools -------------------------------------------------------------------------------------------- */

static bool keeps(const char *name)
{
    static const char *const names[] = {"auto_pad",     "ceil_mode", "count_include_pad",
                                        "kernel_shape", "pads",      "strides"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool no_dilation(const dq_node *node)
{
    size_t count;
    const int64_t *dilations = dq_node_ints(node, "dilations", &count);
    for (size_t i = 0; i < count; i++)
        if (dilations[i] != 1)
            return false;
    return true;
}

/* The last windows of ceil_mode may extend beyond the padding. AveragePool does not count that part;
 * QLinearAveragePool with count_include_pad counts whole windows. */
static bool counts_alike(const dq_node *node)
{
    return dq_node_int(node, "ceil_mode", 0) == 0 || dq_node_int(node, "count_include_pad", 0) == 0;
}

/* Makes a node with one operand, and the capacity for one attribute more than `node` has. The float sum of
 * the graph as written must not overflow. */
static dq_node *make_unary(dq_rewriter *f, const dq_node *node, const dq_quantized *q, const char *op)
{
    const double most_elements = 0x1p31, most = 0x1p127 / most_elements;
    dq_value *in[5];
    dq_dequantized x;
    if (!dq_match_dequantized(f, node->in[0], false, &x) || dq_match_largest_magnitude(&x) > most ||
        !take(f, node->in[0], q->dtype, in))
        return NULL;
    dq_rewriter_result(f, q, in + 3);
    if (f->failed)
        return NULL;
    dq_node *made =
        dq_rewriter_node(f, (dq_op_id){"dqrun", op, 1}, node, 5, in, q->node->out[0], node->attr_count + 1);
    if (made)
        made->attr_count = 0;
    return made;
}

/* Whether float holds the integer sums of the windows, as QLinearAveragePool adds them. */
static bool has_small_windows(const dq_node *node)
{
    size_t axes;
    const int64_t *kernel = dq_node_ints(node, "kernel_shape", &axes);
    int64_t elements = 1;
    for (size_t i = 0; i < axes; i++) {
        if (kernel[i] < 1 || kernel[i] > DQ_EXACT_MEAN_ELEMENTS / elements)
            return false;
        elements *= kernel[i];
    }
    return true;
}

static dq_node *make_pool(dq_rewriter *f, const dq_node *node, const dq_quantized *q, const char *op)
{
    if (!no_dilation(node) || !counts_alike(node) || !has_small_windows(node))
        return NULL;
    dq_node *made = make_unary(f, node, q, op);
    for (uint32_t i = 0; made && i < node->attr_count; i++)
        if (keeps(node->attrs[i].name))
            made->attrs[made->attr_count++] = node->attrs[i];
    return made;
}

/* Reads the axes, an attribute of QLinearReduceMean, which may be an input of ReduceMean. */
static bool read_axes(const dq_node *node, dq_attr *axes)
{
    const dq_attr *given = dq_node_attr(node, "axes");
    const dq_value *v = node->in_count > 1 ? node->in[1] : NULL;
    const dq_tensor *t = dq_match_constant(v);
    *axes = (dq_attr){.name = "axes", .kind = DQ_ATTR_INTS};
    if (given)
        *axes = *given;
    else if (t && t->dtype == DQ_INT64)
        *axes =
            (dq_attr){.name = "axes", .kind = DQ_ATTR_INTS, .count = t->count, .u.ints = dq_data(t, int64_t)};
    else if (v)
        return false;
    return axes->count > 0 || dq_node_int(node, "noop_with_empty_axes", 0) == 0;
}

static dq_node *make_mean(dq_rewriter *f, const dq_node *node, const dq_quantized *q)
{
    dq_attr axes;
    dq_node *made = read_axes(node, &axes) ? make_unary(f, node, q, "QLinearReduceMean") : NULL;
    if (!made)
        return NULL;
    made->attrs[made->attr_count++] =
        (dq_attr){.name = "keepdims", .kind = DQ_ATTR_INT, .u.i = dq_node_int(node, "keepdims", 1)};
    if (axes.count > 0)
        made->attrs[made->attr_count++] = axes;
    return made;
}

static dq_node *make_softmax(dq_rewriter *f, const dq_node *node, const dq_quantized *q)
{
    dq_node *made = make_unary(f, node, q, "QLinearSoftmax");
    if (!made)
        return NULL;
    int64_t last = node->opset < 13 ? 1 : -1;
    made->attrs[made->attr_count++] =
        (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = dq_node_int(node, "axis", last)};
    made->attrs[made->attr_count++] =
        (dq_attr){.name = "opset", .kind = DQ_ATTR_INT, .u.i = node->opset < 13 ? 12 : 13};
    return made;
}

/* ---- Concat and Where --------------------------------------------------------------------------------- */

enum { MAX_PARTS = 64 };

static dq_node *make_concat(dq_rewriter *f, const dq_node *node, const dq_quantized *q)
{
    dq_value *in[2 + 3 * MAX_PARTS];
    uint32_t count = 2;
    if (node->in_count > MAX_PARTS)
        return NULL;
    dq_rewriter_result(f, q, in);
    for (uint32_t i = 0; i < node->in_count; i++, count += 3)
        if (!take(f, node->in[i], q->dtype, in + count))
            return NULL;
    if (f->failed)
        return NULL;
    dq_node *made = dq_rewriter_node(f, (dq_op_id){"com.microsoft", "QLinearConcat", 1}, node, count, in,
                                     q->node->out[0], 1);
    if (made)
        made->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = dq_node_int(node, "axis", 1)};
    return made;
}

static dq_node *make_where(dq_rewriter *f, const dq_node *node, const dq_quantized *q)
{
    dq_value *in[9] = {node->in[0]};
    if (!take(f, node->in[1], q->dtype, in + 1) || !take(f, node->in[2], q->dtype, in + 4))
        return NULL;
    dq_rewriter_result(f, q, in + 7);
    return f->failed ? NULL
                     : dq_rewriter_node(f, (dq_op_id){"com.microsoft", "QLinearWhere", 1}, node, 9, in,
                                        q->node->out[0], 0);
}

/* Makes a Concat of 16-bit values. Inputs with other parameters are first requantized to those of the result.
 */
static dq_node *make_concat_16(dq_rewriter *f, const dq_node *node, const dq_quantized *q)
{
    dq_dequantized x[MAX_PARTS];
    dq_value *in[MAX_PARTS];
    if (node->in_count > MAX_PARTS || node->opset < 4)
        return NULL;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (!dq_match_dequantized(f, node->in[i], true, &x[i]) || !x[i].per_tensor || x[i].dtype == DQ_INT32)
            return NULL;
    for (uint32_t i = 0; i < node->in_count; i++) {
        in[i] = dq_rewriter_quantized_value(f, &x[i]);
        bool same =
            x[i].dtype == q->dtype && dq_match_same_params(x[i].scale_t, x[i].zero_t, q->scale_t, q->zero_t);
        dq_node *made = in[i] && !same ? dq_rewriter_requantize(f, &x[i], in[i], q, node) : NULL;
        if (!in[i] || (!same && !made))
            return NULL;
        in[i] = same ? in[i] : made->out[0];
    }
    dq_node *made = dq_rewriter_node(f, (dq_op_id){"", "Concat", node->opset}, node, node->in_count, in,
                                     q->node->out[0], node->attr_count);
    if (made)
        dq_rewriter_copy_attrs(node, made);
    return made;
}

/* ---- The pass ----------------------------------------------------------------------------------------- */

static dq_node *make(dq_rewriter *f, const dq_node *node, const dq_quantized *q)
{
    if (!(dq_match_scale(q->scale_t, 0) > 0))
        return NULL;
    if (dq_match_op(node, "Add") || dq_match_op(node, "Sum"))
        return make_binary(f, node, q, "QLinearAdd");
    if (dq_match_op(node, "Mul"))
        return make_binary(f, node, q, "QLinearMul");
    if (dq_match_op(node, "AveragePool"))
        return make_pool(f, node, q, "QLinearAveragePool");
    if (dq_match_op(node, "GlobalAveragePool"))
        return make_pool(f, node, q, "QLinearGlobalAveragePool");
    if (dq_match_op(node, "ReduceMean"))
        return make_mean(f, node, q);
    if (dq_match_op(node, "Softmax"))
        return make_softmax(f, node, q);
    if (dq_match_op(node, "Concat"))
        return make_concat(f, node, q);
    if (dq_match_op(node, "Where"))
        return make_where(f, node, q);
    return NULL;
}

bool dq_lower_qdq_elementwise(dq_rewriter *f)
{
    dq_quantized q;
    dq_data_movement tail;
    if (!dq_match_quantized(f, f->nodes[f->at], true, &q))
        return false;
    const dq_value *v = dq_match_moves_without_nan(f, &q, &tail);
    if (!v->producer || v->graph != f->graph || !dq_rewriter_has_one_use(f, v))
        return false;
    bool is_16_bit = dq_dtype_get(q.dtype)->bits == 16;
    dq_node *made = !is_16_bit                           ? make(f, v->producer, &q)
                    : dq_match_op(v->producer, "Concat") ? make_concat_16(f, v->producer, &q)
                                                         : NULL;
    if (!made || !dq_rewriter_bind(f, made) || !dq_rewriter_replace_quantize(f, made, &q, &tail))
        return false;
    dq_rewriter_explain(f, v->producer, "works on quantized values");
    return true;
}
