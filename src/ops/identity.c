/* Identity: the same bytes. */
#include "ops/op.h"

#include <string.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (call->out[0] && call->in[0]->size)
        memcpy(call->out[0]->data, call->in[0]->data, call->in[0]->size);
    return DQ_OK;
}

const dq_op_impl dq_op_identity = {infer, NULL, run, DQ_OP_VIEW};
