/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence operators: construct, read, change. A changed sequence is a new list that shares the items, and
 * memory with the old one (tensor/items.h). */
#include "ops/op.h"
#include "tensor/items.h"

#include <inttypes.h>

/* Fails with "input 0 'sequence' is a tensor …" if the value is not a sequence, which may be known only in
 * the run. */
static dq_status want_sequence(const dq_op_call *call, uint32_t i, dq_error *err)
{
    char text[DQ_KIND_TEXT];
    if (call->in[i]->kind == DQ_KIND_SEQUENCE)
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "is %s, expected a sequence",
                              dq_tensor_kind_text(call->in[i], text));
}

static void sequence_of(dq_op_call *call, dq_dtype dtype)
{
    dq_call_output_items(call, 0, DQ_KIND_SEQUENCE, DQ_KIND_TENSOR, dtype);
}

/* ---- Construction ------------------------------------------------------------------------------------- */

static dq_status construct_infer(dq_op_call *call, dq_error *err)
{
    (void)err;
    sequence_of(call, call->in[0]->dtype);
    return DQ_OK;
}

static dq_status construct_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor **items;
    if (!call->out[0])
        return DQ_OK;
    DQ_TRY(dq_items_alloc(call->strings, call->out[0], call->in_count, &items, err));
    for (uint32_t i = 0; i < call->in_count; i++)
        DQ_TRY(dq_tensor_keep(call->strings, call->in[i], &items[i], err));
    return DQ_OK;
}

const dq_op_impl dq_op_sequence_construct = {construct_infer, NULL, construct_run, DQ_OP_ITEMS};

static dq_status empty_infer(dq_op_call *call, dq_error *err)
{
    int64_t dtype = dq_node_int(call->node, "dtype", DQ_FLOAT);
    if (!dq_dtype_valid(dtype))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'dtype' is %" PRId64 ", which is no type",
                            dtype);
    sequence_of(call, (dq_dtype)dtype);
    return DQ_OK;
}

static dq_status empty_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor **items;
    return call->out[0] ? dq_items_alloc(call->strings, call->out[0], 0, &items, err) : DQ_OK;
}

const dq_op_impl dq_op_sequence_empty = {empty_infer, NULL, empty_run, DQ_OP_ITEMS};

/* ---- Access ------------------------------------------------------------------------------------------- */

/* Reads a position from input i, 0 … last; negative positions count from the end. */
static dq_status position(const dq_op_call *call, uint32_t i, int64_t last, size_t *at, dq_error *err)
{
    const dq_tensor *t = call->in[i];
    int64_t count = (int64_t)call->in[0]->count;
    if (t->count != 1)
        return dq_call_fail_input(call, err, i, "has %zu elements, expected one", t->count);
    int64_t value = dq_tensor_get_int(t, 0), from_start = value < 0 ? value + count : value;
    if (from_start < 0 || from_start > last)
        return dq_call_fail_input(call, err, i, "is %" PRId64 ", outside a sequence of %" PRId64 " items",
                                  value, count);
    *at = (size_t)from_start;
    return DQ_OK;
}

static dq_status find_item(const dq_op_call *call, const dq_tensor **item, dq_error *err)
{
    size_t at = 0;
    DQ_TRY(want_sequence(call, 0, err));
    DQ_TRY(position(call, 1, (int64_t)call->in[0]->count - 1, &at, err));
    *item = dq_item(call->in[0], at);
    return DQ_OK;
}

static dq_status at_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *item;
    DQ_TRY(find_item(call, &item, err));
    return dq_call_output_like(call, 0, item->dtype, item, err);
}

/* Items live as long as the run, so the output may be a view of the item. */
static dq_status at_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *item;
    DQ_TRY(find_item(call, &item, err));
    if (call->out[0])
        call->out[0]->data = item->data;
    return DQ_OK;
}

const dq_op_impl dq_op_sequence_at = {at_infer, NULL, at_run, DQ_OP_ITEMS};

static dq_status length_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(want_sequence(call, 0, err));
    return dq_call_output(call, 0, DQ_INT64, 0, NULL, err);
}

static dq_status length_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->out[0])
        *dq_data(call->out[0], int64_t) = (int64_t)call->in[0]->count;
    return DQ_OK;
}

const dq_op_impl dq_op_sequence_length = {length_infer, NULL, length_run, DQ_OP_ITEMS};

/* ---- Modification ------------------------------------------------------------------------------------- */

static dq_status change_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(want_sequence(call, 0, err));
    sequence_of(call, call->in[0]->dtype);
    return DQ_OK;
}

static dq_status insert_infer(dq_op_call *call, dq_error *err)
{
    if (call->in[0]->kind == DQ_KIND_SEQUENCE && call->in[0]->dtype != call->in[1]->dtype)
        return dq_call_fail_input(call, err, 1, "is of %s, expected %s as the sequence is",
                                  dq_dtype_name(call->in[1]->dtype), dq_dtype_name(call->in[0]->dtype));
    return change_infer(call, err);
}

static dq_status insert_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *list = call->in[0], *item;
    size_t at = list->count;
    if (dq_call_in(call, 2))
        DQ_TRY(position(call, 2, (int64_t)list->count, &at, err));
    if (!call->out[0])
        return DQ_OK;
    DQ_TRY(dq_tensor_keep(call->strings, call->in[1], &item, err));
    return dq_items_insert(call->strings, list, at, item, call->out[0], err);
}

const dq_op_impl dq_op_sequence_insert = {insert_infer, NULL, insert_run, DQ_OP_ITEMS};

static dq_status erase_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *list = call->in[0];
    size_t at = list->count - 1;
    if (!list->count)
        return dq_call_fail_input(call, err, 0, "is empty, expected an item to erase");
    if (dq_call_in(call, 1))
        DQ_TRY(position(call, 1, (int64_t)list->count - 1, &at, err));
    return call->out[0] ? dq_items_erase(call->strings, list, at, call->out[0], err) : DQ_OK;
}

const dq_op_impl dq_op_sequence_erase = {change_infer, NULL, erase_run, DQ_OP_ITEMS};
