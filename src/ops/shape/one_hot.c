/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot: a new axis with `on` at the index and `off` elsewhere. Since version 11 negative indices count from
 * the end. Float indices are truncated toward zero. */
#include "ops/element.h"

#include <inttypes.h>

enum { INDICES, DEPTH, VALUES };

/* The index as int64; NaN and numbers out of range become a position outside any axis. */
static int64_t integer(const dq_tensor *t, size_t i)
{
    if (!dq_dtype_is_float(t->dtype)) {
        int64_t value = dq_tensor_get_int(t, i);
        return t->dtype == DQ_UINT64 && value < 0 ? INT64_MAX : value;
    }
    double value = dq_tensor_get_double(t, i);
    return value > -9.2e18 && value < 9.2e18 ? (int64_t)value : INT64_MAX;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *indices = call->in[INDICES], *depth = call->in[DEPTH], *values = call->in[VALUES];
    int64_t value = dq_node_int(call->node, "axis", -1), dims[DQ_MAX_RANK + 1];
    size_t axis;
    if (!dq_axis(value, indices->rank + 1u, &axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside a result of rank %u", value,
                            indices->rank + 1);
    if (depth->count != 1)
        return dq_call_fail_input(call, err, DEPTH, "has %zu elements, expected 1", depth->count);
    if (values->rank != 1 || values->count != 2)
        return dq_call_fail_input(call, err, VALUES, "has rank %u and %zu elements, expected a list of 2",
                                  values->rank, values->count);
    DQ_TRY(dq_call_need(call, DEPTH));
    int64_t length = integer(depth, 0);
    if (length < 1)
        return dq_call_fail_input(call, err, DEPTH, "is %" PRId64 ", expected 1 or more", length);
    for (size_t d = 0; d <= indices->rank; d++)
        dims[d] = d == axis ? length : indices->dims[d < axis ? d : d - 1];
    return dq_call_output(call, 0, values->dtype, indices->rank + 1u, dims, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *indices = call->in[INDICES], *values = call->in[VALUES];
    dq_tensor *out = call->out[0];
    size_t axis = 0;
    dq_axis(dq_node_int(call->node, "axis", -1), out->rank, &axis);
    size_t inner = dq_dims_product(out->dims, axis + 1, out->rank);
    int64_t depth = out->dims[axis];
    dq_fill_elements(out->dtype, out->data, out->count, values->data);
    for (size_t i = 0; i < indices->count; i++) {
        int64_t index = integer(indices, i);
        if (index < 0 && call->version >= 11)
            index += depth;
        if (index >= 0 && index < depth)
            dq_copy_elements(values, 1, out, (i / inner * (size_t)depth + (size_t)index) * inner + i % inner,
                             1);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_one_hot = {infer, NULL, run, 0};
