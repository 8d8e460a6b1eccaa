/* SPDX-License-Identifier: Apache-2.0 */
/* DynamicQuantizeLinear: quantizes a float tensor to 8 bits with scale and zero point from its range. */
#include "ops/quantize/dynamic_quantize.h"

/* The outputs' type by the schema; uint8 if it does not determine one. */
static dq_dtype result_type(const dq_op_call *call)
{
    for (uint32_t i = 0; i < call->out_count; i += 2)
        if (call->out[i] && call->out[i]->dtype != DQ_UNDEFINED)
            return call->out[i]->dtype;
    return DQ_UINT8;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_dtype dtype = result_type(call);
    if (dtype != DQ_UINT8 && dtype != DQ_INT8)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "output 0 'y' is %s, expected uint8 or int8",
                            dq_dtype_name(dtype));
    DQ_TRY(dq_call_output_like(call, 0, dtype, call->in[0], err));
    DQ_TRY(dq_call_output(call, 1, DQ_FLOAT, 0, NULL, err));
    return dq_call_output(call, 2, dtype, 0, NULL, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    (void)err;
    call->scratch_size = dq_dynamic_scratch(call->in[0]->count);
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *x = call->in[0];
    dq_dynamic found = dq_dynamic_find(call, x->data, x->count, result_type(call), call->scratch);
    if (call->out[0])
        dq_dynamic_quantize(call, x->data, x->count, &found, call->out[0]->data);
    if (call->out_count > 1 && call->out[1])
        dq_data(call->out[1], float)[0] = found.scale;
    if (call->out_count > 2 && call->out[2])
        dq_data(call->out[2], uint8_t)[0] = (uint8_t)found.zero;
    return DQ_OK;
}

const dq_op_impl dq_op_dynamic_quantize_linear = {infer, prepare, run, 0};
