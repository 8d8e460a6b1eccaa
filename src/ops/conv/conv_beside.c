#include "ops/conv/conv_beside.h"

#include "kernels/kernels.h"
#include "ops/pool/window_walk.h"

#include <math.h>
#include <string.h>

enum {
    SMALL = 128,    /* places of results, at most, … */
    LARGE = 256,    /* … of the image … */
    TAPS = 64,      /* … and of the kernel */
    ROOM = 1 << 13, /* floats that are turned together, about */
    TOGETHER = 64,  /* channels of these, at most */
    WORK = 1 << 15, /* products of a piece of parallel work, at least about */
    SOME = DQ_FCONV_CHANNELS
};

bool dq_conv_beside_suits(const dq_op_call *call, uint32_t w, const dq_conv_shape *s)
{
    return s->group_in == 1 && s->group_out == 1 && s->group >= SOME / 2 && s->out_size <= SMALL &&
           s->in_size <= LARGE && s->kernel_size <= TAPS && s->kernel_size > 0 &&
           call->in[w]->dtype == DQ_FLOAT && dq_call_constant(call, w) && call->in[w]->count;
}

static void make_weights(void *packed, const dq_tensor *from, const void *key)
{
    const size_t taps = *(const size_t *)key, channels = from->count / taps;
    float *to = packed;
    for (size_t c = 0; c < channels; c++)
        for (size_t t = 0; t < taps; t++)
            to[(c / SOME * taps + t) * SOME + c % SOME] = dq_data(from, float)[c * taps + t];
}

/* Floats of the turned image with its place of zeros, and of results. */
static size_t image_size(const dq_conv_beside *c)
{
    return (c->shape->in_size + 1) * c->channels;
}

static size_t room_size(const dq_conv_beside *c)
{
    return image_size(c) + c->places * c->channels;
}

static dq_status find_offsets(dq_op_call *call, dq_conv_beside *c, dq_error *err)
{
    const dq_conv_shape *s = c->shape;
    uint32_t *to = c->offsets = DQ_NEW_ARRAY(call->arena, c->places * s->kernel_size, uint32_t);
    if (!to)
        return dq_no_memory(err, c->places * s->kernel_size, "places of the kernel");
    for (size_t t = 0; t < s->kernel_size; t++)
        for (size_t i = 0; i < c->places; i++) {
            int64_t origin[DQ_MAX_RANK], at;
            dq_window_origin(&s->window, i < s->out_size ? i : 0, origin);
            at = dq_window_at(&s->window, origin, t);
            *to++ = (uint32_t)((at < 0 ? s->in_size : (size_t)at) * c->channels);
        }
    return DQ_OK;
}

dq_status dq_conv_beside_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape, dq_conv_beside *c,
                                 dq_error *err)
{
    const size_t places = (shape->out_size + DQ_FCONV_PLACES - 1) / DQ_FCONV_PLACES * DQ_FCONV_PLACES;
    const size_t sets = (shape->group + SOME - 1) / SOME, taps = shape->kernel_size;
    const size_t most = ROOM / (shape->in_size + places) / SOME * SOME;
    *c = (dq_conv_beside){.shape = shape, .places = places};
    c->channels = most < SOME ? SOME : most < TOGETHER ? most : TOGETHER;
    call->worker_scratch_size = room_size(c) * sizeof(float);
    DQ_TRY(find_offsets(call, c, err));
    return dq_call_pack_later(call, w, make_weights, &taps, sizeof taps, sets * taps * SOME * sizeof(float),
                              (const void **)&c->weights, err);
}

typedef struct job {
    const dq_op_call *call;
    const dq_conv_beside *c;
    const dq_conv_floats *o;
    size_t blocks; /* of an image */
} job;

/* Of a gate, what it makes of results in the room; Z comes before it. */
static void pass_gate(const job *j, size_t n, float *y)
{
    const dq_fblock rest = {.rows = j->c->shape->out_size, /* and no steps */
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
        j->call->kernels->fblock(&rest);
}

/* Results of `n` channels that stand side by side in the room, behind them there. */
static void results(const job *j, size_t channel, size_t n, float *room)
{
    const dq_conv_beside *c = j->c;
    const dq_conv_floats *o = j->o;
    const size_t taps = c->shape->kernel_size;
    float bias[SOME], *y = room + image_size(c);
    dq_fconv_beside f = {.bias = bias,
                         .offsets = c->offsets,
                         .taps = taps,
                         .n = c->places,
                         .pitch = c->channels,
                         .low = o->z ? -INFINITY : o->finish->low,
                         .high = o->z ? INFINITY : o->finish->high};
    for (size_t at = 0; at < n; at += SOME) {
        for (size_t i = 0; i < SOME; i++)
            bias[i] = o->bias && at + i < n ? o->bias[channel + at + i] : -0.0f;
        f.x = room + at;
        f.w = c->weights + (channel + at) * taps;
        f.y = y + at;
        j->call->kernels->fconv_beside(&f);
    }
    pass_gate(j, n, y);
}

/* A piece: some channels of an image. */
static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_beside *c = j->c;
    const dq_conv_shape *s = c->shape;
    const size_t pitch = c->channels;
    dq_transpose_x32_fn *transpose = j->call->kernels->transpose_x32;
    float *room = dq_call_worker_scratch(j->call, worker);
    memset(room, 0, image_size(c) * sizeof *room);
    for (size_t i = begin; i < end; i++) {
        const size_t first = i % j->blocks * pitch, plane = i / j->blocks * s->group + first;
        const size_t n = s->group - first < pitch ? s->group - first : pitch;
        const dq_conv_sums out = {plane * s->out_size, n, s->out_size, s->out_size};
        transpose((const uint32_t *)(const void *)(j->o->x + plane * s->in_size), s->in_size, n, s->in_size,
                  (uint32_t *)(void *)room, pitch);
        results(j, first, n, room);
        transpose((const uint32_t *)(const void *)(room + image_size(c)), pitch, s->out_size, n,
                  (uint32_t *)(void *)(j->o->out + out.first), s->out_size);
        dq_conv_finish_sums(j->call, j->o, &out, NULL, !j->o->z);
    }
}

void dq_conv_beside_run(const dq_op_call *call, const dq_conv_beside *c, const dq_conv_floats *o)
{
    const dq_conv_shape *s = c->shape;
    job j = {call, c, o, (s->group + c->channels - 1) / c->channels};
    dq_parallel(call->threads, s->batch * j.blocks, WORK / (c->places * s->kernel_size * c->channels) + 1,
                piece, &j);
}
