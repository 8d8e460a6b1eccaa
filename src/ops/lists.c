/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/lists.h"

#include <inttypes.h>

/* Reads an element. The first versions of some operators have their lists in floats. */
static dq_status read_element(const dq_op_call *call, uint32_t i, size_t k, int64_t *to, dq_error *err)
{
    const dq_tensor *t = call->in[i];
    if (!dq_dtype_is_float(t->dtype)) {
        *to = dq_tensor_get_int(t, k);
        return DQ_OK;
    }
    double value = dq_tensor_get_double(t, k);
    if (!(value >= -9007199254740992.0 && value <= 9007199254740992.0) || value != (double)(int64_t)value)
        return dq_call_fail_input(call, err, i, "holds %g, expected an integer", value);
    *to = (int64_t)value;
    return DQ_OK;
}

dq_status dq_list_from_input(const dq_op_call *call, uint32_t i, dq_list *list, dq_error *err)
{
    *list = (dq_list){0};
    const dq_tensor *t = dq_call_in(call, i);
    if (!t)
        return DQ_OK;
    DQ_TRY(dq_call_need(call, i));
    if (t->rank > 1 || t->count > DQ_LIST_MAX)
        return dq_call_fail_input(call, err, i, "has rank %u and %zu elements, expected a list of at most %d",
                                  t->rank, t->count, DQ_LIST_MAX);
    list->present = true;
    list->count = t->count;
    for (size_t k = 0; k < t->count; k++)
        DQ_TRY(read_element(call, i, k, &list->at[k], err));
    return DQ_OK;
}

dq_status dq_list_from_attr(const dq_op_call *call, const char *name, dq_list *list, dq_error *err)
{
    *list = (dq_list){0};
    if (!dq_node_attr(call->node, name))
        return DQ_OK;
    size_t count = 0;
    const int64_t *values = dq_node_ints(call->node, name, &count);
    if (count > DQ_LIST_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute '%s' has %zu elements, expected at most %d",
                            name, count, DQ_LIST_MAX);
    list->present = true;
    list->count = count;
    for (size_t k = 0; k < count; k++)
        list->at[k] = values[k];
    return DQ_OK;
}

dq_status dq_list_from_either(const dq_op_call *call, const char *name, uint32_t i, dq_list *list,
                              dq_error *err)
{
    if (dq_node_attr(call->node, name))
        return dq_list_from_attr(call, name, list, err);
    return dq_list_from_input(call, i, list, err);
}

dq_status dq_list_axes(const dq_op_call *call, dq_list *axes, size_t rank, dq_error *err)
{
    bool seen[DQ_MAX_RANK] = {false};
    for (size_t k = 0; k < axes->count; k++) {
        size_t axis;
        if (!dq_axis(axes->at[k], rank, &axis))
            return dq_call_fail(call, err, DQ_BAD_MODEL, "axis %" PRId64 " is outside a tensor of rank %zu",
                                axes->at[k], rank);
        if (seen[axis])
            return dq_call_fail(call, err, DQ_BAD_MODEL, "axis %zu is named twice", axis);
        seen[axis] = true;
        axes->at[k] = (int64_t)axis;
    }
    return DQ_OK;
}
