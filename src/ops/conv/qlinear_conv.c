/* QLinearConv: y = saturate(round(sum * (x_scale * w_scale / y_scale)) + y_zero_point), where sum is that of
 * (x - x_zero_point)(w - w_zero_point), plus the bias, an int32 that wraps. */
#include "ops/conv/qconv.h"

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS };

static dq_status check(const dq_op_call *call, dq_qconv *conv, dq_error *err)
{
    conv->x = X;
    conv->w = W;
    conv->x_zero = X_ZERO;
    conv->w_zero = W_ZERO;
    conv->bias = BIAS;
    /* com.microsoft's for both, dqrun's for each */
    int64_t both = dq_node_int(call->node, "channels_last", 0);
    conv->x_last = dq_node_int(call->node, "x_channels_last", both) != 0;
    conv->y_last = dq_node_int(call->node, "y_channels_last", both) != 0;
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

/* x_scale * w_scale / y_scale. */
static double scale_of(const dq_op_call *call, size_t channel)
{
    const dq_tensor *w = call->in[W_SCALE];
    double x_scale = (double)dq_data(call->in[X_SCALE], float)[0];
    double y_scale = (double)dq_data(call->in[Y_SCALE], float)[0];
    return x_scale * (double)dq_data(w, float)[w->count == 1 ? 0 : channel] / y_scale;
}

/* Of each output channel, at the start of the scratch. A division each would show. */
static void find_scales(const dq_op_call *call, size_t channels)
{
    double *scales = call->scratch;
    for (size_t j = 0; j < channels; j++)
        scales[j] = j && call->in[W_SCALE]->count == 1 ? scales[0] : scale_of(call, j);
}

static dq_requantize_to codes_of(const dq_op_call *call)
{
    int32_t lo = call->out[0]->dtype == DQ_INT8 ? -128 : 0;
    return (dq_requantize_to){.zero_point = dq_qconv_zero(call, Y_ZERO, 0), .lo = lo, .hi = lo + 255};
}

static bool codes(const dq_op_call *call, size_t channel, double *scale, dq_requantize_to *to)
{
    static const uint32_t known[] = {X_SCALE, W_SCALE, Y_SCALE, Y_ZERO};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!dq_call_constant(call, known[i]))
            return false;
    *scale = scale_of(call, channel);
    *to = codes_of(call);
    to->scale = scale;
    return true;
}

static void store(const dq_conv_sums *sums)
{
    const dq_conv_shape *s = &sums->conv->s;
    const dq_op_call *call = sums->call;
    dq_requantize_to to = codes_of(call);
    to.scale = (const double *)call->scratch + sums->channel;
    to.out = dq_data(call->out[0], uint8_t);
    if (s->y_last) {
        to.out += (sums->batch * s->out_size + sums->first) * s->out_channels + sums->channel;
        to.out_stride = s->out_channels;
    } else {
        to.out += (sums->batch * s->out_channels + sums->channel) * s->out_size + sums->first;
        to.out_stride = s->out_size;
        to.transposed = s->out_size > 1;
    }
    if (sums->codes) {
        to.out = sums->codes;
        to.out_stride = DQ_QLANES_OUTS;
    }
    const float *sure = sums->conv->lanes.sure;
    if (sure && sure[sums->channel] > 0)
        call->kernels->qlanes->codes(sums->c, sums->count, sure[sums->channel], &to);
    else if (sums->lanes)
        call->kernels->qlanes->store(sums->c, sums->c_stride, sums->count, sums->channels, &to);
    else if (sums->channels == 1 && sums->c_stride == 1 && !s->y_last)
        call->kernels->requantize(sums->c, sums->count, to.scale, 0, to.zero_point, to.lo, to.hi, to.out);
    else
        call->kernels->requantize_tile(sums->c, sums->c_stride, sums->count, sums->channels, &to);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(dq_qconv), err));
    dq_qconv *conv = call->state;
    conv->store = store;
    conv->codes = codes;
    DQ_TRY(check(call, conv, err));
    conv->own = sizeof(double);
    return dq_qconv_prepare(call, conv, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_qconv *conv = call->state;
    if (call->scratch_size) /* else there is nothing to compute */
        find_scales(call, conv->s.out_channels);
    dq_qconv_run(call, conv);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_conv = {infer, prepare, run, DQ_OP_SLICED_FIRST};
