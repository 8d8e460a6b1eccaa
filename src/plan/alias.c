/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/planner.h"

bool dq_planner_all_fixed(const dq_planner *p, const dq_node *node)
{
    if (node->made)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++)
        if (node->in[i] && !dq_planner_slot(p, node->in[i])->fixed)
            return false;
    return true;
}

/* Makes `v` a view of `in`. The last read of a root includes those of its views. */
static void become_view(dq_planner *p, const dq_value *v, const dq_slot *in, size_t shift)
{
    dq_slot *out = dq_planner_slot(p, v);
    uint32_t *read = &p->plan->last_read[in->root], own = *dq_planner_last_read(p, v);
    *read = own > *read ? own : *read;
    out->root = in->root;
    out->shift = in->shift + shift;
    out->where = in->where;
    out->shaped = true;
    out->persistent = in->persistent;
    out->t.block = in->t.block;
    out->t.repeats = in->t.repeats;
    if (in->where == DQ_AT_CONSTANT) {
        out->t.data = in->t.data;
        out->t.mapped = in->t.mapped;
        out->t.unaligned = in->t.unaligned;
    }
}

enum {
    MAX_SEARCHED_NODES = 512 /* Nodes to examine for one value: the search takes constant time per value. */
};

/* The last position that reads the value or a view of it. Views that are made more than MAX_SEARCHED_NODES
 * nodes later are not followed. */
static uint32_t read_until(const dq_planner *p, const dq_value *v)
{
    uint32_t last = *dq_planner_last_read(p, v), until = last;
    for (uint32_t n = p->at + 1; n < p->node_count && n <= last && n - p->at <= MAX_SEARCHED_NODES; n++) {
        const dq_node *node = p->nodes[n];
        if (!p->plan->needed[n] || node->in_count == 0 || node->in[0] != v || node->out_count == 0 ||
            !node->out[0] || !node->op || !(node->op->impl->flags & DQ_OP_VIEW))
            continue;
        v = node->out[0];
        last = *dq_planner_last_read(p, v);
        until = last > until ? last : until;
    }
    return until < p->node_count ? until : p->node_count;
}

/* Whether small parts would keep a large value live long after its other readers. Then they are copied. */
static bool retains_too_much(const dq_planner *p, const dq_step *step, const dq_slot *in)
{
    enum {
        MIN_SIZE_RATIO = 8 /* Ratio of the large value's size to theirs. */,
        MIN_LARGE_BYTES = 1 << 16,
        MIN_LONG_STEPS = 8 /* Nodes. */
    };
    const dq_slot *root = &p->plan->slots[in->root];
    uint32_t last = p->plan->last_read[in->root], until = 0;
    size_t held = 0;
    for (uint32_t i = 0; i < step->node->out_count; i++)
        held += step->call.out[i] ? step->call.out[i]->size : 0;
    if (root->where != DQ_AT_BUFFER || root->t.size < MIN_LARGE_BYTES || held > root->t.size / MIN_SIZE_RATIO)
        return false;
    for (uint32_t i = 0; i < step->node->out_count; i++)
        if (step->call.out[i]) {
            uint32_t own = read_until(p, step->node->out[i]);
            until = own > until ? own : until;
        }
    return until > last && until - last > MIN_LONG_STEPS;
}

static bool share_parts(dq_planner *p, const dq_step *step)
{
    const dq_node *node = step->node;
    const size_t *split_offsets = step->call.split_offsets;
    const dq_slot *in = split_offsets ? dq_planner_slot(p, node->in[0]) : NULL;
    if (!in || (in->where != DQ_AT_BUFFER && in->where != DQ_AT_INPUT) || retains_too_much(p, step, in))
        return false;
    for (uint32_t i = 0; i < node->out_count; i++)
        if (step->call.out[i])
            become_view(p, node->out[i], in, split_offsets[i] * (in->t.size / in->t.count));
    return true;
}

typedef struct search {
    const dq_value *v;
    uint32_t count;
} search;

static void count_use(void *arg, dq_value *v)
{
    search *s = arg;
    s->count += v == s->v;
}

/* Whether all readers of the value and of its views accept a broadcast view. */
static bool all_take_broadcast(const dq_planner *p, const dq_value *v, int views)
{
    uint32_t last = *dq_planner_last_read(p, v);
    if (last >= p->node_count || last - p->at > MAX_SEARCHED_NODES || views == 0)
        return false;
    for (uint32_t n = p->at + 1; n <= last; n++) {
        const dq_node *node = p->nodes[n];
        const unsigned flags = node->op ? node->op->impl->flags : 0;
        const uint32_t input = flags & DQ_OP_VIEW ? 0 : 1;
        search s = {v, 0};
        if (p->plan->needed[n])
            dq_node_each_use(node, count_use, &s);
        if (s.count == 0)
            continue;
        if (!(flags & DQ_OP_BROADCAST_VIEW) || s.count > 1 || input >= node->in_count ||
            node->in[input] != v || (input == 0 && !all_take_broadcast(p, node->out[0], views - 1)))
            return false;
    }
    return true;
}

/* Broadcast view: the output repeats contiguous blocks of the input. */
static bool share_broadcast(dq_planner *p, const dq_step *step)
{
    enum { VIEWS = 4 };
    const dq_node *node = step->node;
    const dq_slot *in = dq_planner_slot(p, node->in[0]);
    dq_slot *out = dq_planner_out(p, step, 0);
    if (!out || (in->where != DQ_AT_BUFFER && in->where != DQ_AT_INPUT) ||
        (out->t.dtype != DQ_FLOAT && out->t.dtype != DQ_FLOAT16) ||
        !all_take_broadcast(p, node->out[0], VIEWS))
        return false;
    become_view(p, node->out[0], in, 0);
    out->t.block = step->call.block;
    out->t.repeats = step->call.repeats;
    return true;
}

bool dq_planner_make_view(dq_planner *p, const dq_step *step)
{
    if (step->call.repeats)
        return p->plan->fuse && share_broadcast(p, step);
    if (!(step->node->op->impl->flags & DQ_OP_VIEW))
        return share_parts(p, step);
    const dq_slot *in = dq_planner_slot(p, step->node->in[0]), *out = dq_planner_out(p, step, 0);
    if (!out || in->where == DQ_AT_DYNAMIC || out->t.size != in->t.size)
        return false;
    become_view(p, step->node->out[0], in, 0);
    return true;
}

bool dq_planner_share_constant(dq_planner *p, const dq_step *step)
{
    if (!(step->node->op->impl->flags & DQ_OP_VIEW) ||
        dq_planner_slot(p, step->node->in[0])->where != DQ_AT_CONSTANT || !dq_planner_make_view(p, step))
        return false;
    dq_planner_out(p, step, 0)->fixed = dq_planner_all_fixed(p, step->node);
    return true;
}

/* Whether an early input would make a large output live long before it is written. */
static bool extends_lifetime_too_long(const dq_interval *in, const dq_interval *out)
{
    enum { MIN_LARGE_BYTES = 1 << 16, MIN_LONG_STEPS = 16 /* Steps. */ };
    size_t others = out->size - in->size;
    return others > MIN_LARGE_BYTES && others >= in->size && out->last - in->first > MIN_LONG_STEPS;
}

static bool join(const dq_planner *p, const dq_slot *in, const dq_slot *out, size_t shift)
{
    const dq_slot *root = &p->plan->slots[in->root];
    dq_interval *whole = &p->intervals[out->interval], *part = &p->intervals[root->interval];
    /* Kernels write to aligned memory that does not share its last cache line. */
    if (shift == DQ_NOT_CONCATENATED || shift % DQ_ALIGN != 0 || root->where != DQ_AT_BUFFER ||
        in->t.size != root->t.size || part->within || extends_lifetime_too_long(part, whole))
        return false;
    part->within = out->interval + 1;
    part->shift = shift;
    whole->first = part->first < whole->first ? part->first : whole->first;
    return true;
}

bool dq_planner_concat_in_place(dq_planner *p, const dq_step *step)
{
    const dq_node *node = step->node;
    const size_t *concat_offsets = step->call.concat_offsets;
    dq_slot *out = concat_offsets ? dq_planner_out(p, step, 0) : NULL;
    size_t joined = 0;
    bool read = false; /* A later step reads an input. */
    if (!out)
        return false;
    for (uint32_t i = 0; i < node->in_count; i++) {
        const dq_slot *in = node->in[i] ? dq_planner_slot(p, node->in[i]) : NULL;
        if (!in || !join(p, in, out, concat_offsets[i]))
            continue;
        joined += in->t.size;
        read = read || p->plan->last_read[in->root] > p->at;
        p->plan->last_read[in->root] = UINT32_MAX; /* No step may reuse part of a Concat in place. */
    }
    if (read)
        p->plan->last_read[out->root] = UINT32_MAX;
    return joined == out->t.size;
}

static bool overlaps_another(const dq_planner *p, const dq_node *node, uint32_t input)
{
    for (uint32_t i = 0; i < node->in_count; i++)
        if (i != input && node->in[i] &&
            dq_planner_slot(p, node->in[i])->root == dq_planner_slot(p, node->in[input])->root)
            return true;
    return false;
}

bool dq_planner_reuse_input(dq_planner *p, const dq_step *step, dq_slot *out)
{
    const dq_node *node = step->node;
    enum { MAX_COMPARED_INPUTS = 16 /* Inputs that are compared with all others. */ };
    unsigned flags = node->op->impl->flags;
    uint32_t inputs = !(flags & DQ_OP_IN_PLACE) || step->dynamic ? 0
                      : !(flags & DQ_OP_IN_ANY_PLACE)            ? 1
                      : node->in_count < MAX_COMPARED_INPUTS     ? node->in_count
                                                                 : MAX_COMPARED_INPUTS;
    for (uint32_t i = 0; i < inputs; i++) {
        const dq_slot *in = node->in[i] ? dq_planner_slot(p, node->in[i]) : NULL,
                      *root = in ? &p->plan->slots[in->root] : NULL;
        if (!in || root->where != DQ_AT_BUFFER || p->plan->last_read[in->root] > p->at ||
            in->t.count != out->t.count || in->t.size != out->t.size || out->t.size == 0 ||
            in->t.size != root->t.size || overlaps_another(p, node, i))
            continue;
        p->plan->last_read[in->root] = UINT32_MAX; /* Only one output may reuse it. */
        out->interval = root->interval;
        return true;
    }
    return false;
}
