/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.ConvIntegerToFloat: ConvInteger fused with the float operators that follow it in dynamically
 * quantized models: y = clip((float)sum * (x_scale * w_scale) + bias + z). Each step is rounded to float, as
 * in the separate nodes. Float x is first quantized by its range, as DynamicQuantizeLinear does. */
#include "ops/conv/conv_s8.h"
#include "ops/quantize/dynamic_quantize.h"

#include <math.h>
#include <string.h>

enum { X, W, X_ZERO, W_ZERO, X_SCALE, W_SCALE, BIAS, Z, NO_SUM_BIAS, INPUTS = NO_SUM_BIAS };
enum { PART = 256 }; /* results of a broadcast z expanded at a time */

typedef struct state {
    dq_conv_s8 conv; /* first, because the callback `store` converts its address to the state's */
    dq_bounds bounds;
    bool z_same; /* z has the result's shape */
    size_t z_strides[DQ_MAX_RANK];
    dq_dynamic_offsets offsets;
} state;

/* Fails unless input i is absent or has one element, or one per output channel. */
static dq_status check_param(const dq_op_call *call, uint32_t i, const dq_conv_shape *s, dq_error *err)
{
    const dq_tensor *t = dq_call_in(call, i);
    if (!t || t->count == 1 || t->count == s->out_channels)
        return DQ_OK;
    return dq_call_fail_input(call, err, i, "has %zu elements, expected 1 or %zu (output channels)", t->count,
                              s->out_channels);
}

static dq_status check_z(const dq_op_call *call, state *st, dq_error *err)
{
    const dq_tensor *z = dq_call_in(call, Z);
    const dq_conv_shape *s = &st->conv.s;
    int64_t dims[DQ_MAX_RANK];
    size_t rank;
    if (!z)
        return DQ_OK;
    if (!dq_broadcast(z->rank, z->dims, s->rank, s->dims, &rank, dims) || rank != s->rank ||
        memcmp(dims, s->dims, rank * sizeof *dims) != 0) {
        char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
        return dq_call_fail_input(call, err, Z, "has shape %s, expected one that broadcasts to %s",
                                  dq_shape_text(z->rank, z->dims, got),
                                  dq_shape_text(s->rank, s->dims, expected));
    }
    st->z_same = z->count == dq_dims_product(s->dims, 0, s->rank);
    dq_broadcast_strides(z, s->rank, s->dims, st->z_strides);
    return DQ_OK;
}

static dq_status resolve(const dq_op_call *call, state *st, dq_error *err)
{
    dq_conv_s8 *conv = &st->conv;
    conv->x = X;
    conv->w = W;
    conv->x_zero = X_ZERO;
    conv->w_zero = W_ZERO;
    conv->bias = NO_SUM_BIAS;
    DQ_TRY(dq_conv_s8_infer(call, conv, err));
    if (!call->in[X_SCALE])
        return dq_call_fail_input(call, err, X_SCALE, "is missing, expected where x is no float");
    if (call->in[X_SCALE]->count != 1)
        return dq_call_fail_input(call, err, X_SCALE, "has %zu elements, expected 1",
                                  call->in[X_SCALE]->count);
    DQ_TRY(check_param(call, W_SCALE, &conv->s, err));
    DQ_TRY(check_param(call, BIAS, &conv->s, err));
    DQ_TRY(dq_call_bounds(call, &st->bounds, err));
    return check_z(call, st, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state st = {0};
    dq_dynamic_call v;
    dq_dynamic_bind(call, INPUTS, X, X_SCALE, X_ZERO, &v);
    DQ_TRY(resolve(&v.call, &st, err));
    return dq_call_output(call, 0, DQ_FLOAT, st.conv.s.rank, st.conv.s.dims, err);
}

static float element(const dq_tensor *t, size_t channel)
{
    return dq_data(t, float)[t->count == 1 ? 0 : channel];
}

/* Expands a broadcast z for `count` results from element `at` of the output on. */
static void broadcast_z(const state *st, const float *z, size_t at, size_t count, float *to)
{
    const dq_conv_shape *s = &st->conv.s;
    for (size_t i = 0; i < count; i++) {
        size_t rest = at + i, from = 0;
        for (size_t d = s->rank; d-- > 0;) {
            from += rest % (size_t)s->dims[d] * st->z_strides[d];
            rest /= (size_t)s->dims[d];
        }
        to[i] = z[from];
    }
}

/* Applies the epilogue to int32 sums in y, in place: results of one channel from element `at` of the output
 * on. */
static void finish(const dq_op_call *call, const state *st, size_t channel, size_t at, size_t count, float *y)
{
    const dq_tensor *bias = dq_call_in(call, BIAS), *z = dq_call_in(call, Z);
    float scale = dq_data(call->in[X_SCALE], float)[0] * element(call->in[W_SCALE], channel);
    float b = bias ? element(bias, channel) : -0.0f, broadcast[PART];
    if (!z || st->z_same) {
        call->kernels->dequantize_acc_f32(y, count, scale, b, z ? dq_data(z, float) + at : NULL,
                                          st->bounds.low, st->bounds.high);
        return;
    }
    for (size_t i = 0; i < count; i += PART) {
        size_t n = count - i < PART ? count - i : PART;
        broadcast_z(st, dq_data(z, float), at + i, n, broadcast);
        call->kernels->dequantize_acc_f32(y + i, n, scale, b, broadcast, st->bounds.low, st->bounds.high);
    }
}

static void store(const dq_conv_sums *sums)
{
    const state *st = (const state *)(const void *)sums->conv;
    const dq_conv_shape *s = &st->conv.s;
    const dq_op_call *call = sums->call;
    size_t at = (sums->batch * s->out_channels + sums->channel) * s->out_size + sums->first;
    float *y = dq_data(call->out[0], float) + at;
    dq_conv_sums_transpose(sums, y);
    for (size_t j = 0; j < sums->channels; j++)
        finish(call, st, sums->channel + j, at + j * s->out_size, sums->count, y + j * s->out_size);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *st = call->state;
    dq_dynamic_call v;
    dq_dynamic_bind(call, INPUTS, X, X_SCALE, X_ZERO, &v);
    DQ_TRY(resolve(&v.call, st, err));
    st->conv.store = store;
    DQ_TRY(dq_conv_s8_prepare(&v.call, &st->conv, err));
    return dq_dynamic_reserve(call, X, &v, &st->offsets, err);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    const state *st = call->state;
    (void)err;
    dq_dynamic_call v;
    dq_dynamic_bind(call, INPUTS, X, X_SCALE, X_ZERO, &v);
    dq_dynamic_quantize_operand(call, X, &st->offsets, &v);
    dq_conv_s8_run(&v.call, &st->conv);
    return DQ_OK;
}

const dq_op_impl dq_op_conv_integer_to_float = {infer, prepare, run, 0};
