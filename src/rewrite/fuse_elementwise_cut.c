/* SPDX-License-Identifier: Apache-2.0 */
/* Splits chains so that functions of one 16-bit quantized value have a chain of their own: for a large
 * tensor, such a chain uses a lookup table. It begins or ends where the original chain rounds to 16-bit
 * values. Passing these values between two chains costs as little as the rounding alone. */
#include "rewrite/fuse_elementwise.h"

#include <string.h>

enum { WORTH_A_CHAIN = 3 /* Steps. */ };

/* The computation of a value of the chain, without the nodes before `leaf`. */
typedef struct look {
    const dq_chain_pass *p;
    const dq_chain *c;
    const dq_node *leaf;
    bool seen[DQ_CHAIN_STEPS];
    uint32_t steps;
    const dq_value *root; /* The 16-bit quantized values, or leaf's result, on which the value depends. */
    bool other;           /* It also depends on another value. */
} look;

static bool is_one_constant(const look *l, const dq_value *v)
{
    dq_dequantized x;
    const dq_tensor *t = dq_match_constant(v);
    if (!t && dq_match_dequantized(l->p->f, v, true, &x))
        t = dq_match_constant(x.qvalues);
    return t && t->count == 1;
}

static void meet_root(look *l, const dq_value *v)
{
    dq_dequantized x;
    if (is_one_constant(l, v))
        return;
    if (!l->leaf || v != l->leaf->out[0]) {
        l->other = l->other || !dq_match_dequantized(l->p->f, v, true, &x) || !x.per_tensor || x.moved ||
                   dq_dtype_get(x.dtype)->bits != 16;
        v = l->other ? v : x.qvalues;
    }
    l->other = l->other || (l->root && l->root != v);
    l->root = v;
}

static void look_at(look *l, const dq_value *v)
{
    const dq_node *node = dq_chain_producer(l->p, v);
    uint32_t at = 0, ins;
    while (at < l->c->count && l->c->nodes[at] != node)
        at++;
    if (at == l->c->count || node == l->leaf) {
        meet_root(l, v);
        return;
    }
    if (l->seen[at])
        return;
    l->seen[at] = true;
    l->steps++;
    dq_value *const *in = dq_chain_operands(l->p, node, &ins);
    for (uint32_t i = 0; i < ins; i++)
        if (in[i])
            look_at(l, in[i]);
}

static look look_from(const dq_chain_pass *p, const dq_chain *c, const dq_node *node, const dq_node *leaf)
{
    look l = {.p = p, .c = c, .leaf = leaf};
    look_at(&l, node->out[0]);
    return l;
}

static bool is_function(const look *l)
{
    return !l->other && l->steps >= WORTH_A_CHAIN;
}

/* Finds the rounding at which to split so that most steps are a function of one quantized value. */
static const dq_node *find_cut(const dq_chain_pass *p, const dq_chain *c)
{
    const dq_node *best = NULL;
    uint32_t most = 0;
    for (uint32_t n = 1; n < c->count; n++) {
        const dq_node *node = c->nodes[n];
        dq_dequantized x;
        if (strcmp(node->op_type, "DequantizeLinear") != 0 ||
            !dq_match_dequantized(p->f, node->out[0], true, &x) || dq_dtype_get(x.dtype)->bits != 16)
            continue;
        const look before = look_from(p, c, node, NULL), after = look_from(p, c, c->nodes[0], node);
        uint32_t steps = is_function(&before) ? before.steps : 0;
        if (is_function(&after) && after.steps > steps)
            steps = after.steps;
        if (steps > most) {
            most = steps;
            best = node;
        }
    }
    return best;
}

void dq_chain_cut(const dq_chain_pass *p, dq_chain *c)
{
    for (const dq_node *cut; look_from(p, c, c->nodes[0], NULL).other && (cut = find_cut(p, c));) {
        const look kept = look_from(p, c, c->nodes[0], cut);
        uint32_t count = 0;
        for (uint32_t n = 0; n < c->count; n++)
            if (kept.seen[n])
                c->nodes[count++] = c->nodes[n];
        c->count = count;
    }
}
