/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout for inference: copies the input; the mask is all true. */
#include "ops/op.h"

#include <string.h>

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *training = call->version >= 12 ? dq_call_in(call, 2) : NULL;
    if (training)
        DQ_TRY(dq_call_need(call, 2));
    bool trains = training && training->count == 1 && dq_data(training, uint8_t)[0];
    /* With a ratio of 0, training copies the input, too. */
    const dq_tensor *ratio = dq_call_in(call, 1);
    if (trains)
        DQ_TRY(dq_call_need(call, 1));
    bool drops = trains && (!ratio || ratio->count != 1 || dq_tensor_get_double(ratio, 0) != 0);
    if (drops || (call->version < 7 && dq_node_int(call->node, "is_test", 0) == 0))
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "is in training mode, expected inference");
    dq_dtype mask = call->version < 10 ? call->in[0]->dtype : DQ_BOOL;
    DQ_TRY(dq_call_output_like(call, 1, mask, call->in[0], err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    if (call->out[0] && in->size)
        memcpy(call->out[0]->data, in->data, in->size);
    dq_tensor *mask = call->out_count > 1 ? call->out[1] : NULL;
    for (size_t i = 0; mask && i < mask->count; i++)
        dq_tensor_put_double(mask, i, 1);
    return DQ_OK;
}

const dq_op_impl dq_op_dropout = {infer, NULL, run, 0};
