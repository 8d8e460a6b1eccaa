/* SPDX-License-Identifier: Apache-2.0 */
/* EyeLike: ones on a diagonal, zeros elsewhere, in the shape of the input. */
#include "ops/element.h"

#include <inttypes.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t dtype = dq_node_int(call->node, "dtype", in->dtype);
    if (in->rank != 2)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected 2", in->rank);
    if (!dq_dtype_valid(dtype))
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'dtype' is %" PRId64 ", which is no type",
                            dtype);
    return dq_call_output_like(call, 0, (dq_dtype)dtype, in, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_tensor *out = call->out[0];
    int64_t k = dq_node_int(call->node, "k", 0), rows = out->dims[0], cols = out->dims[1];
    if (out->size)
        memset(out->data, 0, out->size);
    if (k <= -rows || k >= cols)
        return DQ_OK;
    for (int64_t row = k < 0 ? -k : 0; row < rows && row + k < cols; row++) {
        size_t at = (size_t)(row * cols + row + k);
        if (dq_dtype_is_float(out->dtype))
            dq_tensor_put_double(out, at, 1);
        else
            dq_tensor_put_int(out, at, 1);
    }
    return DQ_OK;
}

const dq_op_impl dq_op_eye_like = {infer, NULL, run, DQ_OP_SHAPE_ONLY};
