/* TopK: the k largest (or smallest) elements along an axis, in order, and where they stand. Of equals the one
 * with the lower index comes first; NaN counts as the largest of all. */
#include "base/checked.h"
#include "ops/lists.h"
#include "ops/move.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct state {
    size_t k, n, inner; /* length of the axis, and its stride */
    bool largest;
} state;

static dq_status read_k(const dq_op_call *call, size_t *axis, size_t *k, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list list;
    DQ_TRY(dq_list_from_input(call, 1, &list, err));
    int64_t given = list.given && list.count == 1 ? list.at[0] : dq_node_int(call->node, "k", -1);
    int64_t at = dq_node_int(call->node, "axis", -1);
    if (!dq_axis(at, in->rank, axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside an input of rank %u", at, in->rank);
    if (given < 0 || given > in->dims[*axis])
        return dq_call_fail(call, err, DQ_BAD_MODEL, "wants %" PRId64 " elements of an axis of %" PRId64,
                            given, in->dims[*axis]);
    *k = (size_t)given;
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis = 0, k = 0;
    DQ_TRY(read_k(call, &axis, &k, err));
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < in->rank; d++)
        dims[d] = d == axis ? (int64_t)k : in->dims[d];
    DQ_TRY(dq_call_output(call, 0, in->dtype, in->rank, dims, err));
    return dq_call_output(call, 1, DQ_INT64, in->rank, dims, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis = 0, k = 0;
    DQ_TRY(read_k(call, &axis, &k, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    *(state *)call->state = (state){k, (size_t)in->dims[axis], dq_dims_product(in->dims, axis + 1, in->rank),
                                    dq_node_int(call->node, "largest", 1) != 0};
    /* a heap of k indices */
    if (!dq_mul_size(k, sizeof(size_t), &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "the largest elements");
    return DQ_OK;
}

typedef struct line {
    const state *s;
    const dq_tensor *in;
    size_t base;
    bool is_float;
    uint64_t flip; /* makes signed integers order as unsigned ones */
} line;

/* Whether element a comes before element b in the result. */
static bool before(const line *l, size_t a, size_t b)
{
    size_t at_a = l->base + a * l->s->inner, at_b = l->base + b * l->s->inner;
    if (l->is_float) {
        double x = dq_tensor_get_double(l->in, at_a), y = dq_tensor_get_double(l->in, at_b);
        if (isnan(x) || isnan(y))
            return isnan(x) == isnan(y) ? a < b : isnan(x) == l->s->largest;
        return x == y ? a < b : (x > y) == l->s->largest;
    }
    uint64_t x = (uint64_t)dq_tensor_get_int(l->in, at_a) ^ l->flip;
    uint64_t y = (uint64_t)dq_tensor_get_int(l->in, at_b) ^ l->flip;
    return x == y ? a < b : (x > y) == l->s->largest;
}

/* Sinks heap[i] until none below it comes later: the root is the last of the result so far. */
static void sink(const line *l, size_t *heap, size_t n, size_t i)
{
    for (;;) {
        size_t latest = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (before(l, heap[latest], heap[child]))
                latest = child;
        if (latest == i)
            return;
        size_t swap = heap[i];
        heap[i] = heap[latest];
        heap[latest] = swap;
        i = latest;
    }
}

static void select_line(const line *l, size_t *heap)
{
    size_t k = l->s->k;
    for (size_t i = 0; i < k; i++)
        heap[i] = i;
    for (size_t i = k / 2; i-- > 0;)
        sink(l, heap, k, i);
    for (size_t i = k; i < l->s->n; i++)
        if (before(l, i, heap[0])) {
            heap[0] = i;
            sink(l, heap, k, 0);
        }
    for (size_t n = k; n > 1; n--) { /* the last of what is left goes behind it */
        size_t last = heap[0];
        heap[0] = heap[n - 1];
        heap[n - 1] = last;
        sink(l, heap, n - 1, 0);
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    dq_tensor *values = call->out[0], *indices = call->out_count > 1 ? call->out[1] : NULL;
    size_t *heap = dq_call_worker_scratch(call, worker), width = dq_move_width(in->dtype);
    unsigned cls = dq_dtype_get(in->dtype)->cls;
    for (size_t i = begin; i < end; i++) {
        line l = {s, in, i / s->inner * s->n * s->inner + i % s->inner, cls == DQ_CLASS_FLOAT,
                  cls == DQ_CLASS_INT ? (uint64_t)1 << 63 : 0};
        select_line(&l, heap);
        for (size_t j = 0; j < s->k; j++) {
            size_t to = (i / s->inner * s->k + j) * s->inner + i % s->inner;
            if (values)
                memcpy((char *)values->data + to * width,
                       (const char *)in->data + (l.base + heap[j] * s->inner) * width, width);
            if (indices)
                dq_data(indices, int64_t)[to] = (int64_t)heap[j];
        }
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    if (s->k && call->in[0]->count)
        dq_parallel(call->threads, call->in[0]->count / s->n, 16, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_top_k = {infer, prepare, run, 0};
