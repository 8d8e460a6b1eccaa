/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that change the shape only (Reshape, Flatten, Squeeze, Unsqueeze), and shapes as data (Shape,
 * Size). */
#include "base/checked.h"
#include "ops/lists.h"

#include <inttypes.h>
#include <string.h>

static dq_status copy(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *x = call->in[0];
    if (!call->out[0] || !x->size)
        return DQ_OK;
    if (x->repeats)
        dq_tensor_expand(x, x->data, x->size / x->count, call->out[0]->data);
    else
        memcpy(call->out[0]->data, x->data, x->size);
    return DQ_OK;
}

/* ---- Reshape: 0 keeps the input's dimension (unless allowzero), -1 is inferred ------------------------- */

static dq_status reshape_fails(const dq_op_call *call, const dq_list *shape, dq_error *err)
{
    char from[DQ_SHAPE_TEXT], to[DQ_SHAPE_TEXT];
    return dq_call_fail(call, err, DQ_BAD_MODEL, "cannot reshape %s to %s",
                        dq_shape_text(call->in[0]->rank, call->in[0]->dims, from),
                        dq_shape_text(shape->count, shape->at, to));
}

static dq_status reshape_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list shape;
    DQ_TRY(dq_list_from_either(call, "shape", 1, &shape, err));
    if (shape.count > DQ_MAX_RANK)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "wants rank %zu, which is over %d", shape.count,
                            DQ_MAX_RANK);
    bool zero_is_zero = dq_node_int(call->node, "allowzero", 0) != 0;
    int64_t dims[DQ_MAX_RANK], known = 1;
    size_t unknown = DQ_MAX_RANK;
    for (size_t i = 0; i < shape.count; i++) {
        dims[i] = shape.at[i];
        if (dims[i] == 0 && !zero_is_zero) {
            if (i >= in->rank)
                return reshape_fails(call, &shape, err);
            dims[i] = in->dims[i];
        }
        if (dims[i] < -1 || (dims[i] == -1 && unknown != DQ_MAX_RANK))
            return reshape_fails(call, &shape, err);
        if (dims[i] == -1)
            unknown = i;
        else if (!dq_mul_i64(known, dims[i], &known))
            return reshape_fails(call, &shape, err);
    }
    if (unknown != DQ_MAX_RANK) {
        if (known == 0 || in->count % (size_t)known != 0)
            return reshape_fails(call, &shape, err);
        dims[unknown] = (int64_t)in->count / known;
        known *= dims[unknown];
    }
    if ((size_t)known != in->count)
        return reshape_fails(call, &shape, err);
    return dq_call_output(call, 0, in->dtype, shape.count, dims, err);
}

const dq_op_impl dq_op_reshape = {reshape_infer, NULL, copy, DQ_OP_VIEW | DQ_OP_BROADCAST_VIEW};

/* ---- Flatten: a matrix of the axes before `axis` by those from it on ----------------------------------- */

static dq_status flatten_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t axis = dq_node_int(call->node, "axis", 1), rank = in->rank;
    if (axis < -rank || axis > rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", expected %" PRId64 " to %" PRId64, axis, -rank,
                            rank);
    size_t at = (size_t)(axis < 0 ? axis + rank : axis);
    int64_t dims[2] = {(int64_t)dq_dims_product(in->dims, 0, at),
                       (int64_t)dq_dims_product(in->dims, at, in->rank)};
    return dq_call_output(call, 0, in->dtype, 2, dims, err);
}

const dq_op_impl dq_op_flatten = {flatten_infer, NULL, copy, DQ_OP_VIEW | DQ_OP_BROADCAST_VIEW};

/* ---- Squeeze, Unsqueeze -------------------------------------------------------------------------------- */

static dq_status squeeze_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list axes;
    DQ_TRY(dq_list_from_either(call, "axes", 1, &axes, err));
    DQ_TRY(dq_list_axes(call, &axes, in->rank, err));
    bool drop[DQ_MAX_RANK] = {false};
    for (size_t d = 0; d < in->rank; d++)
        drop[d] = !axes.present && in->dims[d] == 1;
    for (size_t k = 0; k < axes.count; k++) {
        size_t d = (size_t)axes.at[k];
        if (in->dims[d] != 1)
            return dq_call_fail_input(call, err, 0, "has dimension %" PRId64 " at axis %zu, expected 1",
                                      in->dims[d], d);
        drop[d] = true;
    }
    int64_t dims[DQ_MAX_RANK];
    size_t rank = 0;
    for (size_t d = 0; d < in->rank; d++)
        if (!drop[d])
            dims[rank++] = in->dims[d];
    return dq_call_output(call, 0, in->dtype, rank, dims, err);
}

const dq_op_impl dq_op_squeeze = {squeeze_infer, NULL, copy, DQ_OP_VIEW | DQ_OP_BROADCAST_VIEW};

static dq_status unsqueeze_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list axes;
    DQ_TRY(dq_list_from_either(call, "axes", 1, &axes, err));
    size_t rank = in->rank + axes.count;
    if (rank > DQ_MAX_RANK)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "gives rank %zu, which is over %d", rank, DQ_MAX_RANK);
    DQ_TRY(dq_list_axes(call, &axes, rank, err));
    int64_t dims[DQ_MAX_RANK] = {0};
    for (size_t k = 0; k < axes.count; k++)
        dims[axes.at[k]] = -1;
    for (size_t d = 0, from = 0; d < rank; d++)
        dims[d] = dims[d] == -1 ? 1 : in->dims[from++];
    return dq_call_output(call, 0, in->dtype, rank, dims, err);
}

const dq_op_impl dq_op_unsqueeze = {unsqueeze_infer, NULL, copy, DQ_OP_VIEW | DQ_OP_BROADCAST_VIEW};

/* ---- Shape, Size --------------------------------------------------------------------------------------- */

static size_t clamp_axis(int64_t axis, int64_t rank)
{
    axis = axis < 0 ? axis + rank : axis;
    return (size_t)(axis < 0 ? 0 : axis > rank ? rank : axis);
}

static void shape_range(const dq_op_call *call, size_t *start, size_t *end)
{
    int64_t rank = call->in[0]->rank;
    *start = clamp_axis(dq_node_int(call->node, "start", 0), rank);
    *end = clamp_axis(dq_node_int(call->node, "end", rank), rank);
    if (*end < *start)
        *end = *start;
}

static dq_status shape_infer(dq_op_call *call, dq_error *err)
{
    size_t start, end;
    shape_range(call, &start, &end);
    int64_t length = (int64_t)(end - start);
    return dq_call_output(call, 0, DQ_INT64, 1, &length, err);
}

static dq_status shape_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    size_t start, end;
    shape_range(call, &start, &end);
    if (call->out[0] && end > start)
        memcpy(call->out[0]->data, call->in[0]->dims + start, (end - start) * sizeof(int64_t));
    return DQ_OK;
}

const dq_op_impl dq_op_shape = {shape_infer, NULL, shape_run, DQ_OP_SHAPE_ONLY};

static dq_status size_infer(dq_op_call *call, dq_error *err)
{
    return dq_call_output(call, 0, DQ_INT64, 0, NULL, err);
}

static dq_status size_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->out[0])
        *dq_data(call->out[0], int64_t) = (int64_t)call->in[0]->count;
    return DQ_OK;
}

const dq_op_impl dq_op_size = {size_infer, NULL, size_run, DQ_OP_SHAPE_ONLY};
