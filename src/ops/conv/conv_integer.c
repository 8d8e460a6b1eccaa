/* SPDX-License-Identifier: Apache-2.0 */
/* ConvInteger: int32 sums of 8-bit products, modulo 2^32 as the standard allows. */
#include "ops/conv/conv_s8.h"

enum { X, W, X_ZERO, W_ZERO, NO_BIAS };

static dq_status check(const dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    conv->x = X;
    conv->w = W;
    conv->x_zero = X_ZERO;
    conv->w_zero = W_ZERO;
    conv->bias = NO_BIAS;
    conv->x_last = conv->y_last = false;
    return dq_conv_s8_infer(call, conv, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_s8 conv;
    DQ_TRY(check(call, &conv, err));
    return dq_call_output(call, 0, DQ_INT32, conv.s.rank, conv.s.dims, err);
}

static void store(const dq_conv_sums *sums)
{
    const dq_conv_shape *s = &sums->conv->s;
    size_t at = (sums->batch * s->out_channels + sums->channel) * s->out_size + sums->first;
    dq_conv_sums_transpose(sums, dq_data(sums->call->out[0], uint32_t) + at);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_conv_s8), err));
    dq_conv_s8 *conv = call->state;
    conv->store = store;
    DQ_TRY(check(call, conv, err));
    return dq_conv_s8_prepare(call, conv, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_conv_s8_run(call, call->state);
    return DQ_OK;
}

const dq_op_impl dq_op_conv_integer = {infer, prepare, run, 0};
