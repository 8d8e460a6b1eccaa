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
    /* the keys of a line, and a heap of k indices */
    size_t keys, *size = &call->worker_scratch_size;
    return dq_mul_size(k, sizeof(size_t), size) &&
                   dq_mul_size((size_t)in->dims[axis], sizeof(uint64_t), &keys) &&
                   dq_add_size(*size, keys, size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "the largest elements");
}

/* A line's elements as numbers of which the larger come first. */
static void read_keys(const state *s, const dq_tensor *in, size_t base, uint64_t *keys)
{
    unsigned cls = dq_dtype_get(in->dtype)->cls;
    const uint64_t sign = (uint64_t)1 << 63, flip = cls == DQ_CLASS_INT ? sign : 0;
    for (size_t i = 0; i < s->n; i++) {
        uint64_t key;
        if (cls == DQ_CLASS_FLOAT) {
            double x = dq_tensor_get_double(in, base + i * s->inner) + 0.0; /* -0 becomes 0 */
            memcpy(&key, &x, sizeof key);
            key = isnan(x) ? UINT64_MAX : key & sign ? ~key : key | sign;
        } else {
            key = (uint64_t)dq_tensor_get_int(in, base + i * s->inner) ^ flip;
        }
        keys[i] = s->largest ? key : ~key;
    }
}

/* Whether element a comes before element b in the result. */
static inline bool before(const uint64_t *keys, size_t a, size_t b)
{
    return keys[a] == keys[b] ? a < b : keys[a] > keys[b];
}

/* Sinks heap[i] until none below it comes later: the root is the last of the result so far. */
static void sink(const uint64_t *keys, size_t *heap, size_t n, size_t i)
{
    for (;;) {
        size_t latest = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
            if (before(keys, heap[latest], heap[child]))
                latest = child;
        if (latest == i)
            return;
        size_t swap = heap[i];
        heap[i] = heap[latest];
        heap[latest] = swap;
        i = latest;
    }
}

static void select_line(const uint64_t *keys, size_t n, size_t k, size_t *heap)
{
    for (size_t i = 0; i < k; i++)
        heap[i] = i;
    for (size_t i = k / 2; i-- > 0;)
        sink(keys, heap, k, i);
    for (size_t i = k; i < n; i++)
        if (keys[i] > keys[heap[0]]) {
            heap[0] = i;
            sink(keys, heap, k, 0);
        }
    for (size_t left = k; left > 1; left--) { /* the last of what is left goes behind it */
        size_t last = heap[0];
        heap[0] = heap[left - 1];
        heap[left - 1] = last;
        sink(keys, heap, left - 1, 0);
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    dq_tensor *values = call->out[0], *indices = call->out_count > 1 ? call->out[1] : NULL;
    uint64_t *keys = dq_call_worker_scratch(call, worker);
    size_t *heap = (size_t *)(void *)(keys + s->n), width = dq_move_width(in->dtype);
    for (size_t i = begin; i < end; i++) {
        size_t base = i / s->inner * s->n * s->inner + i % s->inner;
        read_keys(s, in, base, keys);
        select_line(keys, s->n, s->k, heap);
        for (size_t j = 0; j < s->k; j++) {
            size_t to = (i / s->inner * s->k + j) * s->inner + i % s->inner;
            if (values)
                memcpy((char *)values->data + to * width,
                       (const char *)in->data + (base + heap[j] * s->inner) * width, width);
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
