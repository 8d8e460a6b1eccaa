/* NonMaxSuppression: of each class the boxes with the highest scores, but none that overlaps a chosen one by
 * more than a threshold. How many there are is known when the data is: infer chooses to count, run to tell.
 */
#include "ops/op.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { BOXES, SCORES, MOST, OVERLAP, LOWEST };

typedef struct rules {
    const float *boxes, *scores;
    size_t batches, classes, count, most;
    float overlap, lowest;
    bool has_lowest, centred;
} rules;

/* ---- Inputs ---------------------------------------------------------------------------------------------
 */

static dq_status read_number(const dq_op_call *call, uint32_t i, double *to, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == 0)
        return DQ_OK;
    if (t->count != 1)
        return dq_call_fail_input(call, err, i, "has %zu elements, wanted a scalar", t->count);
    DQ_TRY(dq_call_need(call, i));
    *to = dq_tensor_get_double(t, 0);
    return DQ_OK;
}

static dq_status read_rules(const dq_op_call *call, rules *r, dq_error *err)
{
    const dq_tensor *boxes = call->in[BOXES], *scores = call->in[SCORES], *lowest = dq_call_in(call, LOWEST);
    double most = 0, overlap = 0, least = 0;
    if (boxes->rank != 3 || boxes->dims[2] != 4)
        return dq_call_fail_input(call, err, BOXES, "has rank %u, wanted batch, boxes and 4 numbers each",
                                  boxes->rank);
    if (scores->rank != 3 || scores->dims[0] != boxes->dims[0] || scores->dims[2] != boxes->dims[1])
        return dq_call_fail_input(
            call, err, SCORES, "does not fit: wanted batches of %" PRId64 ", classes and %" PRId64 " boxes",
            boxes->dims[0], boxes->dims[1]);
    DQ_TRY(read_number(call, MOST, &most, err));
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

/* ---- Choosing -------------------------------------------------------------------------------------------
 */

typedef struct extent {
    float low[2], high[2];
} extent;

static extent extent_of(const rules *r, const float box[4])
{
    extent e;
    for (int d = 0; d < 2; d++) {
        float a = r->centred ? box[d] - box[2 + d] / 2 : box[d];
        float b = r->centred ? box[d] + box[2 + d] / 2 : box[2 + d];
        bool turned = !r->centred && b < a;
        e.low[d] = turned ? b : a;
        e.high[d] = turned ? a : b;
    }
    return e;
}

static bool overlaps(const rules *r, const float *a, const float *b)
{
    extent x = extent_of(r, a), y = extent_of(r, b);
    float common = 1, area_x = 1, area_y = 1;
    for (int d = 0; d < 2; d++) {
        float low = x.low[d] > y.low[d] ? x.low[d] : y.low[d];
        float high = x.high[d] < y.high[d] ? x.high[d] : y.high[d];
        if (!(high > low))
            return false;
        common *= high - low;
        area_x *= x.high[d] - x.low[d];
        area_y *= y.high[d] - y.low[d];
    }
    float all = area_x + area_y - common;
    return area_x > 0 && area_y > 0 && all > 0 && common / all > r->overlap;
}

/* Whether box a comes before box b: the higher score, of equals the lower number. */
static bool before(const float *scores, size_t a, size_t b)
{
    return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
}

/* A heap of box numbers with the first one in order on top. */
static void sink(const float *scores, size_t *heap, size_t n, size_t at)
{
    for (size_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        if (child + 1 < n && before(scores, heap[child + 1], heap[child]))
            child++;
        if (!before(scores, heap[child], heap[at]))
            return;
        size_t kept = heap[at];
        heap[at] = heap[child];
        heap[child] = kept;
        at = child;
    }
}

/* The boxes of one class, in order of choice, into chosen[0 … most-1]; their number. `heap` has room for all.
 */
static size_t choose(const rules *r, size_t batch, size_t class, size_t *heap, size_t *chosen)
{
    const float *scores = r->scores + (batch * r->classes + class) * r->count;
    const float *boxes = r->boxes + batch * r->count * 4;
    size_t n = 0, found = 0;
    for (size_t i = 0; i < r->count; i++)
        if (!isnan(scores[i]) && (!r->has_lowest || scores[i] > r->lowest))
            heap[n++] = i;
    for (size_t i = n / 2; i-- > 0;)
        sink(scores, heap, n, i);
    while (n > 0 && found < r->most) {
        size_t best = heap[0];
        heap[0] = heap[--n];
        sink(scores, heap, n, 0);
        bool free = true;
        for (size_t k = 0; free && k < found; k++)
            free = !overlaps(r, boxes + best * 4, boxes + chosen[k] * 4);
        if (free)
            chosen[found++] = best;
    }
    return found;
}

/* ---- The operator ---------------------------------------------------------------------------------------
 */

static dq_status infer(dq_op_call *call, dq_error *err)
{
    rules r;
    DQ_TRY(read_rules(call, &r, err));
    int64_t dims[2] = {0, 3};
    size_t *room = calloc(r.count + 1, 2 * sizeof *room);
    if (!room)
        return dq_no_memory(err, 2 * r.count * sizeof *room, "the choice of boxes");
    for (size_t i = 0; r.most && i < r.batches * r.classes; i++)
        dims[0] += (int64_t)choose(&r, i / r.classes, i % r.classes, room, room + r.count);
    free(room);
    return dq_call_output(call, 0, DQ_INT64, 2, dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    (void)err;
    call->scratch_size = 2 * (size_t)call->in[BOXES]->dims[1] * sizeof(size_t);
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    rules r;
    DQ_TRY(read_rules(call, &r, err));
    int64_t *out = call->out[0]->data;
    size_t *heap = call->scratch, *chosen = heap + r.count, row = 0;
    for (size_t i = 0; r.most && i < r.batches * r.classes; i++) {
        size_t found = choose(&r, i / r.classes, i % r.classes, heap, chosen);
        for (size_t k = 0; k < found; k++, row++) {
            out[row * 3] = (int64_t)(i / r.classes);
            out[row * 3 + 1] = (int64_t)(i % r.classes);
            out[row * 3 + 2] = (int64_t)chosen[k];
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_non_max_suppression = {infer, prepare, run, 0};
