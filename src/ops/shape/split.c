/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split: concatenate tensors along an axis, and split them again. */
#include "base/checked.h"
#include "ops/copy_nd.h"
#include "ops/lists.h"

#include <inttypes.h>

/* ---- Concat -------------------------------------------------------------------------------------------- */

enum { USUAL_AXIS = 1 }; /* of version 1, which has an optional axis */

static dq_status concat_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *first = call->in[0];
    size_t axis;
    DQ_TRY(dq_call_axis(call, USUAL_AXIS, &axis, err));
    int64_t dims[DQ_MAX_RANK] = {0}, total = 0;
    for (size_t d = 0; d < first->rank; d++)
        dims[d] = first->dims[d];
    for (uint32_t i = 0; i < call->in_count; i++) {
        const dq_tensor *t = call->in[i];
        bool fits = t->rank == first->rank;
        for (size_t d = 0; fits && d < t->rank; d++)
            fits = d == axis || t->dims[d] == dims[d];
        if (!fits || !dq_add_i64(total, t->dims[axis], &total)) {
            char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
            return dq_call_fail_input(call, err, i, "has shape %s, expected %s but for axis %zu",
                                      dq_shape_text(t->rank, t->dims, mine),
                                      dq_shape_text(first->rank, first->dims, theirs), axis);
        }
    }
    dims[axis] = total;
    return dq_call_output(call, 0, first->dtype, first->rank, dims, err);
}

static dq_status concat_prepare(dq_op_call *call, dq_error *err)
{
    const size_t width = dq_element_width(call->out[0]->dtype);
    size_t axis, begin = 0;
    DQ_TRY(dq_call_axis(call, USUAL_AXIS, &axis, err));
    if (width == 0 || dq_dims_product(call->out[0]->dims, 0, axis) != 1)
        return DQ_OK;
    DQ_TRY(dq_call_concat_offsets(call, err));
    for (uint32_t i = 0; call->concat_offsets && i < call->in_count; begin += call->in[i++]->count)
        call->concat_offsets[i] = begin * width;
    return DQ_OK;
}

static dq_status concat_run(const dq_op_call *call, dq_error *err)
{
    dq_tensor *out = call->out[0];
    size_t axis, begin = 0;
    DQ_TRY(dq_call_axis(call, USUAL_AXIS, &axis, err));
    dq_clear_tail_bits(out);
    for (uint32_t i = 0; i < call->in_count; i++) {
        const dq_tensor *in = call->in[i];
        if (in->count && !dq_call_is_concatenated(call, i)) {
            dq_copy_nd m = dq_copy_nd_part(out, axis, begin, (size_t)in->dims[axis], true);
            dq_copy_nd_run(call, &m, out->dtype, out->data, in->data);
        }
        begin += (size_t)in->dims[axis];
    }
    return DQ_OK;
}

const dq_op_impl dq_op_concat = {concat_infer, concat_prepare, concat_run, DQ_OP_BATCH_SEPARABLE_ALL};

/* ---- Split --------------------------------------------------------------------------------------------- */

/* Lengths of the parts: from the node, or equal ones; the last part then has the remainder. */
typedef struct lengths {
    const dq_tensor *input;
    const int64_t *attr;
    size_t count;
    int64_t whole, equal;
} lengths;

static int64_t length_of(const lengths *l, size_t i)
{
    if (l->attr)
        return l->attr[i];
    if (l->input)
        return dq_tensor_get_int(l->input, i);
    int64_t begin = l->equal * (int64_t)i;
    return begin >= l->whole ? 0 : l->whole - begin < l->equal ? l->whole - begin : l->equal;
}

static dq_status read_lengths(const dq_op_call *call, size_t axis, lengths *l, dq_error *err)
{
    *l = (lengths){.whole = call->in[0]->dims[axis]};
    l->attr = dq_node_ints(call->node, "split", &l->count);
    if (!l->attr && dq_call_in(call, 1)) {
        DQ_TRY(dq_call_need(call, 1));
        l->input = call->in[1];
        l->count = l->input->count;
    }
    if (!l->attr && !l->input) {
        const int64_t split_offsets = dq_node_int(call->node, "num_outputs", call->out_count);
        if (split_offsets != call->out_count)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'num_outputs' is %" PRId64 ", expected %u", split_offsets,
                                call->out_count);
        const int64_t left = l->whole % split_offsets;
        l->count = call->out_count;
        if (left != 0 && !dq_node_attr(call->node, "num_outputs"))
            return dq_call_fail_input(
                call, err, 0, "has dimension %" PRId64 " at axis %zu, which is not %" PRId64 " equal parts",
                l->whole, axis, split_offsets);
        l->equal = l->whole / split_offsets + (left != 0);
    }
    if (l->count != call->out_count)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has %zu lengths for %u outputs", l->count,
                            call->out_count);
    return DQ_OK;
}

static dq_status split_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis;
    lengths l;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    DQ_TRY(read_lengths(call, axis, &l, err));
    int64_t dims[DQ_MAX_RANK] = {0}, total = 0;
    for (size_t d = 0; d < in->rank; d++)
        dims[d] = in->dims[d];
    if (dq_dims_product(in->dims, 0, axis) == 1)
        DQ_TRY(dq_call_split_offsets(call, err));
    for (uint32_t i = 0; i < call->out_count; i++) {
        dims[axis] = length_of(&l, i);
        if (call->split_offsets)
            call->split_offsets[i] = (size_t)total * dq_dims_product(in->dims, axis + 1, in->rank);
        if (dims[axis] < 0 || !dq_add_i64(total, dims[axis], &total))
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "has length %" PRId64 " for output %u, expected 0 or more", dims[axis], i);
        DQ_TRY(dq_call_output(call, i, in->dtype, in->rank, dims, err));
    }
    if (total != l.whole)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "has lengths that sum to %" PRId64 ", expected the %" PRId64 " of axis %zu",
                            total, l.whole, axis);
    return DQ_OK;
}

static dq_status split_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis, begin = 0;
    lengths l;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    DQ_TRY(read_lengths(call, axis, &l, err));
    for (uint32_t i = 0; i < call->out_count; i++) {
        dq_tensor *out = call->out[i];
        if (out && out->count) {
            dq_copy_nd m = dq_copy_nd_part(in, axis, begin, (size_t)out->dims[axis], false);
            dq_clear_tail_bits(out);
            dq_copy_nd_run(call, &m, in->dtype, out->data, in->data);
        }
        begin += (size_t)length_of(&l, i);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_split = {split_infer, NULL, split_run, 0};
