/* SPDX-License-Identifier: Apache-2.0 */
/* Folds data movement of right operands into float products, as with the keys of attention.
 *
 * Matches and replaces:
 *
 *   MatMul(a, Transpose(b))                   → com.microsoft.FusedMatMul(a, b), which reads b transposed
 *   MatMul(a, Mul(moved(b), factor)), moved by
 *   Transpose, Reshape, Unsqueeze and Expand  → the same of moved(Mul(b, factor)): Expand repeats elements
 *
 * Exactness: exact. */
#include "rewrite/match.h"

#include <string.h>

enum { MAX_MOVES = 4 };

typedef struct operand {
    dq_value *from, *factor; /* `factor` NULL: none. */
    const dq_node *moves[MAX_MOVES];
    uint32_t count;
    bool transposed;
} operand;

static const dq_node *only(const dq_rewriter *f, const dq_value *v, const char *op)
{
    return v->graph == f->graph && dq_rewriter_has_one_use(f, v) && dq_match_op(v->producer, op) ? v->producer
                                                                                                 : NULL;
}

/* Whether the node swaps the last two axes. */
static bool swaps(const dq_node *node)
{
    size_t rank;
    const int64_t *perm = dq_node_ints(node, "perm", &rank);
    for (size_t i = 0; i + 2 < rank; i++)
        if (perm[i] != (int64_t)i)
            return false;
    return rank >= 2 && perm[rank - 2] == (int64_t)rank - 1 && perm[rank - 1] == (int64_t)rank - 2;
}

static bool is_factor(const dq_value *v)
{
    const dq_tensor *t = dq_match_constant(v);
    return t && t->rank == 0;
}

static operand read_operand(const dq_rewriter *f, dq_value *v)
{
    operand o = {.from = v};
    const dq_node *node = only(f, v, "Mul");
    for (uint32_t i = 0; node && i < 2 && !o.factor; i++)
        if (is_factor(node->in[i])) {
            o.factor = node->in[i];
            o.from = node->in[1 - i];
        }
    node = only(f, o.from, "Transpose");
    if (node && swaps(node)) {
        o.transposed = true;
        o.from = node->in[0];
    }
    while (o.factor && o.count < MAX_MOVES &&
           ((node = only(f, o.from, "Reshape")) || (node = only(f, o.from, "Expand")) ||
            (node = only(f, o.from, "Unsqueeze")))) {
        o.moves[o.count++] = node;
        o.from = node->in[0];
    }
    return o;
}

/* Inserts a node before the product and gives its result in *v. */
static bool put(dq_rewriter *f, dq_node *node, dq_value **v)
{
    if (!node || !dq_rewriter_bind(f, node) || !dq_rewriter_insert_before(f, node))
        return false;
    *v = node->out[0];
    return true;
}

static bool multiply_first(dq_rewriter *f, const dq_node *last, dq_dtype dtype, operand *o)
{
    dq_value *in[2] = {o->from, o->factor}, *out = dq_rewriter_make_value(f, last->name, dtype);
    if (!out || !put(f, dq_rewriter_node(f, (dq_op_id){"", "Mul", 14}, last, 2, in, out, 0), &o->from))
        return false;
    while (o->count > 0)
        if (!(out = dq_rewriter_make_value(f, last->name, dtype)) ||
            !put(f, dq_rewriter_move_quantized(f, o->moves[--o->count], o->from, dtype, 0, &out), &o->from))
            return false;
    return true;
}

bool dq_fold_transpose(dq_rewriter *f)
{
    dq_node *last = f->nodes[f->at];
    if (!dq_match_op(last, "MatMul"))
        return false;
    const dq_dtype dtype = dq_match_dtype(f, last->in[1]);
    if (dtype != DQ_FLOAT && dtype != DQ_FLOAT16)
        return false;
    operand o = read_operand(f, last->in[1]);
    if ((!o.transposed && !o.count) || dq_match_constant(o.from) ||
        (o.factor && !multiply_first(f, last, dtype, &o)))
        return false;
    dq_value *in[2] = {last->in[0], o.from};
    dq_node *made =
        dq_rewriter_node(f, (dq_op_id){"com.microsoft", "FusedMatMul", 1}, last, 2, in, last->out[0], 1);
    if (!made)
        return false;
    made->attrs[0] = (dq_attr){.name = "transB", .kind = DQ_ATTR_INT, .u.i = o.transposed};
    if (!dq_rewriter_bind(f, made))
        return false;
    dq_rewriter_replace(f, f->at, made);
    dq_rewriter_explain(f, last,
                        o.transposed
                            ? "fused with the Transpose of its right operand, which is read where it stands"
                            : "the factor of its right operand comes before what moves that");
    return true;
}
