/* SPDX-License-Identifier: Apache-2.0 */
/* SplitToSequence and ConcatFromSequence: split a tensor along an axis, and concatenate the parts again. */
#include "base/checked.h"
#include "ops/copy_nd.h"
#include "tensor/items.h"

#include <inttypes.h>
#include <string.h>

/* Copies between `part` and the slice of `whole` that begins at `begin` along the axis. Both are dense and of
 * the same rank. */
static void copy_part(const dq_op_call *call, const dq_tensor *whole, const dq_tensor *part, size_t axis,
                      int64_t begin, bool into_whole)
{
    size_t outer = 1, inner = 1;
    for (size_t d = 0; d < whole->rank; d++) {
        if (d < axis)
            outer *= (size_t)whole->dims[d];
        else if (d > axis)
            inner *= (size_t)whole->dims[d];
    }
    size_t stride = (size_t)whole->dims[axis] * inner, base = (size_t)begin * inner;
    if (!part->count)
        return;
    size_t run = part->count / outer;
    dq_copy_nd m = {0};
    m.to_base = into_whole ? base : 0;
    m.from_base = into_whole ? 0 : base;
    dq_copy_nd_add(&m, outer, (int64_t)(into_whole ? run : stride), into_whole ? stride : run);
    dq_copy_nd_add(&m, run, 1, 1);
    dq_copy_nd_coalesce(&m);
    dq_copy_nd_run(call, &m, whole->dtype, into_whole ? whole->data : part->data,
                   into_whole ? part->data : whole->data);
}

/* ---- SplitToSequence ---------------------------------------------------------------------------------- */

typedef struct split {
    size_t axis;
    int64_t whole, equal;  /* equal: without a list, the length of all parts; the last one may be shorter */
    const dq_tensor *list; /* lengths of the parts; NULL: none given */
    size_t count;
    bool keep_axis;
} split;

static dq_status read_list(const dq_op_call *call, split *s, dq_error *err)
{
    int64_t sum = 0;
    for (size_t i = 0; i < s->list->count; i++) {
        int64_t length = dq_tensor_get_int(s->list, i);
        if (length < 0 || !dq_add_i64(sum, length, &sum))
            return dq_call_fail_input(call, err, 1, "has %" PRId64 " as entry %zu, expected 0 or more",
                                      length, i);
    }
    if (sum != s->whole)
        return dq_call_fail_input(
            call, err, 1, "sums up to %" PRId64 ", expected %" PRId64 " as the axis is long", sum, s->whole);
    s->count = s->list->count;
    return DQ_OK;
}

static dq_status read_split(const dq_op_call *call, split *s, dq_error *err)
{
    const dq_tensor *in = call->in[0], *lengths = dq_call_in(call, 1);
    DQ_TRY(dq_call_axis(call, 0, &s->axis, err));
    s->whole = in->dims[s->axis];
    s->keep_axis = lengths || dq_node_int(call->node, "keepdims", 1) != 0;
    if (lengths && lengths->rank > 0) {
        s->list = lengths;
        return read_list(call, s, err);
    }
    s->equal = lengths ? dq_tensor_get_int(lengths, 0) : 1;
    if (s->equal < 1)
        return dq_call_fail_input(call, err, 1, "is %" PRId64 ", expected 1 or more", s->equal);
    s->count = (size_t)(s->whole / s->equal + (s->whole % s->equal != 0));
    return DQ_OK;
}

static dq_status split_infer(dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_call_output_items(call, 0, DQ_KIND_SEQUENCE, DQ_KIND_TENSOR, call->in[0]->dtype);
    return DQ_OK;
}

static dq_status split_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0], **items;
    split s = {0};
    DQ_TRY(read_split(call, &s, err));
    if (!call->out[0])
        return DQ_OK;
    DQ_TRY(dq_items_alloc(call->strings, call->out[0], s.count, &items, err));
    int64_t begin = 0;
    for (size_t i = 0; i < s.count; i++) {
        int64_t rest = s.whole - begin, dims[DQ_MAX_RANK];
        int64_t length = s.list ? dq_tensor_get_int(s.list, i) : rest < s.equal ? rest : s.equal;
        size_t rank = 0;
        for (size_t d = 0; d < in->rank; d++)
            if (d != s.axis || s.keep_axis)
                dims[rank++] = d == s.axis ? length : in->dims[d];
        dq_tensor *part;
        DQ_TRY(dq_tensor_new(call->strings, in->dtype, rank, dims, call->tensor_limit, &part, err));
        copy_part(call, in, part, s.axis, begin, false);
        items[i] = part;
        begin += length;
    }
    return DQ_OK;
}

const dq_op_impl dq_op_split_to_sequence = {split_infer, NULL, split_run, DQ_OP_ITEMS};

/* ---- ConcatFromSequence ------------------------------------------------------------------------------- */

static dq_status concat_axis(const dq_op_call *call, bool *new_axis, size_t *axis, dq_error *err)
{
    int64_t value = dq_node_int(call->node, "axis", 0);
    if (call->in[0]->kind != DQ_KIND_SEQUENCE || !call->in[0]->count)
        return dq_call_fail_input(call, err, 0, "is empty, expected items to put together");
    uint32_t rank = dq_item(call->in[0], 0)->rank;
    *new_axis = dq_node_int(call->node, "new_axis", 0) != 0;
    if (!dq_axis(value, (size_t)rank + *new_axis, axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside items of rank %u%s", value, rank,
                            *new_axis ? " with a new axis" : "");
    return DQ_OK;
}

static dq_status concat_infer(dq_op_call *call, dq_error *err)
{
    size_t axis;
    bool new_axis;
    DQ_TRY(concat_axis(call, &new_axis, &axis, err));
    const dq_tensor *first = dq_item(call->in[0], 0);
    int64_t dims[DQ_MAX_RANK + 1] = {0}, length = 0;
    for (size_t i = 0; i < call->in[0]->count; i++) {
        const dq_tensor *t = dq_item(call->in[0], i);
        bool fits = t->rank == first->rank;
        for (size_t d = 0; fits && d < t->rank; d++)
            fits = t->dims[d] == first->dims[d] || (d == axis && !new_axis);
        if (!fits || !dq_add_i64(length, new_axis ? 1 : t->dims[axis], &length)) {
            char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
            return dq_call_fail_input(call, err, 0, "has an item %zu of shape %s, expected %s%s", i,
                                      dq_shape_text(t->rank, t->dims, mine),
                                      dq_shape_text(first->rank, first->dims, theirs),
                                      new_axis ? "" : " but for the axis");
        }
    }
    size_t rank = (size_t)first->rank + new_axis;
    for (size_t d = 0; d < rank; d++)
        dims[d] = d == axis ? length : first->dims[new_axis && d > axis ? d - 1 : d];
    return dq_call_output(call, 0, first->dtype, rank, dims, err);
}

static dq_status concat_run(const dq_op_call *call, dq_error *err)
{
    size_t axis;
    bool new_axis;
    int64_t begin = 0;
    DQ_TRY(concat_axis(call, &new_axis, &axis, err));
    if (!call->out[0])
        return DQ_OK;
    dq_clear_tail_bits(call->out[0]);
    for (size_t i = 0; i < call->in[0]->count; i++) {
        const dq_tensor *t = dq_item(call->in[0], i);
        copy_part(call, call->out[0], t, axis, begin, true);
        begin += new_axis ? 1 : t->dims[axis];
    }
    return DQ_OK;
}

const dq_op_impl dq_op_concat_from_sequence = {concat_infer, NULL, concat_run, DQ_OP_ITEMS};
