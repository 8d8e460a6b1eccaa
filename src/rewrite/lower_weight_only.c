/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers products of floats with quantized constant weights of up to 8 bits.
 *
 * Matches and replaces:
 *
 *   MatMul(a, DequantizeLinear(w)) (+ bias)     → dqrun.DequantizeMatMul
 *   Gemm(a, DequantizeLinear(w), bias)          → the same
 *
 * Scales are per tensor, per column or per block of a column, and w is as it is or transposed. The weights
 * stay quantized, which takes less memory and bandwidth than floats.
 *
 * Exactness: for few rows, zero points and scales are applied to sums (ops/weight_only/weight_only.h): not
 * exact, but in float precision. For many rows exact; for float16 and bfloat16 except that weights are not
 * rounded to that type.
 *
 * Leaves alone: products where a scale is no normal number, or a dequantized weight overflows float. */
#include "rewrite/match_epilogue.h"

#include <string.h>

enum { SMALLEST_BLOCK = 16, LITTLE = 1 << 16 /* 8-bit weights that stay in a cache as floats. */ };

typedef struct weights {
    dq_value *qvalues, *scale, *zero;
    int64_t columns, block; /* 0: none. */
    bool transposed;
} weights;

static bool only_here(const dq_rewriter *f, const dq_value *v)
{
    return v->graph == f->graph && dq_rewriter_has_one_use(f, v) && v->producer;
}

static bool is_transposed(const dq_node *node)
{
    size_t rank;
    const int64_t *perm = dq_node_ints(node, "perm", &rank);
    return rank == 0 || (rank == 2 && perm[0] == 1);
}

/* Whether parameters of this shape are per tensor, per column, or per block of a column. */
static bool read_scales(const dq_node *node, const dq_tensor *qvalues, const dq_tensor *scale, weights *w)
{
    const int64_t axis = dq_node_int(node, "axis", 1), at = axis < 0 ? axis + 2 : axis;
    const int64_t block = dq_node_int(node, "block_size", 0), rows = qvalues->dims[w->transposed];
    if (scale->count == 1)
        return true;
    if (scale->rank == 1)
        return at == !w->transposed && scale->dims[0] == w->columns;
    w->block = block;
    return scale->rank == 2 && at == w->transposed && block >= SMALLEST_BLOCK &&
           scale->dims[!w->transposed] == w->columns && scale->dims[w->transposed] == (rows - 1) / block + 1;
}

/* Reads constant quantized weights, and the nodes between them and the product. */
static bool read_weights(const dq_rewriter *f, const dq_value *v, weights *w)
{
    for (; only_here(f, v) && dq_match_op(v->producer, "Transpose") && is_transposed(v->producer);
         v = v->producer->in[0])
        w->transposed = !w->transposed;
    const dq_node *node = v->producer;
    if (!only_here(f, v) || strcmp(node->op_type, "DequantizeLinear") != 0 ||
        dq_rewriter_record(f, v)->has_bad_scale)
        return false;
    w->qvalues = dq_match_resolve(f, node->in[0]);
    w->scale = dq_match_resolve(f, node->in[1]);
    w->zero = dq_match_resolve(f, dq_node_input(node, 2));
    const dq_tensor *qvalues = dq_match_constant(w->qvalues), *scale = dq_match_constant(w->scale);
    const dq_tensor *zero = dq_match_constant(w->zero);
    const int64_t result = dq_node_int(node, "output_dtype", 0);
    if (!qvalues || !scale || (w->zero && (!zero || zero->count != scale->count)) || qvalues->rank != 2 ||
        qvalues->count == 0 || (result != 0 && result != (int64_t)scale->dtype))
        return false;
    const dq_dtype_row *row = dq_dtype_get(qvalues->dtype);
    w->columns = qvalues->dims[!w->transposed];
    return row->bits <= 8 && row->min < row->max && (row->bits < 8 || qvalues->count >= LITTLE) &&
           read_scales(node, qvalues, scale, w);
}

/* Gemm's bias, if it has one element per column. */
static bool read_bias(const dq_node *gemm, const weights *w, dq_value **bias)
{
    *bias = dq_node_input(gemm, 2);
    const dq_tensor *t = dq_match_constant(*bias);
    return dq_node_float(gemm, "alpha", 1) == 1 && dq_node_int(gemm, "transA", 0) == 0 &&
           (!*bias || (t && t->rank > 0 && (int64_t)t->count == w->columns &&
                       t->dims[t->rank - 1] == w->columns && dq_node_float(gemm, "beta", 1) == 1));
}

/* The bias that is added after a MatMul. */
static dq_value *take_bias(const dq_rewriter *f, const weights *w, dq_epilogue *c)
{
    dq_value *other;
    uint32_t at;
    const dq_node *add = dq_epilogue_next(f, c, "Add", &at, &other);
    dq_value *bias = add && other ? dq_epilogue_per_channel(c, other) : NULL;
    if (!bias || (int64_t)dq_match_constant(bias)->count != w->columns)
        return NULL;
    dq_epilogue_append(c, add, at);
    return bias;
}

bool dq_lower_weight_only(dq_rewriter *f)
{
    dq_node *last = f->nodes[f->at];
    const bool gemm = dq_match_op(last, "Gemm");
    weights w = {.transposed = gemm && dq_node_int(last, "transB", 0) != 0};
    dq_dequantized x;
    dq_value *bias = NULL;
    if ((!gemm && !dq_match_op(last, "MatMul")) || !read_weights(f, last->in[1], &w) ||
        (gemm && !read_bias(last, &w, &bias)) ||
        dq_match_dtype(f, last->in[0]) != dq_match_constant(w.scale)->dtype ||
        dq_match_dequantized(f, last->in[0], true, &x)) /* Then only a quantized product could match. */
        return false;
    const dq_type *type = &last->out[0]->type;
    dq_epilogue c = dq_epilogue_begin(last->out[0], f->at, dq_match_constant(w.qvalues));
    c.rank = gemm ? 2 : type->has_shape ? type->rank : 1;
    c.channels = (size_t)w.columns;
    if (!gemm)
        bias = take_bias(f, &w, &c);
    dq_value *in[5] = {last->in[0], w.qvalues, w.scale, w.zero, bias};
    dq_node *made =
        dq_rewriter_node(f, (dq_op_id){"dqrun", "DequantizeMatMul", 1}, last, bias ? 5 : 4, in, c.last, 2);
    if (!made)
        return false;
    made->attrs[0] = (dq_attr){.name = "block_size", .kind = DQ_ATTR_INT, .u.i = w.block};
    made->attrs[1] = (dq_attr){.name = "transB", .kind = DQ_ATTR_INT, .u.i = w.transposed};
    if (!dq_rewriter_bind(f, made))
        return false;
    dq_epilogue_replace(f, &c, made);
    dq_rewriter_explain(f, last, "fused with the dequantization of its weights into DequantizeMatMul");
    return true;
}
