/* SPDX-License-Identifier: Apache-2.0 */
/* NonMaxSuppression: for each class, selects the boxes with the highest scores, but none that overlaps a
 * selected one by more than a threshold. Their number depends on the data: infer selects, run writes the
 * results. */
#include "ops/op.h"
#include "ops/shape/rank.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { BOXES, SCORES, MAX, OVERLAP, LOWEST };

typedef struct rules {
    const float *boxes, *scores;
    size_t batches, classes, count, most;
    float overlap, lowest;
    bool has_lowest, centred;
} rules;

/* ---- Inputs -------------------------------------------------------------------------------------------- */

static dq_status read_number(const dq_op_call *call, uint32_t i, double *to, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == 0)
        return DQ_OK;
    if (t->count != 1)
        return dq_call_fail_input(call, err, i, "has %zu elements, expected a scalar", t->count);
    DQ_TRY(dq_call_need(call, i));
    *to = dq_tensor_get_double(t, 0);
    return DQ_OK;
}

static dq_status read_rules(const dq_op_call *call, rules *r, dq_error *err)
{
    const dq_tensor *boxes = call->in[BOXES], *scores = call->in[SCORES], *lowest = dq_call_in(call, LOWEST);
    double most = 0, overlap = 0, least = 0;
    if (boxes->rank != 3 || boxes->dims[2] != 4)
        return dq_call_fail_input(call, err, BOXES, "has rank %u, expected batch, boxes and 4 numbers each",
                                  boxes->rank);
    if (scores->rank != 3 || scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return dq_call_fail_input(
            call, err, SCORES, "does not fit: expected batches of %" PRId64 ", classes and %" PRId64 " boxes",
            boxes->dims[0], boxes->dims[1]);
    DQ_TRY(read_number(call, MAX, &most, err));
    DQ_TRY(read_number(call, OVERLAP, &overlap, err));
    DQ_TRY(read_number(call, LOWEST, &least, err));
    DQ_TRY(dq_call_need(call, BOXES));
    DQ_TRY(dq_call_need(call, SCORES));
    *r = (rules){.boxes = boxes->data,
                 .scores = scores->data,
                 .batches = (size_t)boxes->dims[0],
                 .classes = (size_t)scores->dims[1],
                 .count = (size_t)boxes->dims[1],
                 .overlap = (float)overlap,
                 .lowest = (float)least,
                 .has_lowest = lowest && lowest->count,
                 .centred = dq_node_int(call->node, "center_point_box", 0) != 0};
    r->most = most <= 0 ? 0 : most < (double)r->count ? (size_t)most : r->count;
    return DQ_OK;
}

/* ---- Selection ----------------------------------------------------------------------------------------- */

typedef struct extent {
    float low[2], high[2], area;
} extent;

/* Selected boxes that are compared at a time; unused entries have no area. */
enum { GROUP = 8 };
typedef struct group {
    float low[2][GROUP], high[2][GROUP], area[GROUP];
    int64_t number[GROUP];
} group;

static extent extent_of(const rules *r, const float *box)
{
    extent e = {.area = 1};
    for (int d = 0; d < 2; d++) {
        float a = r->centred ? box[d] - box[2 + d] / 2 : box[d];
        float b = r->centred ? box[d] + box[2 + d] / 2 : box[2 + d];
        bool swapped = !r->centred && b < a;
        e.low[d] = swapped ? b : a;
        e.high[d] = swapped ? a : b;
        e.area *= e.high[d] - e.low[d];
    }
    return e;
}

/* Whether a box of the group overlaps x by more than the threshold. Branchless except for groups that do not
 * intersect x. */
static bool overlaps(const rules *r, const extent *x, const group *g)
{
    float common[GROUP];
    int any = 0;
    for (int k = 0; k < GROUP; k++) {
        const float left = x->low[0] > g->low[0][k] ? x->low[0] : g->low[0][k];
        const float right = x->high[0] < g->high[0][k] ? x->high[0] : g->high[0][k];
        const float top = x->low[1] > g->low[1][k] ? x->low[1] : g->low[1][k];
        const float bottom = x->high[1] < g->high[1][k] ? x->high[1] : g->high[1][k];
        const bool meet = (right > left) & (bottom > top);
        common[k] = meet ? (right - left) * (bottom - top) : -1;
        any |= meet;
    }
    if (!any || !(x->area > 0))
        return false;
    any = 0;
    for (int k = 0; k < GROUP; k++) {
        const float all = x->area + g->area[k] - common[k];
        any |= (common[k] >= 0) & (g->area[k] > 0) & (all > 0) & (common[k] / all > r->overlap);
    }
    return any;
}

static void add(group *chosen, size_t found, const extent *e, size_t number)
{
    group *g = &chosen[found / GROUP];
    const size_t k = found % GROUP;
    if (k == 0)
        *g = (group){0};
    for (int d = 0; d < 2; d++) {
        g->low[d][k] = e->low[d];
        g->high[d][k] = e->high[d];
    }
    g->area[k] = e->area;
    g->number[k] = (int64_t)number;
}

/* Collects the boxes with high enough scores as a heap with the best on top; returns their number. Most
 * scores are usually too low: groups without a candidate are skipped. */
static size_t candidates(const rules *r, const float *scores, dq_ranked *heap)
{
    enum { BOXES_AT_ONCE = 16 };
    size_t n = 0;
    for (size_t i = 0, count; i < r->count; i += count) {
        int any = !r->has_lowest;
        count = dq_least(r->count - i, BOXES_AT_ONCE);
        for (size_t k = 0; count == BOXES_AT_ONCE && k < BOXES_AT_ONCE; k++)
            any |= scores[i + k] > r->lowest;
        /* Keys are inverted, so that the best is the root. */
        for (size_t k = i; k < i + count && (any || count < BOXES_AT_ONCE); k++) {
            heap[n] = (dq_ranked){~dq_rank_float(scores[k]), ~(uint64_t)k};
            n += r->has_lowest ? scores[k] > r->lowest : scores[k] >= -INFINITY;
        }
    }
    for (size_t i = n / 2; i-- > 0;)
        dq_rank_sink(heap, n, i);
    return n;
}

/* Selects the boxes of one class, in order of selection; returns their number. `heap` has capacity for all
 * boxes. */
static size_t choose(const rules *r, const dq_threads *threads, size_t batch, size_t class, dq_ranked *heap,
                     group *chosen)
{
    size_t n = candidates(r, r->scores + (batch * r->classes + class) * r->count, heap), found = 0;
    while (n > 0 && found < r->most && !dq_threads_cancelled(threads)) {
        const size_t number = (size_t)~heap[0].number;
        const extent best = extent_of(r, r->boxes + (batch * r->count + number) * 4);
        heap[0] = heap[--n];
        dq_rank_sink(heap, n, 0);
        bool free = true;
        for (size_t k = 0; free && k < found; k += GROUP)
            free = !overlaps(r, &best, &chosen[k / GROUP]);
        if (free)
            add(chosen, found++, &best, number);
    }
    return found;
}

/* ---- The operator -------------------------------------------------------------------------------------- */

/* Result of infer: the selected boxes of each class that has any. */
typedef struct found {
    struct found *next;
    size_t batch, class, count;
    int64_t boxes[];
} found;

/* Appends the selected boxes of a class. Returns the address for the next class's, or NULL. */
static found **keep(dq_op_call *call, found **at, size_t batch, size_t class, const group *chosen,
                    size_t count)
{
    found *f = dq_arena_alloc(call->arena, sizeof *f + count * sizeof f->boxes[0], sizeof(int64_t));
    if (!f)
        return NULL;
    *f = (found){NULL, batch, class, count};
    for (size_t i = 0; i < count; i++)
        f->boxes[i] = chosen[i / GROUP].number[i % GROUP];
    *at = f;
    return &f->next;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    rules r = {0};
    DQ_TRY(read_rules(call, &r, err));
    int64_t dims[2] = {0, 3};
    dq_ranked *heap = calloc(r.count + 1, sizeof *heap);
    group *chosen = calloc(r.most / GROUP + 1, sizeof *chosen);
    found *first = NULL, **at = &first;
    for (size_t i = 0;
         heap && chosen && at && r.most && i < r.batches * r.classes && !dq_threads_cancelled(call->threads);
         i++) {
        size_t batch = i / r.classes, class = i % r.classes,
               count = choose(&r, call->threads, batch, class, heap, chosen);
        if (count)
            at = keep(call, at, batch, class, chosen, count);
        dims[0] += (int64_t)count;
    }
    call->state = first;
    bool done = heap && chosen && at;
    free(heap);
    free(chosen);
    if (dq_threads_cancelled(call->threads))
        return dq_fail(err, DQ_CANCELLED, "the run was cancelled");
    return done ? dq_call_output(call, 0, DQ_INT64, 2, dims, err)
                : dq_no_memory(err, r.count * (sizeof *heap + sizeof *chosen / GROUP), "the choice of boxes");
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    int64_t *out = call->out[0]->data;
    for (const found *f = call->state; f; f = f->next)
        for (size_t i = 0; i < f->count; i++, out += 3) {
            out[0] = (int64_t)f->batch;
            out[1] = (int64_t)f->class;
            out[2] = f->boxes[i];
        }
    return DQ_OK;
}

const dq_op_impl dq_op_non_max_suppression = {infer, NULL, run, 0};
