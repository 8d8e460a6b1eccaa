/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolution of small planes in NCHWc, computed in float (dwconv_nchwc.h). Values and
 * weights without their zero points, their products, and sums of at most DQ_DWCONV_NCHWC_TAPS products are
 * integers below 2^24 in magnitude, which float represents exactly. */
#include "base/checked.h"
#include "ops/conv/conv_s8.h"
#include "ops/packers.h"

#include <math.h>
#include <string.h>

_Static_assert(DQ_DWCONV_NCHWC_TAPS * 255 * 255 < 1 << 24, "a float holds a sum");
_Static_assert((int)DQ_DWCONV_NCHWC_CHANNELS <= (int)DQ_CONV_S8_CHANNELS, "channels are stored together");

bool dq_conv_s8_depthwise_nchwc_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    if (!p->depthwise || p->shape->x_last || p->shape->y_last)
        return dq_not_applicable(reason, "not depthwise with channels first");
    if (!p->constant_weights || !p->equal_weight_zeros)
        return dq_not_applicable(reason,
                                 "weights and their zero points are not constant, or zero points differ");
    return dq_dwconv_nchwc_is_applicable(p->shape, reason);
}

dq_algorithm_work dq_conv_s8_depthwise_nchwc_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    return dq_dwconv_nchwc_work(p->shape);
}

typedef struct form {
    size_t taps;
    int64_t zero;
} form;

void dq_pack_dwconv_nchwc_s8(void *packed, const dq_tensor *from, const void *key)
{
    const form *f = key;
    for (size_t i = 0; i < from->count; i++) {
        const int value = from->dtype == DQ_INT8 ? dq_data(from, int8_t)[i] : dq_data(from, uint8_t)[i];
        ((float *)packed)[dq_dwconv_nchwc_weight(f->taps, i / f->taps, i % f->taps)] =
            (float)(value - (int)f->zero);
    }
}

/* Sums of other weights than 8-bit ones could exceed int32_t. */
size_t dq_packed_dwconv_nchwc_s8_used(const void *packed, size_t size, size_t full, const void *key)
{
    const float *weights = packed;
    for (size_t i = 0; i < size / sizeof *weights; i++)
        if (!(fabsf(weights[i]) <= UINT8_MAX))
            return 0;
    return dq_packed_numbers(packed, size, full, key);
}

dq_status dq_conv_s8_depthwise_nchwc_prepare(dq_op_call *call, void *state, dq_error *err)
{
    dq_conv_s8 *conv = state;
    const dq_conv_shape *s = &conv->s;
    dq_dwconv_nchwc *c = &conv->nchwc;
    const form f = {s->kernel_size, dq_conv_s8_zero(call, conv->w_zero, 0)};
    size_t *used = &call->worker_scratch_size, at;
    DQ_TRY(dq_dwconv_nchwc_lay_out(call, s, c, err));
    if (!dq_mul_size(conv->own, s->out_channels, &call->scratch_size) ||
        !dq_reserve_size(used, dq_dwconv_nchwc_workspace(c), sizeof(float), DQ_ALIGN, &at) ||
        !dq_reserve_size(used, c->positions * c->channels, sizeof(int32_t), DQ_ALIGN, &conv->sums_offset) ||
        !dq_reserve_size(used, c->images * s->in_size, c->channels, DQ_ALIGN, &conv->images_offset))
        return dq_no_memory(err, SIZE_MAX, "channels side by side");
    return dq_call_pack_deferred(call, conv->w, dq_pack_dwconv_nchwc_s8, &f, sizeof f,
                                 dq_dwconv_nchwc_weights(s) * sizeof(float), (const void **)&c->weights, err);
}

typedef struct job {
    const dq_op_call *call;
    const dq_conv_s8 *conv;
} job;

/* Transposes a task's planes to NCHWc and converts them to float without the zero point. */
static void take(const job *j, const dq_dwconv_nchwc_task *t, uint8_t *qvalues, float *workspace)
{
    static const float one = 1;
    const dq_conv_shape *s = &j->conv->s;
    const dq_tensor *x = j->call->in[j->conv->x];
    const dq_kernels *k = j->call->kernels;
    const size_t pitch = j->conv->nchwc.channels, all = t->images * s->in_size * pitch;
    const int32_t zero = dq_conv_s8_zero(j->call, j->conv->x_zero, 0);
    const int8_t low = (int8_t)zero;
    const uint8_t high = (uint8_t)zero;
    for (size_t m = 0; m < t->images; m++)
        k->transpose_x8(dq_data(x, uint8_t) + ((t->image + m) * s->group + t->channel) * s->in_size,
                        s->in_size, t->n, s->in_size, 0, qvalues + m * s->in_size * pitch, pitch);
    if (x->dtype == DQ_INT8)
        k->dequantize_s8_f32((const int8_t *)qvalues, all, &one, &low, 0, workspace);
    else
        k->dequantize_u8_f32(qvalues, all, &one, &high, 0, workspace);
}

/* Adds the biases to the sums, modulo 2^32. */
static void add_biases(const job *j, const dq_dwconv_nchwc_task *t, const float *y, int32_t *sums)
{
    const dq_dwconv_nchwc *c = &j->conv->nchwc;
    const size_t n = t->n, pitch = c->channels, end = t->images * c->shape->out_size * pitch;
    uint32_t bias[DQ_DWCONV_NCHWC_CHANNELS] = {0};
    for (size_t i = 0; i < n; i++)
        bias[i] = (uint32_t)dq_conv_s8_bias(j->call, j->conv, t->channel + i);
    for (size_t at = 0; at < end; at += pitch)
        for (size_t i = 0; i < n; i++)
            sums[at + i] = (int32_t)(bias[i] + (uint32_t)(int32_t)y[at + i]);
}

static void run_task(const job *j, const dq_dwconv_nchwc_task *t, char *scratch)
{
    const dq_conv_s8 *conv = j->conv;
    const dq_dwconv_nchwc *c = &conv->nchwc;
    float *workspace = (float *)(void *)scratch;
    int32_t *sums = (int32_t *)(void *)(scratch + conv->sums_offset);
    take(j, t, (uint8_t *)scratch + conv->images_offset, workspace);
    dq_dwconv_nchwc_sums(j->call, c, t, NULL, -INFINITY, INFINITY, workspace);
    add_biases(j, t, workspace + dq_dwconv_nchwc_image(c), sums);
    for (size_t m = 0; m < t->images; m++) {
        const dq_conv_sums out = {.conv = conv,
                                  .call = j->call,
                                  .batch = t->image + m,
                                  .channel = t->channel,
                                  .channels = t->n,
                                  .count = conv->s.out_size,
                                  .c_stride = c->channels,
                                  .c = sums + m * conv->s.out_size * c->channels};
        conv->store(&out);
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_dwconv_nchwc *c = &j->conv->nchwc;
    char *scratch = dq_call_worker_scratch(j->call, worker);
    memset(scratch, 0, dq_dwconv_nchwc_image(c) * sizeof(float));
    memset(scratch + j->conv->images_offset, 0, c->images * c->shape->in_size * c->channels);
    for (size_t i = begin; i < end; i++) {
        const dq_dwconv_nchwc_task t = dq_dwconv_nchwc_task_at(c, i);
        run_task(j, &t, scratch);
    }
}

void dq_conv_s8_depthwise_nchwc_run(const dq_op_call *call, const void *state, const void *operands)
{
    (void)operands;
    const dq_conv_s8 *conv = state;
    job j = {call, conv};
    dq_parallel(call->threads, dq_dwconv_nchwc_tasks(&conv->nchwc), dq_dwconv_nchwc_grain(&conv->nchwc),
                run_tasks, &j);
}
