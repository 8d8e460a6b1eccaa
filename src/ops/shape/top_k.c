/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: the k largest (or smallest) elements along an axis, in order, and their indices. Of equal elements
 * the one with the lower index comes first; NaN is the largest. */
#include "base/checked.h"
#include "ops/element.h"
#include "ops/lists.h"
#include "ops/shape/rank.h"
#include "ops/widened.h"

#include <inttypes.h>

typedef struct state {
    size_t k, n, inner; /* length of the axis, and its stride */
    bool largest;
} state;

static dq_status read_k(const dq_op_call *call, size_t *axis, size_t *k, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list list;
    DQ_TRY(dq_list_from_input(call, 1, &list, err));
    if (list.present && list.count != 1)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected 1", list.count);
    int64_t value = list.present ? list.at[0] : dq_node_int(call->node, "k", -1);
    DQ_TRY(dq_call_axis(call, -1, axis, err));
    if (value < 0 || value > in->dims[*axis])
        return dq_call_fail(call, err, DQ_BAD_MODEL, "wants %" PRId64 " elements of an axis of %" PRId64,
                            value, in->dims[*axis]);
    *k = (size_t)value;
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
    return dq_mul_size(k, sizeof(dq_ranked), &call->worker_scratch_size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "the largest elements");
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *in = call->in[0];
    dq_tensor *values = call->out[0], *indices = call->out_count > 1 ? call->out[1] : NULL;
    dq_ranked *top = dq_call_worker_scratch(call, worker);
    for (size_t i = begin; i < end; i++) {
        size_t base = i / s->inner * s->n * s->inner + i % s->inner;
        dq_rank_select(in, base, s->n, s->inner, s->largest, s->k, top);
        for (size_t j = 0; j < s->k; j++) {
            size_t to = (i / s->inner * s->k + j) * s->inner + i % s->inner;
            if (values)
                dq_copy_elements(in, base + top[j].number * s->inner, values, to, 1);
            if (indices)
                dq_data(indices, int64_t)[to] = (int64_t)top[j].number;
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

DQ_OP_WIDENED(dq_op_top_k, true, infer, prepare, run, 0)
