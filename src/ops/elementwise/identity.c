/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: copies the bytes. */
#include "ops/op.h"

#include <string.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    if (in->kind == DQ_KIND_TENSOR)
        return dq_call_output_like(call, 0, in->dtype, in, err);
    dq_call_output_items(call, 0, in->kind, in->item_kind, in->dtype);
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    if (!call->out[0])
        return DQ_OK;
    if (in->kind != DQ_KIND_TENSOR)
        *call->out[0] = *in; /* items are shared */
    else if (in->size)
        memcpy(call->out[0]->data, in->data, in->size);
    return DQ_OK;
}

const dq_op_impl dq_op_identity = {infer, NULL, run, DQ_OP_VIEW};
