/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies the list of nodes after each pass, in builds with assertions. An error here is a bug of the pass.
 */
#include "rewrite/rewriter.h"

#include <string.h>

typedef struct checker {
    const dq_rewriter *f;
    const char *pass;
    bool *given; /* By the index of a value: an earlier node produces it. */
    bool *read;  /* By the index of a value: a needed node or a caller reads it. */
    const dq_node *node;
    dq_error *err;
    dq_status status;
} checker;

static dq_status fail(checker *c, const char *what, const dq_value *v)
{
    char text[DQ_NODE_TEXT];
    if (c->status == DQ_OK)
        c->status = dq_fail(c->err, DQ_INTERNAL, "after pass %s: %s %s '%s'", c->pass,
                            dq_node_text(c->node, text), what, v ? v->name : "");
    return c->status;
}

static bool is_needed(const checker *c, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && c->read[dq_rewriter_index(c->f, node->out[i])])
            return true;
    return false;
}

static void mark_read(void *arg, dq_value *v)
{
    checker *c = arg;
    c->read[dq_rewriter_index(c->f, v)] = true;
}

static void check_read(void *arg, dq_value *v)
{
    checker *c = arg;
    const dq_rewriter *f = c->f;
    const bool own = v->graph == f->graph;
    const bool from_node = own && (v->producer || v->id >= f->request->ir->value_count) && !v->constant;
    if (from_node && !c->given[dq_rewriter_index(f, v)])
        fail(c, "reads a value that no node before it gives:", v);
}

static void check_node(checker *c, dq_node *node)
{
    c->node = node;
    if (!node->op && node->made)
        fail(c, "has no implementation", NULL);
    dq_node_each_use(node, check_read, c);
    for (uint32_t i = 0; i < node->out_count; i++) {
        const dq_value *v = node->out[i];
        if (!v)
            continue;
        bool *given = &c->given[dq_rewriter_index(c->f, v)];
        if (*given)
            fail(c, "gives once more", v);
        *given = true;
    }
}

dq_status dq_rewriter_verify(const dq_rewriter *f, const char *pass, dq_error *err)
{
    dq_rewriter copy = *f; /* With the inserted nodes. */
    copy.scratch = &(dq_arena){0};
    const size_t indices = (size_t)f->written_count + f->value_count;
    checker c = {.f = &copy, .pass = pass, .err = err, .status = DQ_OK};
    c.given = DQ_NEW_ARRAY(copy.scratch, indices, bool);
    c.read = DQ_NEW_ARRAY(copy.scratch, indices, bool);
    copy.arena = copy.scratch;
    if (!c.given || !c.read || !dq_rewriter_apply_insertions(&copy)) {
        dq_arena_free(copy.scratch);
        return dq_no_memory(err, indices, "rewritten nodes");
    }
    for (uint32_t i = 0; i < f->requested_count; i++)
        mark_read(&c, (dq_value *)(uintptr_t)f->requested[i]);
    for (uint32_t n = copy.count; n-- > 0;)
        if (is_needed(&c, copy.nodes[n]))
            dq_node_each_use(copy.nodes[n], mark_read, &c);
    for (uint32_t n = 0; n < copy.count && c.status == DQ_OK; n++)
        if (is_needed(&c, copy.nodes[n]))
            check_node(&c, copy.nodes[n]);
    dq_arena_free(copy.scratch);
    return c.status;
}
