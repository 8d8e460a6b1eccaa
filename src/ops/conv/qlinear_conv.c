/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConv: y = saturate(round(sum * x_scale * w_scale / y_scale) + y_zero_point), rounded once. The sum
 * is that of (x - x_zero_point)(w - w_zero_point) plus the bias, in int32 modulo 2^32.
 *
 * dqrun's operator may also have a float bias: y = saturate(round((sum * x_scale * w_scale + bias) / y_scale)
 * + y_zero_point), rounded once. The int32 bias is then the nearest multiple of x_scale * w_scale. Sums begin
 * with it, and requantization adds the remainder (dq_requantize_bias). */
#include "ops/conv/conv_s8.h"

#include <math.h>

enum { X, X_SCALE, X_ZERO, W, W_SCALE, W_ZERO, Y_SCALE, Y_ZERO, BIAS, FLOAT_BIAS };

typedef struct state {
    dq_conv_s8 conv;
    double *scales; /* multiplier of each output channel; NULL: computed in each run, at the start of the
                       scratch */
    double *shifts; /* by output channel, as in dq_requantize_bias; NULL: no float bias */
    bool known;     /* `to` is constant but for its pointers */
    dq_requantize_to to;
} state;

static dq_status check(const dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    conv->x = X;
    conv->w = W;
    conv->x_zero = X_ZERO;
    conv->w_zero = W_ZERO;
    conv->bias = BIAS;
    /* channels_last is com.microsoft's, for x and y; the other two are dqrun's. */
    int64_t both = dq_node_int(call->node, "channels_last", 0);
    conv->x_last = dq_node_int(call->node, "x_channels_last", both) != 0;
    conv->y_last = dq_node_int(call->node, "y_channels_last", both) != 0;
    DQ_TRY(dq_conv_s8_infer(call, conv, err));
    DQ_TRY(dq_conv_bias_check(call, FLOAT_BIAS, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, X_SCALE, false, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, W_SCALE, true, &conv->s, err));
    DQ_TRY(dq_conv_param_check(call, Y_SCALE, false, &conv->s, err));
    return dq_conv_param_check(call, Y_ZERO, false, &conv->s, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    dq_conv_s8 conv;
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

/* Multipliers of all output channels. One w_scale needs only one division, which is slow. */
static void find_scales(const dq_op_call *call, size_t channels, double *scales)
{
    for (size_t j = 0; j < channels; j++)
        scales[j] = j && call->in[W_SCALE]->count == 1 ? scales[0] : scale_of(call, j);
}

static bool knows_scales(const dq_op_call *call)
{
    return dq_call_constant(call, X_SCALE) && dq_call_constant(call, W_SCALE) &&
           dq_call_constant(call, Y_SCALE);
}

/* Computes the remainder of each output channel's float bias. The rewriter passes constants. */
static dq_status find_shifts(dq_op_call *call, const double *scales, state *st, dq_error *err)
{
    const size_t channels = st->conv.s.out_channels;
    const dq_tensor *w_scale = call->in[W_SCALE];
    if (!dq_call_in(call, BIAS) || !dq_call_constant(call, BIAS) || !dq_call_constant(call, FLOAT_BIAS) ||
        !knows_scales(call))
        return dq_call_fail_input(call, err, FLOAT_BIAS,
                                  "is given without constant scales and a constant 'B'");
    st->shifts = DQ_NEW_ARRAY(call->arena, channels, double);
    if (!st->shifts)
        return dq_no_memory(err, channels, "biases of a convolution");
    for (size_t j = 0; j < channels; j++) {
        st->shifts[j] = dq_requantize_shift(
            dq_data(call->in[BIAS], int32_t)[j], dq_data(call->in[FLOAT_BIAS], float)[j],
            (double)dq_data(call->in[X_SCALE], float)[0],
            dq_data(w_scale, float)[w_scale->count == 1 ? 0 : j], dq_data(call->in[Y_SCALE], float)[0]);
        if (!isfinite(scales[j]) || !(fabs(st->shifts[j]) <= DQ_MAX_SHIFT))
            return dq_call_fail_input(call, err, FLOAT_BIAS,
                                      "of channel %zu is %.9g quanta away from 'B', expected at most 0.5", j,
                                      st->shifts[j]);
    }
    return DQ_OK;
}

/* Parameters of requantization, but for pointers. */
static dq_requantize_to qvalues_of(const dq_op_call *call)
{
    const int32_t lo = call->out[0]->dtype == DQ_INT8 ? -128 : 0;
    return (dq_requantize_to){.factors = {.a = (double)dq_data(call->in[X_SCALE], float)[0],
                                          .b_step = call->in[W_SCALE]->count != 1},
                              .zero_point = dq_conv_s8_zero(call, Y_ZERO, 0),
                              .lo = lo,
                              .hi = lo + 255};
}

/* Points *to at the parameters of `channel`; `scale` is its multiplier. */
static void begin_at(const dq_op_call *call, size_t channel, const double *scale, dq_requantize_to *to)
{
    const state *st = call->state;
    to->scale = scale;
    to->factors.b = dq_data(call->in[W_SCALE], float) + channel * to->factors.b_step;
    to->factors.y = dq_data(call->in[Y_SCALE], float);
    if (st->shifts)
        to->bias = (dq_requantize_bias){st->shifts + channel, dq_data(call->in[FLOAT_BIAS], float) + channel,
                                        dq_data(call->in[BIAS], int32_t) + channel};
}

/* dq_requantize_to.exact for the first n channels. */
static bool exact_of(const dq_requantize_to *to, size_t n)
{
    return !to->bias.shift && dq_exact_products(to->scale, &to->factors, n);
}

static bool knows_requantization(const dq_op_call *call)
{
    return knows_scales(call) && dq_call_constant(call, Y_ZERO);
}

static bool qvalues(const dq_op_call *call, size_t channel, double *scale, dq_requantize_to *to)
{
    if (!knows_requantization(call))
        return false;
    *scale = scale_of(call, channel);
    *to = qvalues_of(call);
    begin_at(call, channel, scale, to);
    to->exact = exact_of(to, 1);
    return true;
}

static void store(const dq_conv_sums *sums)
{
    const state *st = (const state *)(const void *)sums->conv;
    const dq_conv_shape *s = &st->conv.s;
    const dq_op_call *call = sums->call;
    const double *scales = st->scales ? st->scales : (const double *)call->scratch;
    dq_requantize_to to = st->known ? st->to : qvalues_of(call);
    begin_at(call, sums->channel, scales + sums->channel, &to);
    to.out = dq_data(call->out[0], uint8_t);
    if (s->y_last) {
        to.out += (sums->batch * s->out_size + sums->first) * s->out_channels + sums->channel;
        to.out_stride = s->out_channels;
    } else {
        to.out += (sums->batch * s->out_channels + sums->channel) * s->out_size + sums->first;
        to.out_stride = s->out_size;
        to.transposed = s->out_size > 1;
    }
    if (sums->qvalues) {
        to.out = sums->qvalues;
        to.out_stride = DQ_NC4HW4_OUTS;
    }
    const float *exact_scale = st->conv.nc4hw4.exact_scale;
    if (exact_scale && exact_scale[sums->channel] > 0)
        call->kernels->conv_nc4hw4_s8->qvalues(sums->c, sums->count, exact_scale[sums->channel], &to);
    else if (sums->transposed)
        call->kernels->conv_nc4hw4_s8->store(sums->c, sums->c_stride, sums->count, sums->channels, &to);
    else if (sums->channels == 1 && sums->c_stride == 1 && !s->y_last)
        call->kernels->requantize_s32(sums->c, sums->count, &to, 0, 0, to.out);
    else
        call->kernels->requantize_tile_s32(sums->c, sums->c_stride, sums->count, sums->channels, &to);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    st->conv.store = store;
    st->conv.qvalues = qvalues;
    DQ_TRY(check(call, &st->conv, err));
    const size_t channels = st->conv.s.out_channels;
    if (!knows_scales(call)) {
        st->conv.own = sizeof(double);
    } else if (channels) {
        st->scales = DQ_NEW_ARRAY(call->arena, channels, double);
        if (!st->scales)
            return dq_no_memory(err, channels, "scales of a convolution");
        find_scales(call, channels, st->scales);
    }
    if (dq_call_in(call, FLOAT_BIAS))
        DQ_TRY(find_shifts(call, st->scales, st, err));
    st->known = knows_requantization(call) && channels;
    if (st->known) {
        st->to = qvalues_of(call);
        begin_at(call, 0, st->scales, &st->to);
        st->to.exact = exact_of(&st->to, channels);
    }
    return dq_conv_s8_prepare(call, &st->conv, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *st = call->state;
    if (st->conv.own && call->scratch_size) /* no scratch: the output is empty */
        find_scales(call, st->conv.s.out_channels, call->scratch);
    dq_conv_s8_run(call, &st->conv);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_conv = {infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};
