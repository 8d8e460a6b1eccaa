/* SPDX-License-Identifier: Apache-2.0 */
/* Recognizes normalizations over the last axes, as exporters wrote them before ONNX had the operators.
 *
 * Matches and replaces:
 *
 *   d = x - ReduceMean(x);  d / Sqrt(ReduceMean(d * d) + epsilon) * gamma (+ beta)   → LayerNormalization
 *   x / Sqrt(ReduceMean(x * x) + epsilon) * gamma                                    → RMSNormalization
 *
 * with Pow(d, 2) or d * d, a division or a product with Reciprocal (or 1 / …), and d computed once or twice.
 *
 * Exactness: not the same bits. The replacement sums in double and rounds at the end, where the graph as
 * written rounds after each node: its error is not larger. */
#include "rewrite/match.h"

typedef struct written {
    dq_value *x, *gamma;
    size_t axes; /* Number of last axes. */
    float epsilon;
    bool centred;
} written;

/* The producer of `v` in this graph, if it is that operator on floats and `v` has `uses` uses; else NULL. */
static const dq_node *producer_of(const dq_rewriter *f, const dq_value *v, const char *op, uint32_t uses)
{
    const dq_node *node = v ? v->producer : NULL;
    bool fits = dq_match_op(node, op) && node->graph == f->graph && dq_rewriter_use_count(f, v) == uses &&
                dq_match_dtype(f, v) == DQ_FLOAT;
    return fits ? node : NULL;
}

static bool constant_is(const dq_value *v, double requested)
{
    const dq_tensor *t = dq_match_constant(v);
    return t && t->count == 1 && dq_dtype_get(t->dtype)->cls != DQ_CLASS_STRING &&
           dq_tensor_get_double(t, 0) == requested;
}

/* The operand of a commutative node that `op` produces and that has `uses` uses; *other: the other operand.
 */
static const dq_node *operand(const dq_rewriter *f, const dq_node *node, const char *op, uint32_t uses,
                              dq_value **other)
{
    for (uint32_t i = 0; node && node->in_count == 2 && i < 2; i++) {
        const dq_node *found = producer_of(f, node->in[i], op, uses);
        *other = node->in[1 - i];
        if (found)
            return found;
    }
    return NULL;
}

/* Whether the node is a ReduceMean of `of` with keepdims over the last *axes axes. 0: any number, which it
 * sets. */
static bool is_mean(const dq_node *node, const dq_value *of, size_t *axes)
{
    const dq_attr *given = dq_node_attr(node, "axes");
    const dq_tensor *t = node->in_count > 1 ? dq_match_constant(node->in[1]) : NULL;
    size_t count = given ? given->count : t && t->dtype == DQ_INT64 ? t->count : 0;
    const int64_t *list = given ? given->u.ints : count ? dq_data(t, int64_t) : NULL;
    if (node->in[0] != of || count == 0 || dq_node_int(node, "keepdims", 1) == 0 ||
        (*axes != 0 && *axes != count))
        return false;
    int64_t rank = of->type.has_shape ? (int64_t)of->type.rank : 0;
    for (size_t i = 0; i < count; i++)
        if ((list[i] < 0 ? -list[i] : rank - list[i]) != (int64_t)(count - i))
            return false;
    *axes = count;
    return true;
}

/* Matches `v` as x - ReduceMean(x). */
static bool is_centred(const dq_rewriter *f, const dq_value *v, uint32_t uses, dq_value **x, size_t *axes)
{
    const dq_node *sub = producer_of(f, v, "Sub", uses);
    if (!sub)
        return false;
    const dq_value *m = sub->in[1];
    uint32_t readers = dq_rewriter_use_count(f, m); /* 2: another Sub. */
    const dq_node *mean = readers <= 2 ? producer_of(f, m, "ReduceMean", readers) : NULL;
    *x = sub->in[0];
    return mean && is_mean(mean, *x, axes);
}

/* Matches `v` as the square root of ReduceMean(d * d) + epsilon. Gives *d and the number of its reads by the
 * square. */
static bool read_deviation(const dq_rewriter *f, const dq_value *v, written *w, dq_value **d, uint32_t *reads)
{
    dq_value *epsilon = NULL;
    const dq_node *root = producer_of(f, v, "Sqrt", 1);
    const dq_node *add = root ? producer_of(f, root->in[0], "Add", 1) : NULL;
    const dq_node *mean = operand(f, add, "ReduceMean", 1, &epsilon);
    const dq_tensor *t = mean ? dq_match_constant(epsilon) : NULL;
    if (!t || t->count != 1 || t->dtype != DQ_FLOAT || t->rank > 1)
        return false;
    w->epsilon = dq_data(t, float)[0];
    const dq_value *square = mean->in[0];
    const dq_node *power = producer_of(f, square, "Pow", 1), *product = producer_of(f, square, "Mul", 1);
    if (power && constant_is(power->in[1], 2)) {
        *d = power->in[0];
        *reads = 1;
    } else if (product && product->in[0] == product->in[1]) {
        *d = product->in[0];
        *reads = 2;
    } else {
        return false;
    }
    return is_mean(mean, square, &w->axes) && w->epsilon >= 0;
}

/* Matches `v` as `above` divided by the deviation of d. */
static bool read_quotient(const dq_rewriter *f, const dq_value *v, written *w, dq_value **d, dq_value **above,
                          uint32_t *reads)
{
    const dq_node *div = producer_of(f, v, "Div", 1), *mul = producer_of(f, v, "Mul", 1);
    if (div) {
        *above = div->in[0];
        return read_deviation(f, div->in[1], w, d, reads);
    }
    for (uint32_t i = 0; mul && i < 2; i++) {
        const dq_node *inverse = producer_of(f, mul->in[i], "Reciprocal", 1),
                      *one = producer_of(f, mul->in[i], "Div", 1);
        *above = mul->in[1 - i];
        if (one && constant_is(one->in[0], 1) && read_deviation(f, one->in[1], w, d, reads))
            return true;
        if (inverse && read_deviation(f, inverse->in[0], w, d, reads))
            return true;
    }
    return false;
}

static bool read_normalized(const dq_rewriter *f, const dq_value *v, written *w)
{
    dq_value *d, *above, *x;
    uint32_t reads;
    if (!read_quotient(f, v, w, &d, &above, &reads))
        return false;
    if (d == above) {
        w->centred = is_centred(f, d, reads + 1, &w->x, &w->axes);
        if (!w->centred)
            w->x = d;
    } else {
        w->centred =
            is_centred(f, d, reads, &w->x, &w->axes) && is_centred(f, above, 1, &x, &w->axes) && w->x == x;
    }
    return (w->centred || d == above) && dq_match_dtype(f, w->x) == DQ_FLOAT;
}

/* Whether `v` is a factor or term per element along the axes: a constant that does not enlarge the result. */
static bool is_vector(const dq_value *v, size_t axes)
{
    const dq_tensor *t = dq_match_constant(v);
    return t && t->dtype == DQ_FLOAT && t->rank == axes && t->count > 1;
}

/* Matches `v` as the quotient times gamma. */
static bool read_scaled(const dq_rewriter *f, const dq_node *mul, written *w)
{
    for (uint32_t i = 0; dq_match_op(mul, "Mul") && i < 2; i++) {
        *w = (written){.gamma = mul->in[1 - i]};
        if (dq_match_constant(w->gamma) && read_normalized(f, mul->in[i], w) && is_vector(w->gamma, w->axes))
            return true;
    }
    return false;
}

/* Whether the next node is an Add of such a term, which then ends the pattern. */
static bool goes_on(const dq_rewriter *f, const dq_node *mul, const written *w)
{
    const dq_value *v = mul->out[0];
    const dq_node *next = v && dq_rewriter_has_one_use(f, v) ? dq_rewriter_consumer(f, v) : NULL;
    return w->centred && dq_match_op(next, "Add") && is_vector(next->in[next->in[0] == v], w->axes);
}

bool dq_match_layer_norm(dq_rewriter *f)
{
    dq_node *last = f->nodes[f->at];
    const dq_node *mul = last;
    written w;
    dq_value *beta = NULL;
    if (dq_match_op(last, "Add") && !(mul = operand(f, last, "Mul", 1, &beta)))
        return false;
    if (!read_scaled(f, mul, &w) || (beta ? !w.centred || !is_vector(beta, w.axes) : goes_on(f, mul, &w)))
        return false;
    dq_value *in[3] = {w.x, w.gamma, beta};
    const char *op = w.centred ? "LayerNormalization" : "RMSNormalization";
    dq_node *made =
        dq_rewriter_node(f, (dq_op_id){"", op, w.centred ? 17 : 23}, last, beta ? 3 : 2, in, last->out[0], 2);
    if (!made)
        return false;
    made->attrs[0] = (dq_attr){.name = "axis", .kind = DQ_ATTR_INT, .u.i = -(int64_t)w.axes};
    made->attrs[1] = (dq_attr){.name = "epsilon", .kind = DQ_ATTR_FLOAT, .u.f = w.epsilon};
    if (!dq_rewriter_bind(f, made))
        return false;
    dq_rewriter_replace(f, f->at, made);
    dq_rewriter_explain(f, last, "the nodes before it that normalize become one %s", op);
    return true;
}
