/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers operators without a quantized form, or without one for these types, to tiled QDQ.
 *
 * Matches: QuantizeLinear(op(DequantizeLinear x, constants…)), for operators that process independent slices
 * of x: pools and Resize on planes, Softmax and layer normalization on rows, LRN on positions with all their
 * channels.
 *
 * Replaces: dqrun.TiledQdq, which dequantizes some slices, runs the operator on them, and quantizes the
 * result. No tensor of floats stays in memory.
 *
 * Exactness: exact. */
#include "rewrite/match.h"

#include <math.h>
#include <string.h>

enum { INPUTS = 4 };
enum { COLUMNS = 0, PLANES = 2, LAST = -1, NONE = -2 };

static bool is_stretched(const dq_node *node)
{
    return strcmp(dq_node_string(node, "keep_aspect_ratio_policy", "stretch"), "stretch") == 0 &&
           !dq_node_attr(node, "axes") && node->opset >= 11;
}

/* Whether the node resizes planes only. Whether `sizes` keep the first two axes is checked when shapes are
 * known; if not, the model is planned as written. */
static bool resizes_planes(const dq_node *node)
{
    const dq_tensor *scales = dq_match_constant(dq_node_input(node, 2));
    const dq_tensor *sizes = node->in_count > 3 ? dq_match_constant(node->in[3]) : NULL;
    if (!is_stretched(node))
        return false;
    if (sizes && sizes->count > 2)
        return true;
    return scales && scales->dtype == DQ_FLOAT && scales->count > 2 && dq_data(scales, float)[0] == 1 &&
           dq_data(scales, float)[1] == 1;
}

/* The axes that enumerate slices, as in ops/quantize/tiled_qdq.c. */
static int64_t slices_of(const dq_node *node)
{
    static const char *const pools[] = {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        if (dq_match_op(node, pools[i]))
            return PLANES;
    if (dq_match_op(node, "LRN"))
        return COLUMNS;
    if (dq_match_op(node, "Resize"))
        return resizes_planes(node) ? PLANES : NONE;
    bool softmax = (dq_match_op(node, "Softmax") || dq_match_op(node, "LogSoftmax")) && node->opset >= 13;
    bool norm = dq_match_op(node, "LayerNormalization") || dq_match_op(node, "RMSNormalization") ||
                dq_match_op(node, "SimplifiedLayerNormalization");
    return (softmax || norm) && dq_node_int(node, "axis", -1) == -1 ? LAST : NONE;
}

static bool others_are_constant(const dq_node *node)
{
    for (uint32_t i = 1; i < node->in_count; i++)
        if (node->in[i] && !dq_match_constant(node->in[i]))
            return false;
    for (uint32_t i = 1; i < node->out_count; i++)
        if (node->out[i])
            return false;
    return true;
}

dq_node *dq_rewriter_tiled(dq_rewriter *f, const dq_node *node, dq_value *from, const dq_quant_params *x,
                           const dq_quant_params *y, dq_value *out)
{
    enum { OWN = 5 };
    dq_value *in[INPUTS];
    float *scales = DQ_NEW_ARRAY(f->arena, 2, float);
    int64_t *qvalues = DQ_NEW_ARRAY(f->arena, 3, int64_t);
    if (!scales || !qvalues)
        return dq_rewriter_no_memory(f), NULL;
    memcpy(in, node->in, node->in_count * sizeof *in);
    in[0] = from;
    dq_node *made = dq_rewriter_node(f, (dq_op_id){"dqrun", "TiledQdq", 1}, node, node->in_count, in, out,
                                     node->attr_count + OWN);
    if (!made)
        return NULL;
    dq_rewriter_copy_attrs(node, made);
    dq_attr *own = made->attrs + node->attr_count;
    scales[0] = x->scale;
    scales[1] = y->scale;
    qvalues[0] = x->zero;
    qvalues[1] = (int64_t)y->dtype;
    qvalues[2] = y->zero;
    own[0] = (dq_attr){.name = "op", .kind = DQ_ATTR_STRING, .u.s = {node->op_type, strlen(node->op_type)}};
    own[1] = (dq_attr){.name = "version", .kind = DQ_ATTR_INT, .u.i = node->version};
    own[2] = (dq_attr){.name = "free", .kind = DQ_ATTR_INT, .u.i = slices_of(node)};
    own[3] = (dq_attr){.name = "scales", .kind = DQ_ATTR_FLOATS, .count = 2, .u.floats = scales};
    own[4] = (dq_attr){.name = "codes", .kind = DQ_ATTR_INTS, .count = 3, .u.ints = qvalues};
    return dq_rewriter_bind(f, made) ? made : NULL;
}

/* Whether such an operator produces `v` from quantized values, which *x then describes. */
static bool read_operator(const dq_rewriter *f, const dq_value *v, dq_dequantized *x)
{
    const dq_node *node = v->producer;
    return node && v->graph == f->graph && dq_rewriter_has_one_use(f, v) && slices_of(node) != NONE &&
           node->in_count <= INPUTS && others_are_constant(node) &&
           dq_match_dequantized(f, node->in[0], true, x) && x->per_tensor && x->dtype != DQ_INT32;
}

bool dq_lower_qdq_tiled(dq_rewriter *f)
{
    dq_quantized q;
    dq_dequantized x;
    dq_data_movement tail;
    if (!dq_match_quantized(f, f->nodes[f->at], true, &q))
        return false;
    const dq_value *v = dq_match_moves_without_nan(f, &q, &tail);
    if (!read_operator(f, v, &x)) {
        v = q.node->in[0]; /* An operator that also is data movement, between other quantized values. */
        tail = (dq_data_movement){.clip = {-INFINITY, INFINITY}};
        if (!read_operator(f, v, &x))
            return false;
    }
    dq_quant_params from = dq_match_params(x.scale_t, x.zero_t, x.dtype),
                    to = dq_match_params(q.scale_t, q.zero_t, q.dtype);
    dq_value *qvalues = dq_rewriter_quantized_value(f, &x);
    dq_node *made = qvalues ? dq_rewriter_tiled(f, v->producer, qvalues, &from, &to, q.node->out[0]) : NULL;
    if (!made || !dq_rewriter_replace_quantize(f, made, &q, &tail))
        return false;
    dq_rewriter_explain(f, v->producer, "runs tile by tile between quantized values");
    return true;
}
