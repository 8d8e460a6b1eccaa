#include "plan/place.h"

#include "base/checked.h"

#include <stdlib.h>

static int larger_first(const void *a, const void *b)
{
    const dq_piece *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size)
        return (*x)->size > (*y)->size ? -1 : 1;
    return *x < *y ? -1 : *x > *y; /* equal ones in their order */
}

static bool together(const dq_piece *a, const dq_piece *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The lowest gap among the pieces placed so far that live when p does; `placed` is sorted by offset. */
static bool lowest_gap(const dq_piece *p, dq_piece *const *placed, size_t count, size_t *offset)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const dq_piece *q = placed[i];
        size_t end;
        if (!together(p, q))
            continue;
        if (q->offset >= at && q->offset - at >= p->size)
            break;
        if (!dq_add_size(q->offset, q->size, &end) || !dq_align_size(end, DQ_PLACE_ALIGN, &end))
            return false;
        if (end > at)
            at = end;
    }
    *offset = at;
    return true;
}

static void insert_by_offset(dq_piece **placed, size_t count, dq_piece *p)
{
    size_t i = count;
    for (; i > 0 && placed[i - 1]->offset > p->offset; i--)
        placed[i] = placed[i - 1];
    placed[i] = p;
}

dq_status dq_place(dq_piece *pieces, size_t count, size_t *total, dq_error *err)
{
    *total = 0;
    if (count == 0)
        return DQ_OK;
    dq_piece **order = calloc(count, sizeof *order), **placed = calloc(count, sizeof *placed);
    dq_status status = order && placed ? DQ_OK : dq_no_memory(err, count * sizeof *order, "the memory plan");
    for (size_t i = 0; status == DQ_OK && i < count; i++)
        order[i] = &pieces[i];
    if (status == DQ_OK)
        qsort(order, count, sizeof *order, larger_first);
    for (size_t i = 0; status == DQ_OK && i < count; i++) {
        size_t end;
        if (!lowest_gap(order[i], placed, i, &order[i]->offset) ||
            !dq_add_size(order[i]->offset, order[i]->size, &end)) {
            status = dq_fail(err, DQ_OUT_OF_MEMORY, "the activations together do not fit an address space");
            break;
        }
        insert_by_offset(placed, i, order[i]);
        if (end > *total)
            *total = end;
    }
    free(order);
    free(placed);
    return status;
}
