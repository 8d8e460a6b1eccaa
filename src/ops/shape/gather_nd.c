/* SPDX-License-Identifier: Apache-2.0 */
/* GatherND: slices of the data, selected by index tuples, after batch_dims axes that data and indices share.
 */
#include "ops/element.h"
#include "ops/rows.h"

#include <inttypes.h>

enum { DATA, INDICES };

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    int64_t batch = dq_node_int(call->node, "batch_dims", 0), dims[2 * DQ_MAX_RANK];
    if (data->rank == 0 || indices->rank == 0)
        return dq_call_fail_input(call, err, data->rank ? INDICES : DATA,
                                  "is a scalar, expected rank 1 or more");
    if (batch < 0 || batch >= indices->rank || batch >= data->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'batch_dims' is %" PRId64
                            ", expected 0 to less than both ranks, %u and %u",
                            batch, data->rank, indices->rank);
    for (size_t d = 0; d < (size_t)batch; d++)
        if (data->dims[d] != indices->dims[d])
            return dq_call_fail_input(call, err, INDICES, "has %" PRId64 " along axis %zu, expected %" PRId64,
                                      indices->dims[d], d, data->dims[d]);
    int64_t tuple = indices->dims[indices->rank - 1];
    if (tuple > data->rank - batch)
        return dq_call_fail_input(call, err, INDICES, "has tuples of %" PRId64 ", expected at most %" PRId64,
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
    dq_tensor *out = call->out[0];
    size_t batch = (size_t)dq_node_int(call->node, "batch_dims", 0);
    size_t tuple = (size_t)indices->dims[indices->rank - 1], width = dq_element_width(data->dtype);
    size_t tuples = dq_dims_product(indices->dims, 0, indices->rank - 1);
    size_t each = dq_dims_product(indices->dims, batch, indices->rank - 1); /* tuples of a batch */
    size_t slice = dq_dims_product(data->dims, batch + tuple, data->rank);
    size_t one = dq_dims_product(data->dims, batch, data->rank); /* elements of a batch */
    for (size_t i = 0, n; i < tuples && (tuple || slice); i += n) {
        int64_t value[DQ_ROW];
        size_t at[DQ_ROW];
        n = DQ_ROW / (tuple ? tuple : 1);
        n = n < each - i % each ? n : each - i % each;
        dq_load_ints(indices->dtype, indices->data, i * tuple, n * tuple, value);
        const size_t good = dq_find_slices(data, batch, tuple, value, n, i / each * one, at);
        if (good < n)
            return dq_call_fail_tuple(call, err, INDICES, value + good * tuple, data->dims + batch);
        if (slice == 1 && width)
            dq_gather_elements(width, (char *)out->data + i * width, data->data, at, n);
        for (size_t k = 0; k < n && slice && !(slice == 1 && width); k++)
            dq_copy_elements(data, at[k], out, (i + k) * slice, slice);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gather_nd = {infer, NULL, run, 0};
