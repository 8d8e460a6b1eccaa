#include "plan/place.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

static int larger_first(const void *a, const void *b)
{
    const dq_piece *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size)
        return (*x)->size > (*y)->size ? -1 : 1;
    return *x < *y ? -1 : *x > *y; /* equal ones in their order */
}

/* A piece that has its place: what the search reads, side by side in memory, as it reads all of them. */
typedef struct taken {
    uint32_t first, last;
    size_t offset, end; /* `end` is aligned */
} taken;

/* The lowest gap among the pieces placed so far that live when p does; `placed` is sorted by offset. */
static size_t lowest_gap(const dq_piece *p, const taken *placed, size_t count)
{
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const taken *q = &placed[i];
        if (q->first > p->last || q->last < p->first)
            continue;
        if (q->offset >= at && q->offset - at >= p->size)
            break;
        if (q->end > at)
            at = q->end;
    }
    return at;
}

static void insert_by_offset(taken *placed, size_t count, taken p)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (placed[middle].offset > p.offset)
            high = middle;
        else
            low = middle + 1;
    }
    memmove(&placed[low + 1], &placed[low], (count - low) * sizeof *placed);
    placed[low] = p;
}

dq_status dq_place(dq_piece *pieces, size_t count, size_t *total, dq_error *err)
{
    *total = 0;
    if (count == 0)
        return DQ_OK;
    dq_piece **order = calloc(count, sizeof *order);
    taken *placed = calloc(count, sizeof *placed);
    dq_status status = order && placed ? DQ_OK : dq_no_memory(err, count * sizeof *order, "the memory plan");
    for (size_t i = 0; status == DQ_OK && i < count; i++)
        order[i] = &pieces[i];
    if (status == DQ_OK)
        qsort(order, count, sizeof *order, larger_first);
    for (size_t i = 0; status == DQ_OK && i < count; i++) {
        dq_piece *p = order[i];
        taken at = {.first = p->first, .last = p->last, .offset = lowest_gap(p, placed, i)};
        size_t end;
        if (!dq_add_size(at.offset, p->size, &end) || !dq_align_size(end, DQ_PLACE_ALIGN, &at.end)) {
            status = dq_fail(err, DQ_OUT_OF_MEMORY, "the activations together do not fit an address space");
            break;
        }
        p->offset = at.offset;
        insert_by_offset(placed, i, at);
        if (end > *total)
            *total = end;
    }
    free(order);
    free(placed);
    return status;
}
