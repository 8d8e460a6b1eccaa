/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory_planner.h"

#include "base/checked.h"

#include <stdlib.h>

/* Bounds on the number of intervals that are examined: by one search; by all searches together, as a constant
 * plus a number per interval. Beyond them an interval goes above all intervals that it may overlap in time.
 * Otherwise planning a graph of a million nodes, with thousands of live intervals, would take hours. */
enum { MAX_SEARCH = 1024, MAX_SEARCH_TOTAL = 1 << 20, MAX_SEARCH_PER_INTERVAL = 256 };

/* An interval that has an offset. */
typedef struct placed_interval {
    uint32_t first, last;
    size_t offset, end; /* `end` is aligned. */
    struct placed_interval *next;
} placed_interval;

/* A node of an interval tree over the steps. A range of steps has its middle step as its root. An interval is
 * stored at the root of the smallest range that contains it. */
typedef struct tree_node {
    placed_interval *intervals;
    size_t top, subtree_top; /* Highest end of these intervals; the same including those of the subtree. */
} tree_node;

typedef struct search {
    const tree_node *moments;
    const dq_interval *p;
    const placed_interval *found[MAX_SEARCH]; /* Intervals that overlap p in time. */
    size_t count, seen, most;                 /* Number found; number examined, and its limit. */
} search;

static uint32_t middle_of(uint32_t low, uint32_t high)
{
    return low + (high - low) / 2;
}

static size_t higher(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Collects the intervals that overlap p in time. False: too many to examine. */
static bool gather(search *s, uint32_t low, uint32_t high)
{
    while (low < high) {
        uint32_t middle = middle_of(low, high);
        const tree_node *m = &s->moments[middle];
        if (m->subtree_top == 0)
            return true;
        for (const placed_interval *q = m->intervals; q; q = q->next) {
            if (s->seen == s->most)
                return false;
            s->seen++;
            if (q->first <= s->p->last && s->p->first <= q->last)
                s->found[s->count++] = q;
        }
        if (s->p->first < middle && s->p->last > middle && !gather(s, low, middle))
            return false;
        if (s->p->last > middle)
            low = middle + 1;
        else if (s->p->first < middle)
            high = middle;
        else
            return true;
    }
    return true;
}

/* The highest end among the ranges that p overlaps. */
static size_t top_of(const tree_node *moments, const dq_interval *p, uint32_t low, uint32_t high)
{
    if (low >= high)
        return 0;
    uint32_t middle = middle_of(low, high);
    if (p->first <= low && p->last >= high - 1)
        return moments[middle].subtree_top;
    size_t top = moments[middle].top;
    if (p->first < middle)
        top = higher(top, top_of(moments, p, low, middle));
    if (p->last > middle)
        top = higher(top, top_of(moments, p, middle + 1, high));
    return top;
}

static void insert(tree_node *moments, uint32_t steps, placed_interval *t)
{
    uint32_t low = 0, high = steps, middle = middle_of(low, high);
    for (; t->last < middle || t->first > middle; middle = middle_of(low, high)) {
        moments[middle].subtree_top = higher(moments[middle].subtree_top, t->end);
        if (t->last < middle)
            high = middle;
        else
            low = middle + 1;
    }
    tree_node *m = &moments[middle];
    m->subtree_top = higher(m->subtree_top, t->end);
    m->top = higher(m->top, t->end);
    t->next = m->intervals;
    m->intervals = t;
}

static int lower_first(const void *a, const void *b)
{
    const placed_interval *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/* The lowest offset of a sufficient gap between the intervals found. */
static size_t lowest_gap(search *s)
{
    size_t at = 0;
    qsort(s->found, s->count, sizeof *s->found, lower_first);
    for (size_t i = 0; i < s->count; i++) {
        const placed_interval *q = s->found[i];
        if (q->offset >= at && q->offset - at >= s->p->size)
            break;
        at = higher(at, q->end);
    }
    return at;
}

static int larger_first(const void *a, const void *b)
{
    const dq_interval *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size)
        return (*x)->size > (*y)->size ? -1 : 1;
    return *x < *y ? -1 : *x > *y; /* Equal ones keep their order. */
}

static dq_status assign_all(dq_interval *const *order, placed_interval *assigned, size_t count,
                            tree_node *moments, uint32_t steps, size_t *total, dq_error *err)
{
    search s = {.moments = moments};
    size_t left = MAX_SEARCH_TOTAL + count * MAX_SEARCH_PER_INTERVAL;
    for (size_t i = 0; i < count; i++) {
        placed_interval *t = &assigned[i];
        size_t end;
        s.p = order[i];
        s.count = s.seen = 0;
        s.most = left < MAX_SEARCH ? left : MAX_SEARCH;
        bool all = gather(&s, 0, steps);
        left -= s.seen;
        *t = (placed_interval){.first = s.p->first, .last = s.p->last};
        t->offset = all ? lowest_gap(&s) : top_of(moments, s.p, 0, steps);
        if (!dq_add_size(t->offset, s.p->size, &end) || !dq_align_size(end, DQ_ALIGN, &t->end))
            return dq_fail(err, DQ_OUT_OF_MEMORY, "the activations together do not fit an address space");
        order[i]->offset = t->offset;
        insert(moments, steps, t);
        *total = higher(*total, end);
    }
    return DQ_OK;
}

/* An interval is live as long as its parts. */
static void hold_parts(dq_interval *intervals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const dq_interval *part = &intervals[i];
        dq_interval *whole = part->within ? &intervals[part->within - 1] : NULL;
        if (!whole)
            continue;
        whole->first = part->first < whole->first ? part->first : whole->first;
        whole->last = part->last > whole->last ? part->last : whole->last;
    }
}

static void assign_parts(dq_interval *intervals, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (intervals[i].within)
            intervals[i].offset = intervals[intervals[i].within - 1].offset + intervals[i].shift;
}

dq_status dq_assign_offsets(dq_interval *intervals, size_t count, size_t *total, dq_error *err)
{
    uint32_t steps = 0;
    size_t whole = 0;
    *total = 0;
    if (count == 0)
        return DQ_OK;
    hold_parts(intervals, count);
    for (size_t i = 0; i < count; i++)
        steps = intervals[i].last >= steps ? intervals[i].last + 1 : steps;
    dq_interval **order = calloc(count, sizeof *order);
    placed_interval *assigned = calloc(count, sizeof *assigned);
    tree_node *moments = calloc(steps, sizeof *moments);
    dq_status status = DQ_OK;
    if (order && assigned && moments) {
        for (size_t i = 0; i < count; i++)
            if (!intervals[i].within && intervals[i].size) /* An empty interval needs no offset. */
                order[whole++] = &intervals[i];
        qsort(order, whole, sizeof *order, larger_first);
        status = assign_all(order, assigned, whole, moments, steps, total, err);
        assign_parts(intervals, count);
    } else {
        status = dq_no_memory(err, count * sizeof *assigned, "the memory plan");
    }
    free(order);
    free(assigned);
    free(moments);
    return status;
}
