/* SPDX-License-Identifier: Apache-2.0 */
/* Constant and ConstantOfShape. */
#include "ops/op.h"

#include <string.h>

/* ---- Constant: one of its attributes gives the value --------------------------------------------------- */

/* Reads the value as a tensor, which wraps the attribute's data. The loader has made sparse_value dense. */
static dq_status value_of(const dq_op_call *call, dq_tensor *t, dq_error *err)
{
    static const struct {
        const char *name;
        dq_dtype dtype;
        bool list;
    } forms[] = {{"value_float", DQ_FLOAT, false},   {"value_floats", DQ_FLOAT, true},
                 {"value_int", DQ_INT64, false},     {"value_ints", DQ_INT64, true},
                 {"value_string", DQ_STRING, false}, {"value_strings", DQ_STRING, true},
                 {"value", DQ_UNDEFINED, false},     {"sparse_value", DQ_UNDEFINED, false}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const dq_attr *attr = dq_node_attr(call->node, forms[i].name);
        if (!attr)
            continue;
        if (forms[i].dtype == DQ_UNDEFINED) {
            *t = *attr->u.tensor;
            return DQ_OK;
        }
        int64_t length = (int64_t)attr->count;
        /* all members of the union start at its own address */
        t->data = (void *)(uintptr_t)(forms[i].list ? (const void *)attr->u.floats : (const void *)&attr->u);
        return dq_tensor_set_shape(t, forms[i].dtype, forms[i].list ? 1 : 0, &length, 0, DQ_BAD_MODEL, err);
    }
    return dq_call_fail(call, err, DQ_BAD_MODEL, "has none of the attributes that give a value");
}

static dq_status constant_infer(dq_op_call *call, dq_error *err)
{
    dq_tensor value = {0};
    DQ_TRY(value_of(call, &value, err));
    return dq_call_output_like(call, 0, value.dtype, &value, err);
}

static dq_status constant_run(const dq_op_call *call, dq_error *err)
{
    dq_tensor value = {0};
    DQ_TRY(value_of(call, &value, err));
    if (call->out[0] && value.size)
        memcpy(call->out[0]->data, value.data, value.size);
    return DQ_OK;
}

const dq_op_impl dq_op_constant = {constant_infer, NULL, constant_run, 0};

/* ---- ConstantOfShape: repeats one element -------------------------------------------------------------- */

static dq_status of_shape_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_need(call, 0));
    const dq_tensor *shape = call->in[0];
    const dq_attr *value = dq_node_attr(call->node, "value");
    if (value && value->u.tensor->count != 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'value' has %zu elements, expected 1",
                            value->u.tensor->count);
    if (shape->rank != 1 || shape->count > DQ_MAX_RANK)
        return dq_call_fail_input(call, err, 0, "has %zu elements and rank %u, expected a list of at most %d",
                                  shape->count, shape->rank, DQ_MAX_RANK);
    int64_t dims[DQ_MAX_RANK];
    for (size_t i = 0; i < shape->count; i++)
        dims[i] = dq_data(shape, int64_t)[i];
    return dq_call_output(call, 0, value ? value->u.tensor->dtype : DQ_FLOAT, shape->count, dims, err);
}

static dq_status of_shape_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_tensor *out = call->out[0];
    if (!out || out->count == 0)
        return DQ_OK;
    const dq_attr *value = dq_node_attr(call->node, "value");
    unsigned bits = dq_dtype_get(out->dtype)->bits;
    if (!value) {
        memset(out->data, 0, out->size);
    } else if (bits < 8) {
        uint64_t element = dq_get_bits(value->u.tensor->data, bits, 0);
        memset(out->data, 0, out->size); /* no stray bits after the last element */
        for (size_t i = 0; i < out->count; i++)
            dq_put_bits(out->data, bits, i, element);
    } else {
        size_t width = bits / 8;
        for (size_t i = 0; i < out->count; i++)
            memcpy((char *)out->data + i * width, value->u.tensor->data, width);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_constant_of_shape = {of_shape_infer, NULL, of_shape_run, 0};
