/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization in inference: (x - mean) / sqrt(variance + epsilon) · scale + bias, per channel (before
 * version 9 with `spatial` 0: per element of an image). scale / sqrt(variance + epsilon) is one factor,
 * computed in double.
 *
 * Float tensors are computed in float. Rows of a channel subtract the mean as two floats (the kernel
 * `normalize`). Contiguous channels use one difference and one fused multiply-add. Everything else is in
 * double, rounded once. */
#include "ops/op.h"
#include "ops/widened.h"

#include <math.h>

enum { X, SCALE, BIAS, MEAN, VARIANCE, INPUTS };
enum { ELEMENTS_PER_TASK = 8192 /* elements per task */, LINE = 16, BLOCK = 256 };

typedef struct state {
    double epsilon;
    size_t channels, inner; /* channels; contiguous elements that share one channel */
} state;

static void sizes(const dq_op_call *call, size_t *channels, size_t *inner)
{
    const dq_tensor *x = call->in[X];
    bool spatial = dq_node_int(call->node, "spatial", 1) != 0;
    size_t split = x->rank > 1 && spatial ? 2 : x->rank;
    *channels = x->rank > 1 ? dq_dims_product(x->dims, 1, split) : 1; /* a vector has one channel */
    *inner = dq_dims_product(x->dims, split, x->rank);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    size_t channels, inner;
    sizes(call, &channels, &inner);
    /* Before version 14, optional outputs requested training mode. */
    if (dq_node_int(call->node, "training_mode", 0) != 0 || dq_node_int(call->node, "is_test", 1) == 0)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "is in training mode, expected inference");
    for (uint32_t i = 1; i < call->out_count; i++)
        if (call->out[i])
            return dq_call_fail(call, err, DQ_UNSUPPORTED,
                                "gives running statistics, which only training has");
    for (uint32_t i = SCALE; i < INPUTS; i++)
        if (call->in[i]->count != channels)
            return dq_call_fail_input(call, err, i, "has %zu elements, expected %zu (channels)",
                                      call->in[i]->count, channels);
    return dq_call_output_like(call, 0, call->in[X]->dtype, call->in[X], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->epsilon = (double)dq_node_float(call->node, "epsilon", 1e-5f);
    sizes(call, &s->channels, &s->inner);
    return DQ_OK;
}

/* y = (x - mean) * factor + bias of a channel. */
typedef struct affine {
    double mean, factor, bias;
} affine;

static affine affine_of(const dq_op_call *call, size_t channel)
{
    const state *s = call->state;
    return (affine){dq_tensor_get_double(call->in[MEAN], channel),
                    dq_tensor_get_double(call->in[SCALE], channel) /
                        sqrt(dq_tensor_get_double(call->in[VARIANCE], channel) + s->epsilon),
                    dq_tensor_get_double(call->in[BIAS], channel)};
}

/* Normalizes contiguous channels of floats. Their parameters are computed once for all rows. */
static void columns(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const dq_rows_f32 *rows = call->kernels->rows_f32;
    const size_t channels = ((const state *)call->state)->channels, count = call->in[X]->count;
    for (size_t first = begin, n; first < end; first += n) {
        float mean[BLOCK], factor[BLOCK], bias[BLOCK];
        n = end - first < BLOCK ? end - first : BLOCK;
        for (size_t i = 0; i < n; i++) {
            const affine a = affine_of(call, first + i);
            mean[i] = (float)a.mean;
            factor[i] = (float)a.factor;
            bias[i] = (float)a.bias;
        }
        for (size_t at = first; at < count; at += channels) {
            float *y = dq_data(call->out[0], float) + at;
            rows->sub(dq_data(call->in[X], float) + at, 1, mean, 1, n, y);
            rows->normalize(y, n, 0, 0, 1, factor, bias, 1, y);
        }
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const dq_tensor *x = call->in[X];
    dq_tensor *y = call->out[0];
    for (size_t i = begin; i < end;) {
        size_t channel = i / s->inner % s->channels, stop = (i / s->inner + 1) * s->inner;
        const affine a = affine_of(call, channel);
        stop = stop < end ? stop : end;
        if (x->dtype == DQ_FLOAT) {
            float high = (float)a.mean, low = isfinite(high) ? (float)(a.mean - (double)high) : 0,
                  term = (float)a.bias;
            call->kernels->rows_f32->normalize(dq_data(x, float) + i, stop - i, high, low, (float)a.factor,
                                               NULL, &term, 0, dq_data(y, float) + i);
            i = stop;
        }
        for (; i < stop; i++)
            dq_tensor_put_double(y, i, (dq_tensor_get_double(x, i) - a.mean) * a.factor + a.bias);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    const size_t count = call->out[0]->count;
    if (count && s->inner == 1 && call->in[X]->dtype == DQ_FLOAT && call->in[MEAN]->dtype == DQ_FLOAT)
        dq_parallel(call->threads, s->channels, ELEMENTS_PER_TASK / (count / s->channels) + LINE, columns,
                    &call);
    else
        dq_parallel(call->threads, count, ELEMENTS_PER_TASK, piece, &call);
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_batch_normalization, true, infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST)
