/* QLinearConv: y = saturate(round(sum * (x_scale * w_scale / y_scale)) + y_zero_point), where sum is that of
 * (x - x_zero_point)(w - w_zero_point), plus the bias, an int32 that wraps. */
#include "ops/qconv.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static dq_status check(const dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    conv->x = X;
    conv->w = W;
    conv->x_zero = X_ZERO;
    conv->w_zero = W_ZERO;
    conv->bias = BIAS;
    conv->channels_last = dq_node_int(call->node, "channels_last", 0) != 0; /* com.microsoft's alone */
    DQ_TRY(dq_qconv_infer(call, conv, err));
    DQ_TRY(dq_conv_param_check(call, X_SCALE, false, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, W_SCALE, true, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, Y_SCALE, false, &conv->s, err));
    return dq_conv_param_check(call, Y_ZERO, false, &conv->s, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_qconv conv;
    DQ_TRY(check(call, &conv, err));
    return dq_call_output(call, 0, call->in[Y_ZERO]->dtype, conv.s.rank, conv.s.dims, err);
}

static double scale_of(const dq_op_call *call, size_t channel)
{
    const dq_tensor *w = call->in[W_SCALE];
    double x_scale = (double)dq_data(call->in[X_SCALE], float)[0];
    double w_scale = (double)dq_data(w, float)[w->count == 1 ? 0 : channel];
    return x_scale * w_scale / (double)dq_data(call->in[Y_SCALE], float)[0];
}

static void store(const dq_conv_sums *sums)
{
    const dq_conv_shape *s = &sums->conv->s;
    const dq_op_call *call = sums->call;
    int32_t zero = dq_qconv_zero(call, Y_ZERO, 0), lo = call->out[0]->dtype == DQ_INT8 ? -128 : 0;
    uint8_t *y = dq_data(call->out[0], uint8_t);
    double scales[DQ_QCONV_CHANNELS];
    for (size_t j = 0; j < sums->channels; j++)
        scales[j] = scale_of(call, sums->channel + j);
    if (s->channels_last) {
        y += (sums->batch * s->out_size + sums->first) * s->out_channels + sums->channel;
        for (size_t i = 0; i < sums->count; i++)
            call->kernels->requantize(sums->c + i * sums->c_stride, sums->channels, scales, 1, zero, lo,
                                      lo + 255, y + i * s->out_channels);
        return;
    }
    y += (sums->batch * s->out_channels + sums->channel) * s->out_size + sums->first;
    if (sums->channels == 1 && sums->c_stride == 1) {
        call->kernels->requantize(sums->c, sums->count, scales, 0, zero, lo, lo + 255, y);
        return;
    }
    for (size_t i = 0; i < sums->count; i++)
        call->kernels->requantize(sums->c + i * sums->c_stride, sums->channels, scales, 1, zero, lo, lo + 255,
                                  sums->spare + i * sums->c_stride);
    call->kernels->transpose_x8(sums->spare, sums->c_stride, sums->count, sums->channels, 0, y, s->out_size);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_qconv), err));
    dq_qconv *conv = call->state;
    conv->store = store;
    DQ_TRY(check(call, conv, err));
    return dq_qconv_prepare(call, conv, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_qconv_run(call, call->state);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_conv = {infer, prepare, run, 0};
