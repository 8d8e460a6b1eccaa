/* SPDX-License-Identifier: Apache-2.0 */
/* Expand and Tile: repeat the input along its axes. */
#include "base/checked.h"
#include "ops/copy_nd.h"
#include "ops/lists.h"

#include <inttypes.h>

/* ---- Expand: broadcasts to a shape, which itself broadcasts -------------------------------------------- */

static dq_copy_nd expansion(const dq_op_call *call)
{
    const dq_tensor *out = call->out[0];
    size_t from[DQ_MAX_RANK], to[DQ_MAX_RANK];
    dq_copy_nd m = {0};
    dq_broadcast_strides(call->in[0], out->rank, out->dims, from);
    dq_strides(out->rank, out->dims, to);
    for (size_t d = 0; d < out->rank; d++)
        dq_copy_nd_add(&m, (size_t)out->dims[d], (int64_t)from[d], to[d]);
    dq_copy_nd_coalesce(&m);
    return m;
}

static dq_status expand_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list shape;
    DQ_TRY(dq_list_from_input(call, 1, &shape, err));
    if (shape.count > DQ_MAX_RANK)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "wants rank %zu, which is over %d", shape.count,
                            DQ_MAX_RANK);
    int64_t dims[DQ_MAX_RANK];
    size_t rank;
    if (!dq_broadcast(in->rank, in->dims, shape.count, shape.at, &rank, dims)) {
        char from[DQ_SHAPE_TEXT], to[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, 0, "has shape %s, which does not broadcast with %s",
                                  dq_shape_text(in->rank, in->dims, from),
                                  dq_shape_text(shape.count, shape.at, to));
    }
    DQ_TRY(dq_call_output(call, 0, in->dtype, rank, dims, err));
    const dq_copy_nd m = expansion(call);
    call->repeats = 0;
    for (size_t d = 0; d + 1 < m.rank; d++)
        if (m.from[d] == 0) {
            call->block = m.to[d];
            call->repeats = call->repeats ? 0 : m.dims[d];
            if (!call->repeats)
                break;
        }
    return DQ_OK;
}

static dq_status expand_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_copy_nd), err));
    *(dq_copy_nd *)call->state = expansion(call);
    return DQ_OK;
}

const dq_op_impl dq_op_expand = {expand_infer, expand_prepare, dq_copy_all, 0};

/* ---- Tile: version 1 repeats along one axis, later ones along each ------------------------------------- */

static dq_status read_repeats(const dq_op_call *call, dq_list *repeats, dq_error *err)
{
    size_t rank = call->in[0]->rank;
    DQ_TRY(dq_list_from_input(call, 1, repeats, err));
    if (call->version == 1) {
        dq_list axis;
        DQ_TRY(dq_list_from_input(call, 2, &axis, err));
        DQ_TRY(dq_list_axes(call, &axis, rank, err));
        if (repeats->count != 1 || axis.count != 1)
            return dq_call_fail(call, err, DQ_BAD_MODEL, "has %zu tiles and %zu axes, expected one of each",
                                repeats->count, axis.count);
        int64_t times = repeats->at[0];
        for (size_t d = 0; d < rank; d++)
            repeats->at[d] = (int64_t)d == axis.at[0] ? times : 1;
        repeats->count = rank;
    }
    if (repeats->count != rank)
        return dq_call_fail_input(call, err, 1, "has %zu elements, expected %zu, one an axis of input 0",
                                  repeats->count, rank);
    for (size_t d = 0; d < rank; d++)
        if (repeats->at[d] < 0)
            return dq_call_fail_input(call, err, 1, "repeats axis %zu %" PRId64 " times, expected 0 or more",
                                      d, repeats->at[d]);
    return DQ_OK;
}

static dq_status tile_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list repeats;
    DQ_TRY(read_repeats(call, &repeats, err));
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < in->rank; d++)
        if (!dq_mul_i64(in->dims[d], repeats.at[d], &dims[d]))
            return dq_call_fail_input(call, err, 1, "repeats axis %zu too often", d);
    return dq_call_output(call, 0, in->dtype, in->rank, dims, err);
}

static dq_status tile_prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list repeats;
    size_t from[DQ_MAX_RANK], to[DQ_MAX_RANK];
    DQ_TRY(read_repeats(call, &repeats, err));
    DQ_TRY(dq_call_state(call, sizeof(dq_copy_nd), err));
    dq_strides(in->rank, in->dims, from);
    dq_strides(in->rank, call->out[0]->dims, to);
    for (size_t d = 0; d < in->rank; d++) {
        size_t n = (size_t)in->dims[d];
        dq_copy_nd_add(call->state, (size_t)repeats.at[d], 0, to[d] * n);
        dq_copy_nd_add(call->state, n, (int64_t)from[d], to[d]);
    }
    dq_copy_nd_coalesce(call->state);
    return DQ_OK;
}

const dq_op_impl dq_op_tile = {tile_infer, tile_prepare, dq_copy_all, 0};
