/* Operators that work on quantized codes element by element, or only move them:
 *
 *   QuantizeLinear(op(DequantizeLinear x …))
 *
 *   Add, Sum of two, Mul              → com.microsoft QLinearAdd, QLinearMul: the sum is rounded with its
 * zero point, so that ties may fall one quantum apart from the graph as written AveragePool,
 * GlobalAveragePool    → com.microsoft QLinearAveragePool, QLinearGlobalAveragePool: likewise Concat, Where
 * → com.microsoft QLinearConcat, QLinearWhere: exact MaxPool, Reshape, Transpose and others that only choose
 * and move elements → the same operator on the codes, when both ends have the same scale and zero point:
 * exact, as Q(DQ(code)) is the code
 *
 * A Relu or Clip before the QuantizeLinear becomes one of codes (fuse_clip.c). */
#include "plan/fuser.h"

#include <math.h>
#include <string.h>

/* ---- Add and Mul ----------------------------------------------------------------------------------------
 */

static dq_node *make_binary(dq_fuser *f, const dq_node *node, const dq_quantized *q, const char *op)
{
    dq_dequantized a, b;
    if (node->in_count != 2 || !dq_fuser_dequantized(f, node->in[0], false, &a) ||
        !dq_fuser_dequantized(f, node->in[1], false, &b) || !a.per_tensor || !b.per_tensor ||
        a.dtype != b.dtype || a.dtype != q->dtype)
        return NULL;
    dq_value *in[8];
    dq_fuser_operand(f, &a, in);
    dq_fuser_operand(f, &b, in + 3);
    dq_fuser_result(f, q, in + 6);
    return f->failed ? NULL : dq_fuser_node(f, "com.microsoft", op, 1, node, 8, in, q->node->out[0], 0);
}

/* ---- Pools ----------------------------------------------------------------------------------------------
 */

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

/* The last windows of ceil_mode may reach beyond the padding. AveragePool leaves that part out of its count;
 * QLinearAveragePool with count_include_pad counts whole windows. */
static bool counts_alike(const dq_node *node)
{
    return dq_node_int(node, "ceil_mode", 0) == 0 || dq_node_int(node, "count_include_pad", 0) == 0;
}

static dq_node *make_pool(dq_fuser *f, const dq_node *node, const dq_quantized *q, const char *op)
{
    dq_dequantized x;
    if (!dq_fuser_dequantized(f, node->in[0], false, &x) || !x.per_tensor || x.dtype != q->dtype ||
        !no_dilation(node) || !counts_alike(node))
        return NULL;
    dq_value *in[5];
    dq_fuser_operand(f, &x, in);
    dq_fuser_result(f, q, in + 3);
    if (f->failed)
        return NULL;
    dq_node *made = dq_fuser_node(f, "com.microsoft", op, 1, node, 5, in, q->node->out[0], node->attr_count);
    if (!made)
        return NULL;
    made->attr_count = 0;
    for (uint32_t i = 0; i < node->attr_count; i++)
        if (keeps(node->attrs[i].name))
            made->attrs[made->attr_count++] = node->attrs[i];
    return made;
}

/* ---- Concat and Where ------------------------------------------------------------------------------------
 */

enum { MOST_PARTS = 64 };

static dq_node *make_concat(dq_fuser *f, const dq_node *node, const dq_quantized *q)
{
    dq_value *in[2 + 3 * MOST_PARTS];
    uint32_t count = 2;
    if (node->in_count > MOST_PARTS)
        return NULL;
    dq_fuser_result(f, q, in);
    for (uint32_t i = 0; i < node->in_count; i++) {
        dq_dequantized x;
        if (!dq_fuser_dequantized(f, node->in[i], false, &x) || !x.per_tensor || x.dtype != q->dtype)
            return NULL;
        dq_fuser_operand(f, &x, in + count);
        count += 3;
    }
    if (f->failed)
        return NULL;
    dq_node *made =
        dq_fuser_node(f, "com.microsoft", "QLinearConcat", 1, node, count, in, q->node->out[0], 1);
    if (made)
        made->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = dq_node_int(node, "axis", 1)};
    return made;
}

static dq_node *make_where(dq_fuser *f, const dq_node *node, const dq_quantized *q)
{
    dq_dequantized x, y;
    if (!dq_fuser_dequantized(f, node->in[1], false, &x) ||
        !dq_fuser_dequantized(f, node->in[2], false, &y) || !x.per_tensor || !y.per_tensor ||
        x.dtype != q->dtype || y.dtype != q->dtype)
        return NULL;
    dq_value *in[9] = {node->in[0]};
    dq_fuser_operand(f, &x, in + 1);
    dq_fuser_operand(f, &y, in + 4);
    dq_fuser_result(f, q, in + 7);
    return f->failed ? NULL
                     : dq_fuser_node(f, "com.microsoft", "QLinearWhere", 1, node, 9, in, q->node->out[0], 0);
}

/* ---- Moving codes -----------------------------------------------------------------------------------------
 */

/* Operators whose first input's elements come out unchanged, some of them. */
static bool only_moves(const dq_node *node)
{
    static const char *const names[] = {
        "Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze",    "Slice",        "Gather",
        "Expand",  "Identity",  "Tile",    "MaxPool", "DepthToSpace", "SpaceToDepth", "GatherElements"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (dq_fuser_is(node, names[i]))
            return node->out_count == 1; /* MaxPool's indices are floats' business */
    return false;
}

static dq_node *make_move(dq_fuser *f, const dq_node *node, const dq_quantized *q)
{
    dq_dequantized x;
    if (!dq_fuser_dequantized(f, node->in[0], true, &x) || x.dtype != q->dtype ||
        !dq_fuser_same_params(x.scale_t, x.zero_t, q->scale_t, q->zero_t))
        return NULL;
    /* a larger value has a larger code only under a positive scale */
    if (dq_fuser_is(node, "MaxPool") && (!(dq_fuser_scale(q->scale_t, 0) > 0) || q->dtype == DQ_UINT16 ||
                                         q->dtype == DQ_INT16 || node->opset < 12))
        return NULL;
    dq_node *made = dq_fuser_node(f, "", node->op_type, node->opset, node, node->in_count, node->in,
                                  q->node->out[0], node->attr_count);
    if (!made)
        return NULL;
    made->in[0] = x.codes;
    made->in_names[0] = x.codes->name;
    dq_fuser_copy_attrs(node, made);
    return made;
}

/* ---- The pass
 * ---------------------------------------------------------------------------------------------- */

static dq_node *make(dq_fuser *f, const dq_node *node, const dq_quantized *q)
{
    if (only_moves(node))
        return make_move(f, node, q);
    if (q->dtype != DQ_UINT8 && q->dtype != DQ_INT8)
        return NULL;
    if (dq_fuser_is(node, "Add") || dq_fuser_is(node, "Sum"))
        return make_binary(f, node, q, "QLinearAdd");
    if (dq_fuser_is(node, "Mul"))
        return make_binary(f, node, q, "QLinearMul");
    if (dq_fuser_is(node, "AveragePool"))
        return make_pool(f, node, q, "QLinearAveragePool");
    if (dq_fuser_is(node, "GlobalAveragePool"))
        return make_pool(f, node, q, "QLinearGlobalAveragePool");
    if (dq_fuser_is(node, "Concat"))
        return make_concat(f, node, q);
    if (dq_fuser_is(node, "Where"))
        return make_where(f, node, q);
    return NULL;
}

bool dq_fuse_elements(dq_fuser *f, uint32_t at)
{
    dq_quantized q;
    dq_clip c;
    if (!dq_fuser_quantized(f, f->nodes[at], true, &q))
        return false;
    const dq_value *v = q.node->in[0];
    if (q.dtype == DQ_UINT8 || q.dtype == DQ_INT8)
        v = dq_fuser_before_clips(f, v, &c);
    else
        c = (dq_clip){-INFINITY, INFINITY};
    if (!v->producer || v->graph != f->graph || !dq_fuser_once(f, v))
        return false;
    dq_node *made = make(f, v->producer, &q);
    if (!made || !dq_fuser_bind(f, made) || !dq_fuser_place_clipped(f, at, made, &q, &c))
        return false;
    dq_fuser_tell(f, v->producer, "works on the quantized codes");
    return true;
}
