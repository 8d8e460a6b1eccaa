/* SPDX-License-Identifier: Apache-2.0 */
/* Who reads what: uses and readers of values, by their index. */
#include "rewrite/rewriter.h"

uint32_t dq_rewriter_capture_at(const dq_rewriter *f, const dq_value *v)
{
    const dq_graph *g = f->graph;
    uint32_t low = 0, high = g->capture_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (g->captures[middle]->id < v->id)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < g->capture_count && g->captures[low] == v;
    return g->value_count + (found ? low : g->capture_count);
}

uint32_t dq_rewriter_uses(const dq_rewriter *f, const dq_value *v)
{
    const uint32_t at = dq_rewriter_at(f, v);
    return at < f->use_count ? f->uses[at] : DQ_REWRITER_WANTED;
}

bool dq_rewriter_has_one_use(const dq_rewriter *f, const dq_value *v)
{
    return dq_rewriter_uses(f, v) == 1;
}

bool dq_rewriter_is_read(const dq_rewriter *f, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && dq_rewriter_uses(f, node->out[i]))
            return true;
    return false;
}

/* ---- The graph as written ----------------------------------------------------------------------------- */

typedef struct reading {
    dq_rewriter *f;
    const dq_node *node;
} reading;

static void count_reading(void *arg, dq_value *v)
{
    const reading *r = arg;
    const uint32_t at = dq_rewriter_at(r->f, v);
    r->f->uses[at]++;
    if (!r->f->reader[at])
        r->f->reader[at] = r->node;
}

bool dq_rewriter_count_uses(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count)
{
    bool *needed = DQ_NEW_ARRAY(f->passing, f->count, bool);
    f->uses = DQ_NEW_ARRAY(f->passing, f->use_count, uint32_t);
    f->reader = DQ_NEW_ARRAY(f->passing, f->use_count, const dq_node *);
    if (!needed || !f->uses || !f->reader)
        return dq_rewriter_no_memory(f);
    for (uint32_t i = 0; i < wanted_count; i++)
        f->uses[dq_rewriter_at(f, wanted[i])] +=
            2; /* never "once": what a caller wants is computed as written */
    for (uint32_t n = f->count; n-- > 0;) {
        reading r = {f, f->nodes[n]};
        needed[n] = dq_rewriter_is_read(f, r.node);
        if (needed[n])
            dq_node_each_use(r.node, count_reading, &r);
    }
    return dq_rewriter_list_uses(f, needed, f->use_count, &f->readings);
}

/* ---- Readers ------------------------------------------------------------------------------------------ */

typedef struct lister {
    const dq_rewriter *f;
    dq_use_list *to;
    uint32_t position;
} lister;

static void count_position(void *arg, dq_value *v)
{
    const lister *l = arg;
    l->to->start[dq_rewriter_at(l->f, v) + 1]++;
}

static void add_position(void *arg, dq_value *v)
{
    const lister *l = arg;
    l->to->positions[l->to->start[dq_rewriter_at(l->f, v)]++] = l->position;
}

static void each_position(lister *l, const bool *needed, dq_use_fn use)
{
    for (l->position = 0; l->position < l->f->count; l->position++)
        if (needed[l->position])
            dq_node_each_use(l->f->nodes[l->position], use, l);
}

bool dq_rewriter_list_uses(dq_rewriter *f, const bool *needed, uint32_t index_count, dq_use_list *readings)
{
    lister l = {f, readings, 0};
    readings->start = DQ_NEW_ARRAY(f->passing, (size_t)index_count + 1, uint32_t);
    if (!readings->start)
        return dq_rewriter_no_memory(f);
    each_position(&l, needed, count_position);
    for (uint32_t i = 0; i < index_count; i++)
        readings->start[i + 1] += readings->start[i];
    readings->positions = DQ_NEW_ARRAY(f->passing, readings->start[index_count], uint32_t);
    if (!readings->positions)
        return dq_rewriter_no_memory(f);
    each_position(&l, needed, add_position);
    for (uint32_t i = index_count; i > 0; i--) /* adding moved each start to its end */
        readings->start[i] = readings->start[i - 1];
    readings->start[0] = 0;
    return true;
}

dq_node *dq_rewriter_next_use(const dq_rewriter *f, uint32_t at, const dq_value *v, uint32_t *position)
{
    const uint32_t index = dq_rewriter_at(f, v);
    if (index >= f->use_count)
        return NULL;
    for (uint32_t k = f->readings.start[index]; k < f->readings.start[index + 1]; k++) {
        const uint32_t n = f->readings.positions[k];
        dq_node *node = f->nodes[n];
        for (uint32_t i = 0; n > at && i < node->in_count; i++)
            if (node->in[i] == v && dq_rewriter_is_read(f, node)) {
                *position = n;
                return node;
            }
    }
    return NULL;
}

/* ---- The list as patterns left it --------------------------------------------------------------------- */

typedef struct counter {
    const dq_rewriter *f;
    uint32_t *uses;
} counter;

static void count_use(void *arg, dq_value *v)
{
    const counter *c = arg;
    c->uses[dq_rewriter_at(c->f, v)]++;
}

bool dq_rewriter_count_final_uses(dq_rewriter *f, const dq_value *const *wanted, uint32_t wanted_count,
                                  uint32_t **uses, bool **needed)
{
    *uses = DQ_NEW_ARRAY(f->passing, f->use_count + f->value_count, uint32_t);
    *needed = DQ_NEW_ARRAY(f->passing, f->count, bool);
    if (!*uses || !*needed)
        return dq_rewriter_no_memory(f);
    counter c = {f, *uses};
    for (uint32_t i = 0; i < wanted_count; i++)
        (*uses)[dq_rewriter_at(f, wanted[i])] += DQ_REWRITER_WANTED;
    for (uint32_t n = f->count; n-- > 0;) {
        const dq_node *node = f->nodes[n];
        for (uint32_t i = 0; i < node->out_count; i++)
            (*needed)[n] = (*needed)[n] || (node->out[i] && (*uses)[dq_rewriter_at(f, node->out[i])] > 0);
        if ((*needed)[n])
            dq_node_each_use(node, count_use, &c);
    }
    return true;
}
