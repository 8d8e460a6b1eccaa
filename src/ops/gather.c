/* Gather: slices of the data along an axis, chosen by indices. GatherElements: one element for each index. A
 * negative index counts from the end. */
#include "ops/element.h"

#include <inttypes.h>

enum { DATA, INDICES };

static dq_status read_axis(const dq_op_call *call, size_t *axis, dq_error *err)
{
    int64_t given = dq_node_int(call->node, "axis", 0);
    if (!dq_axis(given, call->in[DATA]->rank, axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside an input of rank %u", given,
                            call->in[DATA]->rank);
    return DQ_OK;
}

/* Index number i of the indices, brought into 0 … n-1; `fault` is the status of one outside. */
static dq_status read_index(const dq_op_call *call, size_t i, int64_t n, dq_status fault, size_t *index,
                            dq_error *err)
{
    int64_t given = dq_tensor_get_int(call->in[INDICES], i);
    *index = (size_t)(given < 0 ? given + n : given);
    if (given >= -n && given < n)
        return DQ_OK;
    dq_call_fail_input(call, err, INDICES, "holds %" PRId64 ", outside an axis of %" PRId64, given, n);
    if (err)
        err->status = fault;
    return fault;
}

/* Indices that the model fixes are looked at before the first run. */
static dq_status prepare(dq_op_call *call, dq_error *err)
{
    size_t axis, index;
    DQ_TRY(read_axis(call, &axis, err));
    for (size_t i = 0; dq_call_constant(call, INDICES) && i < call->in[INDICES]->count; i++)
        DQ_TRY(read_index(call, i, call->in[DATA]->dims[axis], DQ_BAD_MODEL, &index, err));
    return DQ_OK;
}

/* ---- Gather ---------------------------------------------------------------------------------------------
 */

static dq_status gather_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t axis, rank = 0;
    DQ_TRY(read_axis(call, &axis, err));
    int64_t dims[2 * DQ_MAX_RANK];
    for (size_t d = 0; d < axis; d++)
        dims[rank++] = data->dims[d];
    for (size_t d = 0; d < indices->rank; d++)
        dims[rank++] = indices->dims[d];
    for (size_t d = axis + 1; d < data->rank; d++)
        dims[rank++] = data->dims[d];
    return dq_call_output(call, 0, data->dtype, rank, dims, err);
}

static dq_status gather_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    dq_tensor *out = call->out[0];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    size_t outer = dq_dims_product(data->dims, 0, axis);
    size_t inner = dq_dims_product(data->dims, axis + 1, data->rank), n = (size_t)data->dims[axis];
    for (size_t i = 0; i < indices->count; i++) {
        size_t index;
        DQ_TRY(read_index(call, i, data->dims[axis], DQ_BAD_INPUT, &index, err));
        for (size_t o = 0; o < outer && inner; o++)
            dq_copy_elements(data, (o * n + index) * inner, out, (o * indices->count + i) * inner, inner);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gather = {gather_infer, prepare, gather_run, DQ_OP_LOOSE};

/* ---- GatherElements -------------------------------------------------------------------------------------
 */

static dq_status elements_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    bool fits = data->rank == indices->rank;
    for (size_t d = 0; fits && d < data->rank; d++)
        fits = d == axis || indices->dims[d] <= data->dims[d];
    if (!fits) {
        char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, INDICES, "has shape %s, wanted at most %s but for axis %zu",
                                  dq_shape_text(indices->rank, indices->dims, mine),
                                  dq_shape_text(data->rank, data->dims, theirs), axis);
    }
    return dq_call_output_like(call, 0, data->dtype, indices, err);
}

static dq_status elements_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t axis, strides[DQ_MAX_RANK], coord[DQ_MAX_RANK] = {0};
    DQ_TRY(read_axis(call, &axis, err));
    dq_strides(data->rank, data->dims, strides);
    size_t last = data->rank - 1, row = (size_t)indices->dims[last], n = (size_t)data->dims[axis];
    size_t step = strides[axis], width = dq_move_width(data->dtype);
    const uint32_t *words = data->data;
    for (size_t i = 0; i < indices->count; i += row) {
        size_t index, base = 0;
        for (size_t d = 0; d < last; d++)
            base += d == axis ? 0 : coord[d] * strides[d];
        for (size_t k = 0; k < row; k++) {
            if (!dq_wrap_index(dq_tensor_get_int(indices, i + k), (int64_t)n, &index))
                return read_index(call, i + k, (int64_t)n, DQ_BAD_INPUT, &index, err);
            index = base + index * step + (axis == last ? 0 : k);
            if (width == sizeof *words)
                dq_data(call->out[0], uint32_t)[i + k] = words[index];
            else
                dq_copy_elements(data, index, call->out[0], i + k, 1);
        }
        dq_next_coord(last, indices->dims, coord);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gather_elements = {elements_infer, prepare, elements_run, 0};
