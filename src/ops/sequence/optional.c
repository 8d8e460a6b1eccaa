/* SPDX-License-Identifier: Apache-2.0 */
/* Optionals: a tensor, a sequence, or nothing. */
#include "ops/op.h"
#include "tensor/items.h"

#include <string.h>

/* ---- Optional ----------------------------------------------------------------------------------------- */

/* Without an input, an attribute gives the type of the absent element. */
static dq_status empty_optional(dq_op_call *call, dq_error *err)
{
    const dq_attr *attr = dq_node_attr(call->node, "type");
    const dq_type *type = attr ? attr->u.type : NULL;
    if (!type)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "has neither an input nor the attribute 'type'");
    const dq_type *tensor = type->kind == DQ_KIND_SEQUENCE && type->element ? type->element : type;
    if (tensor->kind != DQ_KIND_TENSOR)
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "attribute 'type' is no tensor and no sequence of tensors");
    dq_call_output_items(call, 0, DQ_KIND_OPTIONAL, type->kind, tensor->dtype);
    return DQ_OK;
}

static dq_status optional_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = dq_call_in(call, 0);
    if (!in)
        return empty_optional(call, err);
    dq_call_output_items(call, 0, DQ_KIND_OPTIONAL, in->kind, in->dtype);
    return DQ_OK;
}

static dq_status optional_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = dq_call_in(call, 0), **items;
    if (!call->out[0])
        return DQ_OK;
    DQ_TRY(dq_items_alloc(call->strings, call->out[0], in ? 1 : 0, &items, err));
    if (!in || in->kind == DQ_KIND_TENSOR)
        return in ? dq_tensor_keep(call->strings, in, &items[0], err) : DQ_OK;
    dq_tensor *list = DQ_NEW(call->strings, dq_tensor); /* its items live as long as the run */
    if (!list)
        return dq_no_memory(err, sizeof *list, "an optional");
    *list = *in;
    list->owned = false;
    items[0] = list;
    return DQ_OK;
}

const dq_op_impl dq_op_optional = {optional_infer, NULL, optional_run, DQ_OP_ITEMS};

/* ---- OptionalHasElement ------------------------------------------------------------------------------- */

static dq_status has_infer(dq_op_call *call, dq_error *err)
{
    return dq_call_output(call, 0, DQ_BOOL, 0, NULL, err);
}

static dq_status has_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = dq_call_in(call, 0);
    if (call->out[0])
        *dq_data(call->out[0], bool) = in && (in->kind != DQ_KIND_OPTIONAL || in->count);
    return DQ_OK;
}

const dq_op_impl dq_op_optional_has_element = {has_infer, NULL, has_run, DQ_OP_ITEMS};

/* ---- OptionalGetElement ------------------------------------------------------------------------------- */

/* The element of an optional. Any other value is its own element. */
static dq_status element_of(const dq_op_call *call, const dq_tensor **element, dq_error *err)
{
    *element = call->in[0];
    if ((*element)->kind != DQ_KIND_OPTIONAL)
        return DQ_OK;
    if (!(*element)->count)
        return dq_call_fail_input(call, err, 0, "is empty, expected an element");
    *element = dq_item(*element, 0);
    return DQ_OK;
}

static dq_status get_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *element;
    DQ_TRY(element_of(call, &element, err));
    if (element->kind == DQ_KIND_TENSOR)
        return dq_call_output_like(call, 0, element->dtype, element, err);
    dq_call_output_items(call, 0, element->kind, element->item_kind, element->dtype);
    return DQ_OK;
}

static dq_status get_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *element;
    DQ_TRY(element_of(call, &element, err));
    if (!call->out[0])
        return DQ_OK;
    if (call->in[0]->kind != DQ_KIND_TENSOR)
        *call->out[0] = *element; /* an item, which lives as long as the run */
    else if (element->size)
        memcpy(call->out[0]->data, element->data, element->size);
    return DQ_OK;
}

const dq_op_impl dq_op_optional_get_element = {get_infer, NULL, get_run, DQ_OP_ITEMS};
