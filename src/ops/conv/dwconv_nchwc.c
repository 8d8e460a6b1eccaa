/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/dwconv_nchwc.h"

#include "base/checked.h"
#include "kernels/kernels.h"
#include "ops/conv/conv_epilogue.h"
#include "ops/packers.h"
#include "ops/window.h"

#include <math.h>
#include <string.h>

enum {
    MAX_OUT_PIXELS = 128,    /* maximum output positions */
    MAX_IN_PIXELS = 256,     /* maximum input positions */
    WORKSPACE = 1 << 13,     /* floats of a task's images and results in NCHWc, about */
    MACS_PER_TASK = 1 << 15, /* minimum multiply-adds of a task, about */
    CHANNELS_PER_BLOCK = DQ_CONV_F32_CHANNELS
};

bool dq_dwconv_nchwc_is_applicable(const dq_conv_shape *s, dq_reason *reason)
{
    if (s->group_in != 1 || s->group_out != 1 || s->group < CHANNELS_PER_BLOCK / 2)
        return dq_not_applicable(reason, "%zu groups of %zu by %zu channels, expected at least %d of 1 by 1",
                                 s->group, s->group_in, s->group_out, CHANNELS_PER_BLOCK / 2);
    if (s->out_size == 0 || s->out_size > MAX_OUT_PIXELS || s->in_size > MAX_IN_PIXELS)
        return dq_not_applicable(reason, "images of %zu pixels, expected at most %d", s->in_size,
                                 MAX_IN_PIXELS);
    return (s->kernel_size > 0 && s->kernel_size <= DQ_DWCONV_NCHWC_TAPS) ||
           dq_not_applicable(reason, "the kernel has %zu elements, expected 1 to %d", s->kernel_size,
                             DQ_DWCONV_NCHWC_TAPS);
}

size_t dq_dwconv_nchwc_weights(const dq_conv_shape *s)
{
    return (s->group + CHANNELS_PER_BLOCK - 1) / CHANNELS_PER_BLOCK * CHANNELS_PER_BLOCK * s->kernel_size;
}

size_t dq_dwconv_nchwc_weight(size_t taps, size_t channel, size_t tap)
{
    return (channel / CHANNELS_PER_BLOCK * taps + tap) * CHANNELS_PER_BLOCK + channel % CHANNELS_PER_BLOCK;
}

void dq_pack_dwconv_nchwc_f32(void *packed, const dq_tensor *from, const void *key)
{
    const size_t taps = *(const size_t *)key;
    for (size_t i = 0; i < from->count; i++)
        ((float *)packed)[dq_dwconv_nchwc_weight(taps, i / taps, i % taps)] = dq_data(from, float)[i];
}

size_t dq_dwconv_nchwc_image(const dq_dwconv_nchwc *c)
{
    return (c->images * c->shape->in_size + 1) * c->channels;
}

size_t dq_dwconv_nchwc_workspace(const dq_dwconv_nchwc *c)
{
    return dq_dwconv_nchwc_image(c) + c->positions * c->channels;
}

size_t dq_dwconv_nchwc_grain(const dq_dwconv_nchwc *c)
{
    return MACS_PER_TASK / (c->positions * c->shape->kernel_size * c->channels) + 1;
}

size_t dq_dwconv_nchwc_tasks(const dq_dwconv_nchwc *c)
{
    return (c->shape->batch + c->images - 1) / c->images * c->blocks;
}

dq_dwconv_nchwc_task dq_dwconv_nchwc_task_at(const dq_dwconv_nchwc *c, size_t i)
{
    const size_t image = i / c->blocks * c->images, channel = i % c->blocks * c->channels;
    return (dq_dwconv_nchwc_task){.image = image,
                                  .images = dq_least(c->images, c->shape->batch - image),
                                  .channel = channel,
                                  .n = dq_least(c->channels, c->shape->group - channel)};
}

/* Images per task: several if one has fewer positions than kernels compute at a time. */
static size_t images_per_task(const dq_conv_shape *s)
{
    const size_t some = dq_least(DQ_CONV_F32_PLACES / s->out_size, s->batch);
    return some ? some : 1;
}

/* Positions of a task and channels are rounded up to what kernels compute at a time. */
dq_algorithm_work dq_dwconv_nchwc_work(const dq_conv_shape *s)
{
    const size_t images = images_per_task(s),
                 blocks = (s->group + CHANNELS_PER_BLOCK - 1) / CHANNELS_PER_BLOCK;
    const size_t positions =
        (images * s->out_size + DQ_CONV_F32_PLACES - 1) / DQ_CONV_F32_PLACES * DQ_CONV_F32_PLACES;
    const double tasks = (double)((s->batch + images - 1) / images) * (double)blocks;
    return (dq_algorithm_work){
        .macs = tasks * (double)(CHANNELS_PER_BLOCK * positions * s->kernel_size),
        .bytes = tasks * (double)(images * (s->in_size + s->out_size) * CHANNELS_PER_BLOCK) * sizeof(float),
        .calls = tasks};
}

dq_status dq_dwconv_nchwc_lay_out(dq_op_call *call, const dq_conv_shape *s, dq_dwconv_nchwc *c, dq_error *err)
{
    const size_t images = images_per_task(s), all = images * s->in_size, results = images * s->out_size;
    const size_t positions = (results + DQ_CONV_F32_PLACES - 1) / DQ_CONV_F32_PLACES * DQ_CONV_F32_PLACES;
    const size_t fitting_channels = dq_least(
        WORKSPACE / (all + positions) / CHANNELS_PER_BLOCK * CHANNELS_PER_BLOCK, DQ_DWCONV_NCHWC_CHANNELS);
    const size_t channels = fitting_channels ? fitting_channels : CHANNELS_PER_BLOCK;
    uint32_t *to = DQ_NEW_ARRAY(call->arena, positions * s->kernel_size, uint32_t);
    *c = (dq_dwconv_nchwc){.shape = s,
                           .channels = channels,
                           .blocks = (s->group + channels - 1) / channels,
                           .images = images,
                           .positions = positions,
                           .offsets = to};
    if (!to)
        return dq_no_memory(err, positions * s->kernel_size, "offsets of the kernel");
    for (size_t t = 0; t < s->kernel_size; t++)
        for (size_t i = 0; i < positions; i++) {
            int64_t origin[DQ_MAX_RANK], at;
            dq_window_origin(&s->window, i % s->out_size, origin);
            at = i < results ? dq_window_at(&s->window, origin, t) : -1;
            *to++ = (uint32_t)((at < 0 ? all : i / s->out_size * s->in_size + (size_t)at) * channels);
        }
    return DQ_OK;
}

dq_status dq_dwconv_nchwc_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                  dq_dwconv_nchwc *c, dq_error *err)
{
    DQ_TRY(dq_dwconv_nchwc_lay_out(call, shape, c, err));
    call->worker_scratch_size = dq_dwconv_nchwc_workspace(c) * sizeof(float);
    return dq_call_pack_deferred(call, w, dq_pack_dwconv_nchwc_f32, &shape->kernel_size,
                                 sizeof shape->kernel_size, dq_dwconv_nchwc_weights(shape) * sizeof(float),
                                 (const void **)&c->weights, err);
}

void dq_dwconv_nchwc_sums(const dq_op_call *call, const dq_dwconv_nchwc *c, const dq_dwconv_nchwc_task *task,
                          const float *bias, float low, float high, float *fitting_channels)
{
    float biases[CHANNELS_PER_BLOCK];
    const size_t taps = c->shape->kernel_size;
    dq_dwconv_nchwc_f32 f = {.bias = biases,
                             .offsets = c->offsets,
                             .taps = taps,
                             .n = c->positions,
                             .pitch = c->channels,
                             .low = low,
                             .high = high};
    for (size_t at = 0; at < task->n; at += CHANNELS_PER_BLOCK) {
        for (size_t i = 0; i < CHANNELS_PER_BLOCK; i++)
            biases[i] = bias && at + i < task->n ? bias[task->channel + at + i] : -0.0f;
        f.x = fitting_channels + at;
        f.w = c->weights + (task->channel + at) * taps;
        f.y = fitting_channels + dq_dwconv_nchwc_image(c) + at;
        call->kernels->dwconv_nchwc_f32(&f);
    }
}

typedef struct job {
    const dq_op_call *call;
    const dq_dwconv_nchwc *c;
    const dq_conv_floats *o;
} job;

/* Applies the gate to results in NCHWc. With Z, which comes before the gate, dq_conv_epilogue_sums does it
 * later. */
static void pass_gate(const job *j, size_t n, float *y)
{
    const dq_gemm_block_f32 rest = {.rows = j->c->images * j->c->shape->out_size, /* k is 0: epilogue only */
                                    .cols = n,
                                    .c = y,
                                    .c_row = j->c->channels,
                                    .more = true,
                                    .last = true,
                                    .alpha = 1,
                                    .low = -INFINITY,
                                    .high = INFINITY,
                                    .gate = j->o->finish->gate};
    if (rest.gate && !j->o->z)
        j->call->kernels->gemm_block_f32(&rest);
}

static void run_task(const job *j, const dq_dwconv_nchwc_task *t, float *fitting_channels)
{
    const dq_dwconv_nchwc *c = j->c;
    const dq_conv_floats *o = j->o;
    const dq_conv_shape *s = c->shape;
    const float low = o->z ? -INFINITY : o->finish->low, high = o->z ? INFINITY : o->finish->high;
    const size_t first = t->image * s->group + t->channel;
    dq_transpose_x32_fn *transpose = j->call->kernels->transpose_x32;
    float *y = fitting_channels + dq_dwconv_nchwc_image(c);
    for (size_t m = 0; m < t->images; m++)
        transpose((const uint32_t *)(const void *)(o->x + (first + m * s->group) * s->in_size), s->in_size,
                  t->n, s->in_size, (uint32_t *)(void *)(fitting_channels + m * s->in_size * c->channels),
                  c->channels);
    dq_dwconv_nchwc_sums(j->call, c, t, o->bias, low, high, fitting_channels);
    pass_gate(j, t->n, y);
    for (size_t m = 0; m < t->images; m++) {
        const dq_plane_sums out = {(first + m * s->group) * s->out_size, t->n, s->out_size, s->out_size};
        transpose((const uint32_t *)(const void *)(y + m * s->out_size * c->channels), c->channels,
                  s->out_size, t->n, (uint32_t *)(void *)(o->out + out.first), s->out_size);
        dq_conv_epilogue_sums(j->call, o, &out, NULL, !o->z);
    }
}

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    float *fitting_channels = dq_call_worker_scratch(j->call, worker);
    memset(fitting_channels, 0, dq_dwconv_nchwc_image(j->c) * sizeof *fitting_channels);
    for (size_t i = begin; i < end; i++) {
        const dq_dwconv_nchwc_task t = dq_dwconv_nchwc_task_at(j->c, i);
        run_task(j, &t, fitting_channels);
    }
}

void dq_dwconv_nchwc_run(const dq_op_call *call, const dq_dwconv_nchwc *c, const dq_conv_floats *o)
{
    job j = {call, c, o};
    dq_parallel(call->threads, dq_dwconv_nchwc_tasks(c), dq_dwconv_nchwc_grain(c), run_tasks, &j);
}
