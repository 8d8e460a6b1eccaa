/* SPDX-License-Identifier: Apache-2.0 */
/* Lowers dynamically quantized MatMul, as quantizers write it.
 *
 * Matches and replaces:
 *
 *   Mul(Cast(MatMulInteger(a, b, za, zb)), Mul(sa, sb)) (+ bias)  → com.microsoft.MatMulIntegerToFloat
 *
 * or com.microsoft.DynamicQuantizeMatMul, if a, sa and za come from a DynamicQuantizeLinear without other
 * readers.
 *
 * Exactness: exact, the same roundings in the same order. */
#include "rewrite/match.h"

/* The input of `node` that `op` produces and nothing else reads; *other is the other input. */
static const dq_node *operand(const dq_rewriter *f, const dq_node *node, const char *op, dq_value **other)
{
    for (uint32_t i = 0; node->in_count == 2 && i < 2; i++) {
        const dq_value *v = node->in[i];
        if (v->graph == f->graph && dq_match_op(v->producer, op) && dq_rewriter_has_one_use(f, v)) {
            *other = node->in[1 - i];
            return v->producer;
        }
    }
    return NULL;
}

typedef struct found {
    const dq_node *product;
    dq_value *a_scale, *b_scale;
    dq_value *scales; /* Their product. */
} found;

bool dq_match_is_scalar_float(const dq_value *v, size_t rank)
{
    const dq_tensor *t = dq_match_constant(v);
    if (t)
        return t->count == 1 && t->rank <= rank && t->dtype == DQ_FLOAT;
    return dq_match_op(v->producer, "DynamicQuantizeLinear") && v->producer->out_count > 1 &&
           v->producer->out[1] == v;
}

/* Matches a Mul of a cast sum and the product of the scales. */
static bool read_scaled(const dq_rewriter *f, const dq_node *mul, found *out)
{
    dq_value *scales = NULL;
    if (!dq_match_op(mul, "Mul"))
        return false;
    const dq_node *cast = operand(f, mul, "Cast", &scales);
    if (!cast || dq_node_int(cast, "to", 0) != DQ_FLOAT || !scales->producer ||
        !dq_match_op(scales->producer, "Mul"))
        return false;
    const dq_value *sum = cast->in[0];
    const dq_node *product = sum->producer, *both = scales->producer;
    if (!product || !dq_match_op(product, "MatMulInteger") || !dq_rewriter_has_one_use(f, sum) ||
        sum->graph != f->graph)
        return false;
    *out = (found){product, both->in[0], both->in[1], scales};
    const dq_tensor *b_scale = dq_match_constant(out->b_scale), *b = dq_match_constant(product->in[1]);
    /* The scale of a must be one element, that of b one or one per column of the weights. */
    if (!dq_match_is_scalar_float(out->a_scale, DQ_MAX_RANK) || !b_scale || b_scale->dtype != DQ_FLOAT)
        return false;
    if (b_scale->count == 1)
        return true;
    return b && b->rank >= 2 && b_scale->rank == 1 && b_scale->count == (size_t)b->dims[b->rank - 1];
}

static dq_value *column_bias(const dq_value *bias, const dq_node *product)
{
    const dq_tensor *t = dq_match_constant(bias), *b = dq_match_constant(product->in[1]);
    bool fits = t && b && t->dtype == DQ_FLOAT && t->rank == 1 && b->rank >= 2 &&
                t->count == (size_t)b->dims[b->rank - 1];
    return fits ? (dq_value *)(uintptr_t)bias : NULL;
}

const dq_node *dq_match_own_quantize(const dq_rewriter *f, const dq_node *p, const dq_value *scale,
                                     const dq_value *scales)
{
    const dq_node *q = p->in[0]->producer;
    if (!dq_match_op(q, "DynamicQuantizeLinear") || q->graph != f->graph || q->out_count != 3 ||
        q->out[0] != p->in[0] || q->out[1] != scale || p->in_count < 3 || q->out[2] != p->in[2] ||
        dq_match_dtype(f, p->in[0]) != DQ_UINT8)
        return NULL;
    bool alone = dq_rewriter_has_one_use(f, p->in[0]) && dq_rewriter_has_one_use(f, scale) &&
                 dq_rewriter_has_one_use(f, p->in[2]) && dq_rewriter_has_one_use(f, scales);
    return alone ? q : NULL;
}

/* Whether the only reader of the scaled product is an Add of a bias, which then ends the pattern. */
static bool is_biased_next(const dq_rewriter *f, const dq_node *mul, const dq_node *product)
{
    const dq_value *v = mul->out[0];
    const dq_node *add = v && dq_rewriter_has_one_use(f, v) ? dq_rewriter_consumer(f, v) : NULL;
    return dq_match_op(add, "Add") && column_bias(add->in[add->in[0] == v], product);
}

bool dq_lower_dynamic_matmul(dq_rewriter *f)
{
    const uint32_t at = f->at;
    dq_node *last = f->nodes[at];
    dq_value *other = NULL, *bias = NULL;
    found it;
    if (dq_match_op(last, "Add")) {
        const dq_node *mul = operand(f, last, "Mul", &other);
        if (!mul || !read_scaled(f, mul, &it) || !(bias = column_bias(other, it.product)))
            return false;
    } else if (!read_scaled(f, last, &it) || is_biased_next(f, last, it.product)) {
        return false;
    }
    const dq_node *p = it.product, *quantize = dq_match_own_quantize(f, it.product, it.a_scale, it.scales);
    dq_value *b_zero = p->in_count > 3 ? p->in[3] : NULL;
    dq_value *qvalues[7] = {p->in[0], p->in[1], it.a_scale, it.b_scale, dq_node_input(p, 2), b_zero, bias};
    dq_value *floats[5] = {quantize ? quantize->in[0] : NULL, p->in[1], it.b_scale, b_zero, bias};
    const char *op = quantize ? "DynamicQuantizeMatMul" : "MatMulIntegerToFloat";
    dq_node *made = dq_rewriter_node(f, (dq_op_id){"com.microsoft", op, 1}, p, quantize ? 5 : 7,
                                     quantize ? floats : qvalues, last->out[0], 0);
    if (!made || !dq_rewriter_bind(f, made))
        return false;
    dq_rewriter_replace(f, at, made);
    dq_rewriter_explain(f, p, "fused with its %sscaling into %s",
                        quantize ? "operand's quantization and its " : "", op);
    return true;
}
