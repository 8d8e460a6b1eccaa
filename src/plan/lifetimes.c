/* SPDX-License-Identifier: Apache-2.0 */
/* Liveness intervals and offsets of a plan's values, derived from the steps independently of the memory
 * planner, so that tests can check the planner. */
#include "plan/batch_tiling.h"
#include "plan/inspect.h"

#include <stdlib.h>

/* The scan of one plan. A plan with batch tiling has two. */
typedef struct scan {
    const dq_plan *plan;
    /* By slot: its value; NULL: not in the buffer, or not examined yet. */
    const dq_value **values;
    uint32_t *first, *last; /* By slot: steps. */
    uint32_t *group; /* Union-find by slot: another slot of the same memory; a representative has itself. */
    uint32_t *of_piece; /* By interval: 1 + its first slot; 0: none yet. */
    uint32_t at, end;   /* The current step; the number of steps of both plans. */
    size_t base;        /* Base of the offsets. */
} scan;

static uint32_t index_of(const scan *s, const dq_value *v)
{
    return dq_plan_index(s->plan, v);
}

static uint32_t group_of(const scan *s, uint32_t slot)
{
    while (s->group[slot] != slot)
        slot = s->group[slot];
    return slot;
}

/* Merges the groups of two slots that share memory. The earlier one becomes the representative. */
static void join_groups(scan *s, uint32_t a, uint32_t b)
{
    const uint32_t x = group_of(s, a), y = group_of(s, b);
    const bool keeps = s->first[x] < s->first[y] || (s->first[x] == s->first[y] && x < y);
    s->group[keeps ? y : x] = keeps ? x : y;
}

static uint32_t *slot_of_piece(scan *s, uint32_t slot)
{
    return &s->of_piece[s->plan->slots[s->plan->slots[slot].root].interval];
}

/* A value becomes live at a step, in memory of its own or of a slot in the same interval. */
static void begin_lifetime(scan *s, const dq_value *v, uint32_t first)
{
    const uint32_t slot = index_of(s, v);
    if (s->plan->slots[slot].where != DQ_AT_BUFFER || s->values[slot])
        return;
    s->values[slot] = v;
    s->first[slot] = s->last[slot] = first;
    s->group[slot] = slot;
    uint32_t *other = slot_of_piece(s, slot);
    if (*other)
        join_groups(s, slot, *other - 1);
    else
        *other = slot + 1;
}

static void read_value(void *arg, dq_value *v)
{
    const scan *s = arg;
    s->last[index_of(s, v)] = s->at;
}

/* Whether input i is computed directly in the output of a Concat. */
static bool is_joined(const scan *s, const dq_step *step, uint32_t i)
{
    const dq_value *in = step->node->in[i], *out = step->node->out[0];
    return in && step->call.concat_offsets[i] != DQ_NOT_CONCATENATED && s->values[index_of(s, in)] &&
           s->values[index_of(s, out)] &&
           dq_plan_slot(s->plan, in)->offset ==
               dq_plan_slot(s->plan, out)->offset + step->call.concat_offsets[i];
}

/* Merges the inputs of a zero-copy Concat with its output. */
static void join_inputs(scan *s, const dq_step *step)
{
    const dq_value *out = step->call.concat_offsets ? step->node->out[0] : NULL;
    const uint32_t to = out ? index_of(s, out) : 0;
    for (uint32_t i = 0; out && i < step->node->in_count; i++) {
        if (!is_joined(s, step, i))
            continue;
        const uint32_t from = index_of(s, step->node->in[i]);
        if (s->first[from] < s->first[to])
            s->first[to] = s->first[from];
        join_groups(s, from, to);
    }
}

static bool is_running(const scan *s, const dq_step *step, uint32_t next)
{
    return next < s->plan->step_count && s->plan->steps[next] == step;
}

/* Visits all nodes in the order of planning, those without a step included. */
static void scan_steps(scan *s, uint32_t first_step)
{
    uint32_t next = 0;
    for (uint32_t e = 0; e < s->plan->all_count; e++) {
        const dq_step *step = &s->plan->all[e];
        const bool runs = is_running(s, step, next);
        s->at = first_step + next;
        if (step->constant)
            continue;
        if (runs)
            dq_node_each_use(step->node, read_value, s);
        for (uint32_t i = 0; i < step->node->out_count; i++) {
            const dq_value *v = step->call.out[i] ? step->node->out[i] : NULL;
            const uint32_t root = v ? s->plan->slots[index_of(s, v)].root : 0;
            if (v)
                begin_lifetime(s, v, !runs && s->values[root] ? s->first[root] : s->at);
        }
        join_inputs(s, step);
        next += runs;
    }
}

/* A root is live as long as its views, and a part as long as its whole. */
static void follow_views(scan *s)
{
    for (uint32_t i = 0; i < s->plan->slot_count; i++) {
        const uint32_t root = s->plan->slots[i].root;
        if (s->values[i] && s->values[root] && s->last[i] > s->last[root])
            s->last[root] = s->last[i];
    }
    for (uint32_t e = s->plan->all_count; e-- > 0;) {
        const dq_step *step = &s->plan->all[e];
        const dq_value *out = step->call.concat_offsets && !step->constant ? step->node->out[0] : NULL;
        for (uint32_t i = 0; out && i < step->node->in_count; i++)
            if (is_joined(s, step, i) && s->last[index_of(s, out)] > s->last[index_of(s, step->node->in[i])])
                s->last[index_of(s, step->node->in[i])] = s->last[index_of(s, out)];
    }
}

static void keep_value(scan *s, const dq_value *v, uint32_t until)
{
    const uint32_t slot = index_of(s, v);
    if (s->values[slot])
        s->last[slot] = until;
}

static bool reserve_capacity(scan *s, dq_arena *arena)
{
    const size_t slots = (size_t)s->plan->slot_count + 1;
    size_t intervals = 1;
    for (uint32_t i = 0; i < s->plan->slot_count; i++)
        intervals = s->plan->slots[i].interval + (size_t)1 > intervals
                        ? s->plan->slots[i].interval + (size_t)1
                        : intervals;
    s->values = DQ_NEW_ARRAY(arena, slots, const dq_value *);
    s->first = DQ_NEW_ARRAY(arena, slots, uint32_t);
    s->last = DQ_NEW_ARRAY(arena, slots, uint32_t);
    s->group = DQ_NEW_ARRAY(arena, slots, uint32_t);
    s->of_piece = DQ_NEW_ARRAY(arena, intervals, uint32_t);
    return s->values && s->first && s->last && s->group && s->of_piece;
}

typedef struct lifetimes {
    dq_value_lifetime *list;
    size_t count;
} lifetimes;

/* Stored bytes: a broadcast view stores its repeated data once. */
static size_t stored_bytes(const dq_tensor *t)
{
    return t->repeats ? t->size / t->repeats : t->size;
}

static void add_lives(const scan *s, lifetimes *to)
{
    for (uint32_t i = 0; i < s->plan->slot_count; i++)
        if (s->values[i])
            to->list[to->count++] = (dq_value_lifetime){.value = s->values[i],
                                                        .memory_of = s->values[group_of(s, i)],
                                                        .offset = s->base + s->plan->slots[i].offset,
                                                        .bytes = stored_bytes(&s->plan->slots[i].t),
                                                        .first = s->first[i],
                                                        .last = s->last[i]};
}

/* Outputs that alias the caller's inputs are copied after all steps. */
static void add_copies(const scan *s, const dq_value *const *requested, uint32_t requested_count,
                       lifetimes *to)
{
    for (uint32_t i = 0; i < requested_count; i++) {
        const dq_slot *slot = dq_plan_slot(s->plan, requested[i]);
        const dq_copy *copy = slot->copy ? &s->plan->copies[slot->copy - 1] : NULL;
        if (copy && slot->shaped)
            to->list[to->count++] = (dq_value_lifetime){.value = requested[i],
                                                        .memory_of = requested[i],
                                                        .offset = copy->offset,
                                                        .bytes = copy->t.size,
                                                        .first = s->end,
                                                        .last = s->end};
    }
}

static int by_first(const void *a, const void *b)
{
    const dq_value_lifetime *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    if (x->value->id != y->value->id)
        return x->value->id < y->value->id ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

dq_status dq_plan_lifetimes(const dq_plan *plan, const dq_value *const *requested, uint32_t requested_count,
                            dq_arena *arena, dq_value_lifetime **out, size_t *count, dq_error *err)
{
    const struct dq_batch_tiling *tiling = plan->tiling;
    const dq_plan *first = tiling ? tiling->runners[0].plan : NULL;
    const uint32_t first_count = first ? first->step_count : 0, end = first_count + plan->step_count;
    const size_t most = (size_t)plan->slot_count + (first ? first->slot_count : 0) + requested_count;
    lifetimes found = {DQ_NEW_ARRAY(arena, most, dq_value_lifetime), 0};
    scan s = {.plan = plan, .end = end};
    dq_arena passing = {0};
    bool good = found.list && reserve_capacity(&s, &passing);
    if (good && first) {
        scan part = {.plan = first, .end = end, .base = plan->ahead_offset};
        good = reserve_capacity(&part, &passing);
        if (good) {
            scan_steps(&part, 0);
            for (uint32_t i = 0; i < tiling->value_count; i++) {
                keep_value(&part, tiling->values[i], first_count - 1);
                begin_lifetime(&s, tiling->values[i], 0); /* Each batch tile writes its part of it. */
            }
            follow_views(&part);
            add_lives(&part, &found);
        }
    }
    if (good) {
        scan_steps(&s, first_count);
        for (uint32_t i = 0; i < requested_count; i++)
            keep_value(&s, requested[i], end);
        follow_views(&s);
        add_lives(&s, &found);
        add_copies(&s, requested, requested_count, &found);
        qsort(found.list, found.count, sizeof *found.list, by_first);
    }
    dq_arena_free(&passing);
    *out = found.list;
    *count = found.count;
    return good ? DQ_OK : dq_no_memory(err, most * sizeof **out, "the lifetimes of a plan's values");
}

size_t dq_plan_constant_bytes(const dq_plan *plan)
{
    const dq_plan *whole = plan->tiling ? plan->tiling->shapes : plan;
    size_t bytes = 0;
    for (uint32_t i = 0; i < whole->slot_count; i++) {
        const dq_slot *slot = &whole->slots[i];
        if (slot->where == DQ_AT_CONSTANT && slot->requested && slot->root == i)
            bytes += slot->t.size;
    }
    return bytes;
}
