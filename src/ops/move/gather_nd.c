/* GatherND: slices of the data that tuples of indices name, after batch_dims axes that both share. */
#include "ops/element.h"

#include <inttypes.h>

enum { DATA, INDICES };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    int64_t batch = dq_node_int(call->node, "batch_dims", 0), dims[2 * DQ_MAX_RANK];
    if (data->rank == 0 || indices->rank == 0)
        return dq_call_fail_input(call, err, data->rank ? INDICES : DATA,
                                  "is a scalar, wanted rank 1 or more");
    if (batch < 0 || batch >= indices->rank || batch >= data->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'batch_dims' is %" PRId64
                            ", wanted 0 to less than both ranks, %u and %u",
                            batch, data->rank, indices->rank);
    for (size_t d = 0; d < (size_t)batch; d++)
        if (data->dims[d] != indices->dims[d])
            return dq_call_fail_input(call, err, INDICES, "has %" PRId64 " along axis %zu, wanted %" PRId64,
                                      indices->dims[d], d, data->dims[d]);
    int64_t tuple = indices->dims[indices->rank - 1];
    if (tuple > data->rank - batch)
        return dq_call_fail_input(call, err, INDICES, "has tuples of %" PRId64 ", wanted at most %" PRId64,
                                  tuple, data->rank - batch);
    size_t rank = 0;
    for (size_t d = 0; d + 1 < indices->rank; d++)
        dims[rank++] = indices->dims[d];
    for (size_t d = (size_t)(batch + tuple); d < data->rank; d++)
        dims[rank++] = data->dims[d];
    return dq_call_output(call, 0, data->dtype, rank, dims, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t batch = (size_t)dq_node_int(call->node, "batch_dims", 0);
    size_t tuple = (size_t)indices->dims[indices->rank - 1], strides[DQ_MAX_RANK];
    size_t tuples = dq_dims_product(indices->dims, 0, indices->rank - 1);
    size_t batches = dq_dims_product(indices->dims, 0, batch);
    size_t slice = dq_dims_product(data->dims, batch + tuple, data->rank);
    size_t one = dq_dims_product(data->dims, batch, data->rank); /* elements of a batch */
    dq_strides(data->rank, data->dims, strides);
    for (size_t i = 0; i < tuples && (tuple || slice); i++) {
        size_t at = i / (tuples / batches) * one, index;
        for (size_t d = 0; d < tuple; d++) {
            int64_t given = dq_tensor_get_int(indices, i * tuple + d), n = data->dims[batch + d];
            if (!dq_wrap_index(given, n, &index)) {
                dq_call_fail_input(call, err, INDICES, "holds %" PRId64 ", outside an axis of %" PRId64,
                                   given, n);
                if (err)
                    err->status = DQ_BAD_INPUT;
                return DQ_BAD_INPUT;
            }
            at += index * strides[batch + d];
        }
        if (slice)
            dq_copy_elements(data, at, call->out[0], i * slice, slice);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gather_nd = {infer, NULL, run, 0};
