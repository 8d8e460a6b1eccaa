/* SPDX-License-Identifier: Apache-2.0 */
/* Use lists: the inputs of nodes that read a value. The uses of each value are a doubly linked list in one
 * array, so that the cost of replacing a node depends only on its own inputs. A node that nothing reads has
 * no uses itself. */
#include "rewrite/match.h"

#include <string.h>

uint32_t dq_rewriter_capture_index(const dq_rewriter *f, const dq_value *v)
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

uint32_t dq_rewriter_use_count(const dq_rewriter *f, const dq_value *v)
{
    const dq_value_record *record = dq_rewriter_record(f, v);
    return record ? record->use_count : DQ_USES_UNKNOWN;
}

bool dq_rewriter_has_one_use(const dq_rewriter *f, const dq_value *v)
{
    return dq_rewriter_use_count(f, v) == 1;
}

const dq_node *dq_rewriter_consumer(const dq_rewriter *f, const dq_value *v)
{
    const dq_value_record *record = dq_rewriter_record(f, v);
    return record ? f->uses[record->first_use].node : NULL;
}

bool dq_rewriter_is_read(const dq_rewriter *f, const dq_node *node)
{
    for (uint32_t i = 0; i < node->out_count; i++)
        if (node->out[i] && dq_rewriter_use_count(f, node->out[i]))
            return true;
    return false;
}

dq_node *dq_rewriter_next_use(const dq_rewriter *f, uint32_t at, const dq_value *v, uint32_t *position)
{
    const dq_value_record *record = dq_rewriter_record(f, v);
    const dq_use *first = NULL;
    for (uint32_t i = record ? record->first_use : 0; i; i = f->uses[i].next) {
        const dq_use *use = &f->uses[i];
        for (uint32_t k = 0; use->position > at && k < use->node->in_count; k++)
            if (use->node->in[k] == v && (!first || use->position < first->position))
                first = use;
    }
    if (!first)
        return NULL;
    *position = first->position;
    return first->node;
}

/* ---- Updating the lists ------------------------------------------------------------------------------- */

typedef struct adding {
    dq_rewriter *f;
    dq_node *node;
    uint32_t position;
} adding;

static void add_use(void *arg, dq_value *v)
{
    const adding *a = arg;
    dq_rewriter *f = a->f;
    dq_value_record *record = dq_rewriter_record(f, v);
    if (!record || f->failed)
        return;
    if (f->used == f->use_capacity) {
        const uint32_t capacity = 2 * f->use_capacity + 256;
        dq_use *grown = DQ_NEW_ARRAY(f->scratch, capacity, dq_use);
        if (!grown) {
            dq_rewriter_no_memory(f);
            return;
        }
        if (f->used)
            memcpy(grown, f->uses, f->used * sizeof *grown);
        f->uses = grown;
        f->use_capacity = capacity;
    }
    const uint32_t i = f->used++;
    f->uses[i] = (dq_use){.value = v, .node = a->node, .position = a->position, .previous = record->last_use};
    if (record->last_use)
        f->uses[record->last_use].next = i;
    else
        record->first_use = i;
    record->last_use = i;
    record->use_count++;
}

static void unlink_use(dq_rewriter *f, uint32_t i, dq_value_record *record)
{
    const dq_use *use = &f->uses[i];
    *(use->previous ? &f->uses[use->previous].next : &record->first_use) = use->next;
    *(use->next ? &f->uses[use->next].previous : &record->last_use) = use->previous;
    record->use_count--;
}

/* Removes the uses of the node at the position, and of nodes that become unread. */
static void drop_uses(dq_rewriter *f, uint32_t position)
{
    const uint32_t none = UINT32_MAX;
    uint32_t pending = position;
    f->next_pending[position] = none;
    while (pending != none) {
        const uint32_t at = pending, first = f->uses_of[at];
        pending = f->next_pending[at];
        f->uses_of[at] = 0;
        for (uint32_t i = first;
             i && i < f->used && f->uses[i].position == at && f->uses[i].node == f->uses[first].node; i++) {
            dq_value_record *record = dq_rewriter_record(f, f->uses[i].value);
            unlink_use(f, i, record);
            const uint32_t producer = record->producer;
            if (record->use_count == 0 && producer && f->uses_of[producer - 1] &&
                !dq_rewriter_is_read(f, f->nodes[producer - 1])) {
                f->next_pending[producer - 1] = pending;
                pending = producer - 1;
            }
        }
    }
}

void dq_rewriter_replace(dq_rewriter *f, uint32_t position, dq_node *made)
{
    if (f->uses_of) {
        adding a = {f, made, position};
        const uint32_t first = f->used;
        dq_node_each_use(made, add_use, &a); /* First, so that values that both read stay needed. */
        drop_uses(f, position);
        f->uses_of[position] = f->used > first ? first : 0;
    }
    f->nodes[position] = made;
}

void dq_rewriter_add_uses(dq_rewriter *f, dq_node *inserted)
{
    adding a = {f, inserted, f->at};
    if (f->uses_of)
        dq_node_each_use(inserted, add_use, &a);
}

bool dq_rewriter_make_records(dq_rewriter *f)
{
    f->record_count = f->written_count + f->value_count;
    f->records = DQ_NEW_ARRAY(f->scratch, f->record_count, dq_value_record);
    f->uses_of = DQ_NEW_ARRAY(f->scratch, f->count, uint32_t);
    f->insertions = DQ_NEW_ARRAY(f->scratch, f->count, dq_insertion);
    f->next_pending = DQ_NEW_ARRAY(f->scratch, f->count, uint32_t);
    f->uses = DQ_NEW_ARRAY(f->scratch, 1, dq_use);
    if (!f->records || !f->next_pending || !f->uses_of || !f->insertions || !f->uses)
        return dq_rewriter_no_memory(f);
    f->used = f->use_capacity = 1; /* Index 0 is none. */
    for (uint32_t i = 0; i < f->requested_count; i++)
        dq_rewriter_record(f, f->requested[i])->use_count +=
            2; /* Never one: values that a caller requests are computed as written. */
    for (uint32_t n = f->count; n-- > 0 && !f->failed;) {
        adding a = {f, f->nodes[n], n};
        const uint32_t first = f->used;
        for (uint32_t i = 0; i < a.node->out_count; i++)
            if (a.node->out[i])
                dq_rewriter_record(f, a.node->out[i])->producer = n + 1;
        if (dq_rewriter_is_read(f, a.node))
            dq_node_each_use(a.node, add_use, &a);
        f->uses_of[n] = f->used > first ? first : 0;
    }
    return !f->failed;
}

/* ---- Positions of uses in the current list ------------------------------------------------------------ */

typedef struct lister {
    const dq_rewriter *f;
    dq_use_positions *to;
    uint32_t position;
} lister;

static void count_position(void *arg, dq_value *v)
{
    const lister *l = arg;
    l->to->start[dq_rewriter_index(l->f, v) + 1]++;
}

static void add_position(void *arg, dq_value *v)
{
    const lister *l = arg;
    l->to->positions[l->to->start[dq_rewriter_index(l->f, v)]++] = l->position;
}

static void each_position(lister *l, const bool *needed, dq_use_fn use)
{
    for (l->position = 0; l->position < l->f->count; l->position++)
        if (needed[l->position])
            dq_node_each_use(l->f->nodes[l->position], use, l);
}

bool dq_rewriter_list_uses(dq_rewriter *f, const bool *needed, uint32_t index_count, dq_use_positions *uses)
{
    lister l = {f, uses, 0};
    uses->start = DQ_NEW_ARRAY(f->scratch, (size_t)index_count + 1, uint32_t);
    if (!uses->start)
        return dq_rewriter_no_memory(f);
    each_position(&l, needed, count_position);
    for (uint32_t i = 0; i < index_count; i++)
        uses->start[i + 1] += uses->start[i];
    uses->positions = DQ_NEW_ARRAY(f->scratch, uses->start[index_count], uint32_t);
    if (!uses->positions)
        return dq_rewriter_no_memory(f);
    each_position(&l, needed, add_position);
    for (uint32_t i = index_count; i > 0; i--) /* Adding moved each start to its end. */
        uses->start[i] = uses->start[i - 1];
    uses->start[0] = 0;
    return true;
}

typedef struct counter {
    const dq_rewriter *f;
    uint32_t *uses;
} counter;

static void count_use(void *arg, dq_value *v)
{
    const counter *c = arg;
    c->uses[dq_rewriter_index(c->f, v)]++;
}

bool dq_rewriter_count_final_uses(dq_rewriter *f, uint32_t **uses, bool **needed)
{
    *uses = DQ_NEW_ARRAY(f->scratch, f->written_count + f->value_count, uint32_t);
    *needed = DQ_NEW_ARRAY(f->scratch, f->count, bool);
    if (!*uses || !*needed)
        return dq_rewriter_no_memory(f);
    counter c = {f, *uses};
    for (uint32_t i = 0; i < f->requested_count; i++)
        (*uses)[dq_rewriter_index(f, f->requested[i])] += DQ_USES_UNKNOWN;
    for (uint32_t n = f->count; n-- > 0;) {
        const dq_node *node = f->nodes[n];
        for (uint32_t i = 0; i < node->out_count; i++)
            (*needed)[n] = (*needed)[n] || (node->out[i] && (*uses)[dq_rewriter_index(f, node->out[i])] > 0);
        if ((*needed)[n])
            dq_node_each_use(node, count_use, &c);
    }
    return true;
}
