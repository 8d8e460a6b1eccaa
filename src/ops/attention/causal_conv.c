/* SPDX-License-Identifier: Apache-2.0 */
/* CausalConvWithState of ai.onnx and of com.microsoft: causal depthwise 1-D convolution. The last inputs of
 * each channel are carried to the next run as state. Sums are in float, in the order of the taps. */
#include "ops/rows.h"

#include "base/checked.h"
#include "ops/op.h"

#include <inttypes.h>
#include <string.h>

enum { INPUT, WEIGHT, BIAS, PAST };
enum { RESULTS = 1024 /* results that the activation processes in one call */ };

typedef struct state {
    size_t batch, channels, steps, taps, dilation;
    size_t carried; /* time steps of the state */
    size_t rows;    /* channels that the activation processes in one call */
    bool channels_last, swish;
} state;

/* Refuses attributes of kernels for other devices. */
static dq_status check_plain(const dq_op_call *call, dq_error *err)
{
    static const char *const names[] = {"state_window", "state_update_capacity", "state_length",
                                        "input_channels", "input_channel_offset"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dq_node_int(call->node, names[i], 0) != 0)
            return dq_call_fail(call, err, DQ_UNSUPPORTED, "attribute '%s' is %" PRId64 ", expected 0",
                                names[i], dq_node_int(call->node, names[i], 0));
    if (dq_node_int(call->node, "ndim", 1) != 1)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "attribute 'ndim' is %" PRId64 ", expected 1",
                            dq_node_int(call->node, "ndim", 1));
    int64_t last = dq_node_int(call->node, "state_channels_last", -1);
    if (last >= 0 && last != dq_node_int(call->node, "channels_last", 0))
        return dq_call_fail(call, err, DQ_UNSUPPORTED,
                            "attribute 'state_channels_last' is not 'channels_last'");
    return DQ_OK;
}

static dq_status read_sizes(const dq_op_call *call, state *s, dq_error *err)
{
    const dq_tensor *x = call->in[INPUT], *w = call->in[WEIGHT], *bias = dq_call_in(call, BIAS);
    const char *activation = dq_node_string(call->node, "activation", "none");
    int64_t dilation = dq_node_int(call->node, "dilation", 1);
    char text[DQ_SHAPE_TEXT];
    *s = (state){.channels_last = dq_node_int(call->node, "channels_last", 0) != 0,
                 .swish = strcmp(activation, "none") != 0};
    DQ_TRY(check_plain(call, err));
    if (call->out_count > 2 && call->out[2])
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "has output 2, which is not known here");
    if (x->rank != 3 && !(s->channels_last && x->rank > 3))
        return dq_call_fail_input(call, err, INPUT, "has rank %u, expected 3", x->rank);
    s->batch = (size_t)x->dims[0];
    s->steps = (size_t)x->dims[s->channels_last ? 1 : 2];
    s->channels = s->channels_last ? dq_dims_product(x->dims, 2, x->rank) : (size_t)x->dims[1];
    if (w->rank != 3 || w->dims[0] != (int64_t)s->channels || w->dims[1] != 1 || w->dims[2] < 1)
        return dq_call_fail_input(call, err, WEIGHT, "has shape %s, expected %zux1 and a kernel",
                                  dq_shape_text(w->rank, w->dims, text), s->channels);
    if (bias && (bias->rank != 1 || bias->dims[0] != (int64_t)s->channels))
        return dq_call_fail_input(call, err, BIAS, "has %zu elements, expected %zu (channels)", bias->count,
                                  s->channels);
    s->taps = (size_t)w->dims[2];
    s->dilation = dilation < 1 ? 0 : (size_t)dilation;
    if (!s->dilation || !dq_mul_size(s->taps - 1, s->dilation, &s->carried) || s->carried > INT64_MAX)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'dilation' is %" PRId64, dilation);
    if (s->swish && strcmp(activation, "silu") != 0 && strcmp(activation, "swish") != 0)
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'activation' is '%s', expected none, silu or swish", activation);
    return DQ_OK;
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    state s;
    DQ_TRY(read_sizes(call, &s, err));
    const dq_tensor *x = call->in[INPUT], *past = dq_call_in(call, PAST);
    int64_t dims[DQ_MAX_RANK];
    char mine[DQ_SHAPE_TEXT], theirs[DQ_SHAPE_TEXT];
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[s.channels_last ? 1 : 2] = (int64_t)s.carried;
    if (past && (past->rank != x->rank || memcmp(past->dims, dims, x->rank * sizeof *dims) != 0))
        return dq_call_fail_input(call, err, PAST, "has shape %s, expected %s",
                                  dq_shape_text(past->rank, past->dims, mine),
                                  dq_shape_text(x->rank, dims, theirs));
    DQ_TRY(dq_call_output(call, 1, x->dtype, x->rank, dims, err));
    return dq_call_output_like(call, 0, x->dtype, x, err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    DQ_TRY(read_sizes(call, s, err));
    size_t numbers; /* floats: state and input, taps, results */
    s->rows = s->channels_last || s->steps > RESULTS / 2 || !s->steps ? 1 : RESULTS / s->steps;
    if (!dq_add_size(s->steps, s->carried, &numbers) || !dq_add_size(numbers, s->taps, &numbers) ||
        !dq_add_size(numbers, s->steps > RESULTS ? s->steps : RESULTS, &numbers) ||
        !dq_mul_size(numbers, sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "a channel");
    return DQ_OK;
}

/* Loads one channel of a tensor of n time steps as floats. */
static void load(const dq_op_call *call, const dq_tensor *t, size_t row, size_t n, float *to)
{
    const state *s = call->state;
    if (!s->channels_last && t->dtype == DQ_FLOAT) {
        const float *from = dq_data(t, float) + row * n;
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
        return;
    }
    if (!s->channels_last) {
        dq_load_floats(call->kernels, t->dtype, t->data, row * n, n, to);
        return;
    }
    size_t first = row / s->channels * n * s->channels + row % s->channels;
    for (size_t i = 0; i < n; i++)
        to[i] = (float)dq_tensor_get_double(t, first + i * s->channels);
}

static void store(const dq_op_call *call, dq_tensor *t, size_t row, size_t n, const float *from)
{
    const state *s = call->state;
    if (!s->channels_last && t->dtype == DQ_FLOAT) {
        float *to = dq_data(t, float) + row * n;
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
        return;
    }
    if (!s->channels_last) {
        dq_store_from_floats(call->kernels, t->dtype, t->data, row * n, n, from, false);
        return;
    }
    size_t first = row / s->channels * n * s->channels + row % s->channels;
    for (size_t i = 0; i < n; i++)
        dq_tensor_put_double(t, first + i * s->channels, (double)from[i]);
}

/* Computes the sums of one channel, and its new state. */
static void one_channel(const dq_op_call *call, size_t row, float *x, float *taps, float *y)
{
    const state *s = call->state;
    const dq_tensor *past = dq_call_in(call, PAST), *bias = dq_call_in(call, BIAS), *w = call->in[WEIGHT];
    size_t channel = row % s->channels;
    if (past)
        load(call, past, row, s->carried, x);
    else
        memset(x, 0, s->carried * sizeof *x);
    load(call, call->in[INPUT], row, s->steps, x + s->carried);
    if (call->out_count > 1 && call->out[1])
        store(call, call->out[1], row, s->carried, x + s->steps);
    for (size_t k = 0; k < s->taps; k++)
        taps[k] = (float)dq_tensor_get_double(w, channel * s->taps + k);
    float start = bias ? (float)dq_tensor_get_double(bias, channel) : 0;
    for (size_t t = 0; t < s->steps; t++)
        y[t] = start;
    for (size_t k = 0; k < s->taps; k++)
        for (size_t t = 0; t < s->steps; t++)
            y[t] += x[t + k * s->dilation] * taps[k];
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    float *x = dq_call_worker_scratch(call, worker), *taps = x + s->carried + s->steps, *y = taps + s->taps;
    for (size_t row = begin, n; row < end; row += n) {
        n = end - row < s->rows ? end - row : s->rows;
        for (size_t i = 0; i < n; i++)
            one_channel(call, row + i, x, taps, y + i * s->steps);
        if (!call->out[0] || !s->steps)
            continue;
        if (s->swish)
            call->kernels->rows_f32->silu(y, n * s->steps, 1, y);
        if (s->channels_last)
            store(call, call->out[0], row, s->steps, y);
        else
            dq_store_from_floats(call->kernels, call->out[0]->dtype, call->out[0]->data, row * s->steps,
                                 n * s->steps, y, false);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    enum { ELEMENTS_PER_TASK = 4096 /* approximate results of a parallel task */ };
    if (s->channels)
        dq_parallel(call->threads, s->batch * s->channels,
                    ELEMENTS_PER_TASK / (s->steps + s->carried + 1) + 1, piece, &call);
    return DQ_OK;
}

const dq_op_impl dq_op_causal_conv_with_state = {infer, prepare, run, DQ_OP_PAST_AT(PAST)};
