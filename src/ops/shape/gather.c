/* SPDX-License-Identifier: Apache-2.0 */
/* Gather: slices of the data along an axis, selected by indices. GatherElements: one element for each index.
 * Negative indices count from the end. */
#include "ops/element.h"
#include "ops/rows.h"

enum { DATA, INDICES };

/* Reads indices first … first + n - 1, normalized to 0 … length - 1. `fault`: status if one is out of range.
 */
static dq_status read_indices(const dq_op_call *call, size_t first, size_t n, int64_t length, dq_status fault,
                              size_t *to, dq_error *err)
{
    size_t good = dq_load_indices(call->in[INDICES], first, n, length, to);
    if (good == n)
        return DQ_OK;
    return dq_call_fail_index(call, err, INDICES, fault, dq_tensor_get_int(call->in[INDICES], first + good),
                              length);
}

/* Checks constant indices when the model is planned. */
static dq_status prepare(dq_op_call *call, dq_error *err)
{
    size_t axis, index;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    for (size_t i = 0; dq_call_constant(call, INDICES) && i < call->in[INDICES]->count; i++)
        DQ_TRY(read_indices(call, i, 1, call->in[DATA]->dims[axis], DQ_BAD_MODEL, &index, err));
    return DQ_OK;
}

/* ---- Gather -------------------------------------------------------------------------------------------- */

static dq_status gather_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t axis, rank = 0;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    int64_t dims[2 * DQ_MAX_RANK];
    for (size_t d = 0; d < axis; d++)
        dims[rank++] = data->dims[d];
    for (size_t d = 0; d < indices->rank; d++)
        dims[rank++] = indices->dims[d];
    for (size_t d = axis + 1; d < data->rank; d++)
        dims[rank++] = data->dims[d];
    return dq_call_output(call, 0, data->dtype, rank, dims, err);
}

/* Copies slices of `inner` elements: data slice first + index[i] to output slice to + i. */
static void copy_slices(const dq_tensor *data, size_t first, const size_t *index, size_t n, size_t inner,
                        dq_tensor *out, size_t to)
{
    size_t width = dq_element_width(data->dtype), bytes = inner * width;
    if (width && bytes <= sizeof(uint64_t)) {
        dq_gather_elements(bytes, (char *)out->data + to * bytes, (const char *)data->data + first * bytes,
                           index, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        dq_copy_elements(data, (first + index[i]) * inner, out, (to + i) * inner, inner);
}

static dq_status gather_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    dq_tensor *out = call->out[0];
    size_t axis;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    size_t outer = dq_dims_product(data->dims, 0, axis);
    size_t inner = dq_dims_product(data->dims, axis + 1, data->rank), n = (size_t)data->dims[axis];
    for (size_t i = 0, some; i < indices->count; i += some) {
        size_t index[DQ_ROW];
        some = indices->count - i < DQ_ROW ? indices->count - i : DQ_ROW;
        DQ_TRY(read_indices(call, i, some, data->dims[axis], DQ_BAD_INPUT, index, err));
        for (size_t o = 0; o < outer && inner; o++)
            copy_slices(data, o * n, index, some, inner, out, o * indices->count + i);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gather = {gather_infer, prepare, gather_run, DQ_OP_UNALIGNED};

/* ---- GatherElements ------------------------------------------------------------------------------------ */

static dq_status elements_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t axis;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    bool fits = data->rank == indices->rank;
    for (size_t d = 0; fits && d < data->rank; d++)
        fits = d == axis || indices->dims[d] <= data->dims[d];
    if (!fits) {
        char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, INDICES, "has shape %s, expected at most %s but for axis %zu",
                                  dq_shape_text(indices->rank, indices->dims, mine),
                                  dq_shape_text(data->rank, data->dims, theirs), axis);
    }
    return dq_call_output_like(call, 0, data->dtype, indices, err);
}

/* Gathers n elements of a row of indices, from index number i on. `base` is the data offset of the first one
 * without its index along the axis; `step` is the stride of that axis. */
static dq_status copy_row(const dq_op_call *call, size_t i, size_t n, size_t base, size_t axis, size_t step,
                          dq_error *err)
{
    const dq_tensor *data = call->in[DATA];
    size_t index[DQ_ROW], width = dq_element_width(data->dtype), along = axis + 1 < data->rank;
    DQ_TRY(read_indices(call, i, n, data->dims[axis], DQ_BAD_INPUT, index, err));
    for (size_t k = 0; along && k < n; k++)
        index[k] = index[k] * step + k;
    if (width) {
        dq_gather_elements(width, (char *)call->out[0]->data + i * width,
                           (const char *)data->data + base * width, index, n);
        return DQ_OK;
    }
    for (size_t k = 0; k < n; k++)
        dq_copy_elements(data, base + index[k], call->out[0], i + k, 1);
    return DQ_OK;
}

static dq_status elements_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *data = call->in[DATA], *indices = call->in[INDICES];
    size_t axis, strides[DQ_MAX_RANK], coord[DQ_MAX_RANK] = {0};
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    dq_strides(data->rank, data->dims, strides);
    size_t last = data->rank - 1, row = (size_t)indices->dims[last];
    for (size_t i = 0; i < indices->count; i += row) {
        size_t base = 0;
        for (size_t d = 0; d < last; d++)
            base += d == axis ? 0 : coord[d] * strides[d];
        for (size_t k = 0; k < row; k += DQ_ROW)
            DQ_TRY(copy_row(call, i + k, row - k < DQ_ROW ? row - k : DQ_ROW, base + (axis == last ? 0 : k),
                            axis, strides[axis], err));
        dq_next_coord(last, indices->dims, coord);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_gather_elements = {elements_infer, prepare, elements_run, 0};
