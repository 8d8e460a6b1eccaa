/* SPDX-License-Identifier: Apache-2.0 */
/* LRN: y = x / (bias + alpha / size · sum of squares)^beta, where the sum is over `size` neighboring
 * channels. For beta = 3/4, which all known networks use, and float, the kernel computes the power with
 * square roots. Other powers and types are computed in double and rounded once. */
#include "base/math.h"
#include "ops/op.h"
#include "ops/widened.h"

#include <inttypes.h>
#include <math.h>

/* Of a task: approximate squares; bounds of its elements. */
enum { SQUARES_PER_TASK = 1 << 16, MAX_ELEMENTS = 4096, MIN_ELEMENTS = 64 };

typedef struct state {
    double alpha, beta, bias;
    size_t before, after; /* neighboring channels on each side; size - 1 in total */
    size_t channels, plane;
} state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    int64_t size = dq_node_int(call->node, "size", 1);
    if (size < 1)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'size' is %" PRId64 ", expected 1 or more",
                            size);
    if (call->in[0]->rank < 2)
        return dq_call_fail_input(call, err, 0, "has rank %u, expected 2 or more", call->in[0]->rank);
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    int64_t size = dq_node_int(call->node, "size", 1);
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->alpha = (double)dq_node_float(call->node, "alpha", 1e-4f) / (double)size;
    s->beta = (double)dq_node_float(call->node, "beta", 0.75f);
    s->bias = (double)dq_node_float(call->node, "bias", 1);
    s->before = (size_t)(size - 1) / 2;
    s->after = (size_t)size - 1 - s->before;
    s->channels = (size_t)x->dims[1];
    s->plane = dq_dims_product(x->dims, 2, x->rank);
    return DQ_OK;
}

/* The channels whose squares are summed for one channel. */
typedef struct span {
    size_t from, count;
} span;

static span around(const state *s, size_t channel)
{
    size_t from = channel > s->before ? channel - s->before : 0;
    size_t to = s->channels - 1 - channel > s->after ? channel + s->after : s->channels - 1;
    return (span){from, to - from + 1};
}

static void float_piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *call = *(const dq_op_call *const *)arg;
    const state *s = call->state;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;
    for (size_t i = begin; i < end;) {
        size_t inside = i % s->plane, row = i / s->plane, channel = row % s->channels;
        size_t n = s->plane - inside < end - i ? s->plane - inside : end - i;
        span c = around(s, channel);
        call->kernels->rows_f32->lrn(x + i, x + (row - channel + c.from) * s->plane + inside, s->plane,
                                     c.count, (float)s->alpha, (float)s->bias, n, y + i);
        i += n;
    }
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const dq_op_call *const *call = arg;
    const state *s = (*call)->state;
    const dq_tensor *x = (*call)->in[0];
    for (size_t i = begin; i < end; i++) {
        size_t channel = i / s->plane % s->channels;
        span c = around(s, channel);
        double squares = 0;
        for (size_t t = c.from; t < c.from + c.count; t++) {
            double v = dq_tensor_get_double(x, i - channel * s->plane + t * s->plane);
            squares += v * v;
        }
        dq_tensor_put_double((*call)->out[0], i,
                             dq_tensor_get_double(x, i) / dq_pow(s->bias + s->alpha * squares, s->beta));
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    bool floats = call->in[0]->dtype == DQ_FLOAT && s->beta == 0.75;
    const size_t window = s->before + s->after < s->channels ? s->before + s->after + 1 : s->channels;
    const size_t elements = SQUARES_PER_TASK / (window ? window : 1);
    const size_t grain = elements > MAX_ELEMENTS   ? MAX_ELEMENTS
                         : elements < MIN_ELEMENTS ? MIN_ELEMENTS
                                                   : elements;
    dq_parallel(call->threads, call->out[0]->count, grain, floats ? float_piece : piece, &call);
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_lrn, true, infer, prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST)
