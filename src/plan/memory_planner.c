/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/memory_planner.h"

#include "base/checked.h"

#include <stdlib.h>

/* Bounds on the number of intervals that are examined: by one search; by all searches together, as a constant
 * plus a number per interval. Beyond them an interval goes above all intervals that it may overlap in time.
 * Otherwise planning a graph of a million nodes, with thousands of live intervals, would take hours. */
enum { MAX_SEARCH = 1024, MAX_SEARCH_TOTAL = 1 << 20, MAX_SEARCH_PER_INTERVAL = 256 };

/* An interval that has an offset. */
typedef struct taken {
    uint32_t first, last;
    size_t offset, end; /* `end` is aligned. */
    struct taken *next;
} taken;

/* A node of an interval tree over the steps. A range of steps has its middle step as its root. An interval is
 * stored at the root of the smallest range that contains it. */
typedef struct moment {
    taken *pieces;
    size_t top, top_below; /* Highest end of these intervals; the same including those of the subtree. */
} moment;

typedef struct search {
    const moment *moments;
    const dq_interval *p;
    const taken *found[MAX_SEARCH]; /* Intervals that overlap p in time. */
    size_t count, seen, most;       /* Number found; number examined, and its limit. */
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
        const moment *m = &s->moments[middle];
        if (m->top_below == 0)
            return true;
        for (const taken *q = m->pieces; q; q = q->next) {
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
static size_t top_of(const moment *moments, const dq_interval *p, uint32_t low, uint32_t high)
{
    if (low >= high)
        return 0;
    uint32_t middle = middle_of(low, high);
    if (p->first <= low && p->last >= high - 1)
        return moments[middle].top_below;
    size_t top = moments[middle].top;
    if (p->first < middle)
        top = higher(top, top_of(moments, p, low, middle));
    if (p->last > middle)
        top = higher(top, top_of(moments, p, middle + 1, high));
    return top;
}

static void insert(moment *moments, uint32_t steps, taken *t)
{
    uint32_t low = 0, high = steps, middle = middle_of(low, high);
    for (; t->last < middle || t->first > middle; middle = middle_of(low, high)) {
        moments[middle].top_below = higher(moments[middle].top_below, t->end);
        if (t->last < middle)
            high = middle;
        else
            low = middle + 1;
    }
    moment *m = &moments[middle];
    m->top_below = higher(m->top_below, t->end);
    m->top = higher(m->top, t->end);
    t->next = m->pieces;
    m->pieces = t;
}

static int lower_first(const void *a, const void *b)
{
    const taken *const *x = a, *const *y = b;
    return (*x)->offset < (*y)->offset ? -1 : (*x)->offset > (*y)->offset;
}

/* The lowest offset of a sufficient gap between the intervals found. */
static size_t lowest_gap(search *s)
{
    size_t at = 0;
    qsort(s->found, s->count, sizeof *s->found, lower_first);
    for (size_t i = 0; i < s->count; i++) {
        const taken *q = s->found[i];
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

static dq_status assign_all(dq_interval *const *order, taken *assigned, size_t count, moment *moments,
                            uint32_t steps, size_t *total, dq_error *err)
{
    search s = {.moments = moments};
    size_t left = MAX_SEARCH_TOTAL + count * MAX_SEARCH_PER_INTERVAL;
    for (size_t i = 0; i < count; i++) {
        taken *t = &assigned[i];
        size_t end;
        s.p = order[i];
        s.count = s.seen = 0;
        s.most = left < MAX_SEARCH ? left : MAX_SEARCH;
        bool all = gather(&s, 0, steps);
        left -= s.seen;
        *t = (taken){.first = s.p->first, .last = s.p->last};
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
static void hold_parts(dq_interval *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const dq_interval *part = &pieces[i];
        dq_interval *whole = part->within ? &pieces[part->within - 1] : NULL;
        if (!whole)
            continue;
        whole->first = part->first < whole->first ? part->first : whole->first;
        whole->last = part->last > whole->last ? part->last : whole->last;
    }
}

static void assign_parts(dq_interval *pieces, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (pieces[i].within)
            pieces[i].offset = pieces[pieces[i].within - 1].offset + pieces[i].shift;
}

dq_status dq_assign_offsets(dq_interval *pieces, size_t count, size_t *total, dq_error *err)
{
    uint32_t steps = 0;
    size_t whole = 0;
    *total = 0;
    if (count == 0)
        return DQ_OK;
    hold_parts(pieces, count);
    for (size_t i = 0; i < count; i++)
        steps = pieces[i].last >= steps ? pieces[i].last + 1 : steps;
    dq_interval **order = calloc(count, sizeof *order);
    taken *assigned = calloc(count, sizeof *assigned);
    moment *moments = calloc(steps, sizeof *moments);
    dq_status status = DQ_OK;
    if (order && assigned && moments) {
        for (size_t i = 0; i < count; i++)
            if (!pieces[i].within && pieces[i].size) /* An empty interval needs no offset. */
                order[whole++] = &pieces[i];
        qsort(order, whole, sizeof *order, larger_first);
        status = assign_all(order, assigned, whole, moments, steps, total, err);
        assign_parts(pieces, count);
    } else {
        status = dq_no_memory(err, count * sizeof *assigned, "the memory plan");
    }
    free(order);
    free(assigned);
    free(moments);
    return status;
}
