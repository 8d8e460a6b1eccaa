/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd F(2×2, 3×3). A chunk is some rows of tiles of a plane. Its pixels are transposed to NHWC and
 * transformed to 16 matrices of tiles by channels. For each panel of output channels, these are multiplied
 * with the transformed weights, and the products are transformed to outputs and transposed to NCHW. */
#include "ops/conv/conv_winograd.h"

#include "base/checked.h"
#include "ops/conv/conv_f32_algorithms.h"
#include "ops/packers.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = DQ_FWINOGRAD_POINTS,
    SIDE = 4,
    TAPS = 9,
    TILES = 56,    /* tiles of a chunk, about */
    CHANNELS = 64, /* maximum channels of pixels transformed at a time */
    CHANNELS_CHANNELS_LAST =
        32,       /* the same for few channels if pixels_first, so that every thread has a task */
    KERNELS = 16, /* input channels of weights transformed at a time */
    DEPTH = 256,  /* KC: steps of a GEMM block; a panel of this depth stays in L1 */
    PANELS_PER_TASK = 2,
    /* Maximum threads that each transform the shared data for themselves (`own`). For few threads this is
     * faster than reading data that another core has written. */
    MAX_REPEATING_THREADS = 4
};

typedef struct job {
    const dq_op_call *call;
    const dq_conv_winograd *g;
    const dq_conv_floats *o;
    const float *u; /* transformed weights; NULL: each worker has its own */
} job;

/* State of a worker's own transformed data. */
typedef struct thread_cache {
    bool weights;  /* the weights are transformed */
    size_t groups; /* 1 + the group whose pixels are transformed; 0: none */
} thread_cache;

/* A chunk, and the panels of output channels to compute. */
typedef struct task {
    size_t image, group, first, rows, tiles; /* first: row of tiles */
    size_t panel, panels;
    const float *v;
} task;

/* Stride between points: an odd number of cache lines, so that the points of a tile fall into different sets
 * of L1. */
static size_t row_stride(size_t n)
{
    enum { LINE = 16 }; /* floats of a cache line */
    return (n / LINE | 1) * LINE;
}

static float *at(void *workspace, size_t offset)
{
    return (float *)(void *)((char *)workspace + offset);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

bool dq_conv_f32_winograd_2d_is_applicable(const void *problem, dq_reason *reason)
{
    enum { LEAST_IN = 16, LEAST_OUT = 16, LEAST_PIXELS = 30 };
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const dq_window *w = &s->window;
    if (!dq_conv_f32_is_countable(p, reason))
        return false;
    if (w->rank != 2)
        return dq_not_applicable(reason, "%zu spatial axes, expected 2", w->rank);
    if (!dq_conv_is_3x3(s))
        return dq_not_applicable(reason, "the kernel is not 3x3 at stride 1");
    return (s->group_in >= LEAST_IN && s->group_out >= LEAST_OUT && s->out_size >= LEAST_PIXELS) ||
           dq_not_applicable(reason, "%zu by %zu channels and %zu pixels, expected at least %d, %d and %d",
                             s->group_in, s->group_out, s->out_size, LEAST_IN, LEAST_OUT, LEAST_PIXELS);
}

dq_algorithm_work dq_conv_f32_winograd_2d_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double tiles = (double)((s->window.out[0] + 1) / 2) * (double)((s->window.out[1] + 1) / 2);
    const double points = (double)s->batch * (double)s->group * tiles * POINTS;
    const double out = (double)((s->group_out + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR * DQ_GEMM_F32_NR);
    return (dq_algorithm_work){.macs = points * (double)s->group_in * out,
                               .bytes = points * ((double)s->group_in + out) * sizeof(float),
                               .calls = points * out / DQ_GEMM_F32_NR};
}

static void cut(const dq_conv_shape *s, size_t threads, dq_conv_winograd *g)
{
    g->down = ((size_t)s->window.out[0] + 1) / 2;
    g->across = ((size_t)s->window.out[1] + 1) / 2;
    size_t rows = dq_least(g->across < TILES ? TILES / g->across : 1, g->down);
    g->chunks = (g->down + rows - 1) / rows;
    g->rows = (g->down + g->chunks - 1) / g->chunks;
    g->tiles = g->rows * g->across;
    g->pixels_first = s->batch == 1 && g->chunks == 1;
    g->per_thread = threads <= MAX_REPEATING_THREADS;
    g->in_padded = (s->group_in + DQ_FWINOGRAD_STEP - 1) / DQ_FWINOGRAD_STEP * DQ_FWINOGRAD_STEP;
    g->panels = (s->group_out + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR;
    g->panels_per_task = dq_least(PANELS_PER_TASK, g->panels);
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Transforms the weights of panel `i`, counted over the panels of all groups. */
static void weights(const dq_winograd_f32_form *f, const float *w, size_t i, float *u)
{
    const size_t row = f->in * TAPS, first = i % f->panels * DQ_GEMM_F32_NR;
    const size_t outs = dq_least(DQ_GEMM_F32_NR, f->out - first);
    float workspace[KERNELS * TAPS * DQ_GEMM_F32_NR];
    w += (i / f->panels * f->out + first) * row;
    if (outs < DQ_GEMM_F32_NR)
        memset(workspace, 0, sizeof workspace);
    for (size_t c = 0; c < f->in; c += KERNELS) {
        size_t some = dq_least(KERNELS, f->in - c);
        f->transpose((const uint32_t *)(const void *)(w + c * TAPS), row, outs, some * TAPS,
                     (uint32_t *)(void *)workspace, DQ_GEMM_F32_NR);
        f->weights(workspace, some, u + c * DQ_GEMM_F32_NR, f->point);
    }
}

void dq_pack_conv_winograd_f32(void *packed, const dq_tensor *from, const void *key)
{
    const dq_winograd_f32_form *f = key;
    float *u = packed;
    for (size_t i = 0; i < f->groups * f->panels; i++, u += POINTS * f->point)
        weights(f, dq_data(from, float), i, u);
}

/* Constant float weights of small images are packed once. For large images, the transform takes little of the
 * time, and packing would only take memory. Half-precision weights are converted anew in each run. */
static dq_status prepare_weights(dq_op_call *call, uint32_t w, size_t *used, dq_conv_winograd *g,
                                 dq_error *err)
{
    const dq_conv_shape *s = g->shape;
    size_t point, size;
    memset(&g->form, 0, sizeof g->form); /* compared as bytes */
    if (!dq_mul_size(s->group_in, DQ_GEMM_F32_NR, &point) ||
        !dq_mul_size(row_stride(point), s->group * g->panels * POINTS * sizeof(float), &size))
        return dq_no_memory(err, SIZE_MAX, "transformed weights");
    g->form.transpose = call->kernels->transpose_x32;
    g->form.weights = call->kernels->winograd_f32->weights;
    g->form.groups = s->group;
    g->form.panels = g->panels;
    g->form.in = s->group_in;
    g->form.out = s->group_out;
    g->form.point = row_stride(point);
    if (g->pixels_first && dq_call_constant(call, w) && call->in[w]->dtype == DQ_FLOAT)
        return dq_call_pack_deferred(call, w, dq_pack_conv_winograd_f32, &g->form, sizeof g->form, size,
                                     &g->packed, err);
    const bool fits = g->per_thread ? dq_reserve_size(used, size, 1, DQ_ALIGN, &g->u_offset)
                                    : dq_call_reserve(call, size, 1, 1, &g->u_offset);
    return fits ? DQ_OK : dq_no_memory(err, SIZE_MAX, "transformed weights");
}

dq_status dq_conv_winograd_prepare(dq_op_call *call, uint32_t w, const dq_conv_float *direct,
                                   dq_conv_winograd *g, dq_error *err)
{
    const dq_conv_shape *s = direct->shape;
    const size_t direct_workspace = call->worker_scratch_size;
    size_t *per_thread = &call->worker_scratch_size, used = 0, pixels, v;
    *g = (dq_conv_winograd){.shape = s, .direct = direct};
    cut(s, dq_threads_count(call->threads), g);
    size_t cols = g->panels_per_task * DQ_GEMM_F32_NR, line = POINTS * sizeof(float);
    g->m_point = row_stride(g->tiles * cols);
    bool fits = dq_mul_size(g->tiles, g->in_padded, &v) &&
                dq_mul_size(2 * g->rows + 2, (size_t)s->window.in[1], &pixels);
    g->v_point = fits ? row_stride(v) : 0;
    fits = fits && dq_reserve_size(&used, 1, sizeof(thread_cache), DQ_ALIGN, &g->thread_cache_offset) &&
           (g->pixels_first && !g->per_thread
                ? dq_call_reserve(call, g->v_point, s->group, line, &g->v_offset)
                : dq_reserve_size(&used, g->v_point, line, DQ_ALIGN, &g->v_offset));
    if (fits)
        DQ_TRY(prepare_weights(call, w, &used, g, err));
    fits = fits && dq_reserve_size(&used, pixels, CHANNELS * sizeof(float), DQ_ALIGN, &g->image_offset) &&
           dq_add_size(used, direct_workspace, per_thread) &&
           dq_align_size(*per_thread, DQ_ALIGN, per_thread) &&
           dq_reserve_size(&used, g->m_point, line, DQ_ALIGN, &g->sums_offset) &&
           dq_reserve_size(&used, 4 * g->tiles * cols + cols, sizeof(float), DQ_ALIGN, &g->out_offset);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "transformed pixels");
    *per_thread = *per_thread > used ? *per_thread : used;
    return DQ_OK;
}

/* ---- Input transform ---------------------------------------------------------------------------------- */

/* Transforms a task's pixels in channels c … c + count - 1 of its group; count is at most CHANNELS. */
static void pixels(const job *j, const task *t, size_t c, size_t count, float *image, float *v)
{
    static const float zeros[CHANNELS];
    const dq_conv_winograd *g = j->g;
    const dq_conv_shape *s = g->shape;
    const dq_window *w = &s->window;
    const int64_t height = w->in[0], width = w->in[1];
    const int64_t top = (int64_t)(2 * t->first) - w->begin[0], bottom = top + (int64_t)(2 * t->rows) + 2;
    const int64_t low = top > 0 ? top : 0, high = bottom < height ? bottom : height;
    const float *x = j->o->x + (t->image * s->in_channels + t->group * s->group_in + c) * s->in_size;
    size_t padded = (count + DQ_FWINOGRAD_STEP - 1) / DQ_FWINOGRAD_STEP * DQ_FWINOGRAD_STEP;
    if (low < high)
        j->call->kernels->transpose_x32((const uint32_t *)(const void *)(x + low * width), s->in_size, count,
                                        (size_t)((high - low) * width), (uint32_t *)(void *)image, CHANNELS);
    v += c;
    for (size_t i = 0; i < t->tiles; i++, v += g->in_padded) {
        const float *d[POINTS];
        int64_t y0 = top + 2 * (int64_t)(i / g->across), x0 = 2 * (int64_t)(i % g->across) - w->begin[1];
        for (int p = 0; p < POINTS; p++) {
            int64_t row = y0 + p / SIDE, col = x0 + p % SIDE;
            bool inside = row >= low && row < high && col >= 0 && col < width;
            d[p] = inside ? image + ((row - low) * width + col) * CHANNELS : zeros;
        }
        j->call->kernels->winograd_f32->input(d, padded, v, g->v_point);
    }
}

/* ---- Products and output transform -------------------------------------------------------------------- */

/* Multiplies pixels and weights, point by point. The weights of a panel's points are contiguous. */
static void products(const job *j, const task *t, const float *u, float *m)
{
    const dq_conv_winograd *g = j->g;
    const size_t cols = g->panels_per_task * DQ_GEMM_F32_NR, in = g->shape->group_in, point = g->form.point;
    u += (t->group * g->panels + t->panel) * POINTS * point;
    dq_gemm_block_f32 block = {.rows = t->tiles,
                               .cols = t->panels * DQ_GEMM_F32_NR,
                               .a_row = g->in_padded,
                               .b_step = DQ_GEMM_F32_NR,
                               .b_panel = POINTS * point,
                               .c_row = cols};
    for (size_t p = 0; p < POINTS; p++)
        for (size_t c = 0; c < in; c += block.k) {
            block.k = dq_least(DEPTH, in - c);
            block.a = t->v + p * g->v_point + c;
            block.b = u + p * point + c * DQ_GEMM_F32_NR;
            block.c = m + p * g->m_point;
            block.more = c > 0;
            block.next = c + block.k < in ? block.b + block.k * DQ_GEMM_F32_NR
                         : p + 1 < POINTS ? u + (p + 1) * point
                                          : NULL;
            j->call->kernels->gemm_block_f32(&block);
        }
}

/* Writes the outputs in NHWC to `y`. Returns false if one is not finite: direct convolution must compute
 * them. */
static bool outputs(const job *j, const task *t, const float *m, float low, float high, float *y)
{
    const dq_conv_winograd *g = j->g;
    const dq_conv_shape *s = g->shape;
    const size_t width = (size_t)s->window.out[1], height = (size_t)s->window.out[0] - 2 * t->first;
    size_t cols = g->panels_per_task * DQ_GEMM_F32_NR, channel = t->panel * DQ_GEMM_F32_NR;
    float bias[PANELS_PER_TASK * DQ_GEMM_F32_NR], *beyond = y + 4 * g->tiles * cols;
    bool finite = true;
    for (size_t k = 0; k < cols; k++)
        bias[k] = j->o->bias && channel + k < s->group_out ? j->o->bias[t->group * s->group_out + channel + k]
                                                           : -0.0f;
    for (size_t i = 0; i < t->tiles && finite; i++) {
        float *to[4];
        for (size_t k = 0; k < 4; k++) {
            size_t row = i / g->across * 2 + k / 2, col = i % g->across * 2 + k % 2;
            to[k] = row < height && col < width ? y + (row * width + col) * cols : beyond;
        }
        finite = j->call->kernels->winograd_f32->output(m + i * cols, g->m_point, t->panels * DQ_GEMM_F32_NR,
                                                        bias, low, high, to);
    }
    return finite;
}

/* Applies Z, gate and activation to results in NCHW. */
static void finish(const job *j, const dq_gemm_part *part)
{
    const dq_conv_floats *o = j->o;
    const dq_conv_shape *s = j->g->shape;
    size_t first = (part->batch * s->group_out + part->row) * s->out_size + part->col;
    const dq_plane_sums sums = {first, part->rows, part->cols, s->out_size};
    dq_conv_epilogue_sums(j->call, o, &sums, NULL, !o->z && !o->finish->gate);
}

static void results(const job *j, const task *t, char *per_thread)
{
    const dq_conv_winograd *g = j->g;
    const dq_conv_shape *s = g->shape;
    const size_t width = (size_t)s->window.out[1], height = (size_t)s->window.out[0] - 2 * t->first;
    const dq_gemm_part part = {
        .batch = t->image * s->group + t->group,
        .row = t->panel * DQ_GEMM_F32_NR,
        .rows = dq_least(t->panels * DQ_GEMM_F32_NR, s->group_out - t->panel * DQ_GEMM_F32_NR),
        .col = 2 * t->first * width,
        .cols = dq_least(2 * t->rows, height) * width};
    float *y = at(per_thread, g->out_offset), low = j->o->finish->low, high = j->o->finish->high;
    if (j->o->z) {
        low = -INFINITY;
        high = INFINITY;
    }
    if (!outputs(j, t, at(per_thread, g->sums_offset), low, high, y)) {
        dq_conv_float_part(j->call, g->direct, j->o, &part, per_thread + g->sums_offset);
        return;
    }
    float *out = j->o->out + (part.batch * s->group_out + part.row) * s->out_size + part.col;
    j->call->kernels->transpose_x32((const uint32_t *)(const void *)y, g->panels_per_task * DQ_GEMM_F32_NR,
                                    part.cols, part.rows, (uint32_t *)(void *)out, s->out_size);
    finish(j, &part);
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

static task task_of(const dq_conv_winograd *g, size_t i)
{
    const size_t chunk = i % g->chunks;
    task t = {.first = g->down * chunk / g->chunks,
              .group = i / g->chunks % g->shape->group,
              .image = i / g->chunks / g->shape->group};
    t.rows = g->down * (chunk + 1) / g->chunks - t.first;
    t.tiles = t.rows * g->across;
    return t;
}

static void some_weights(const job *j, size_t begin, size_t end, float *u)
{
    const dq_winograd_f32_form *f = &j->g->form;
    for (size_t i = begin; i < end; i++)
        weights(f, j->o->w, i, u + i * POINTS * f->point);
}

/* Transforms the weights of some panels to the shared scratch. */
static void run_weights(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    some_weights(j, begin, end, at(j->call->scratch, j->g->u_offset));
}

static const float *weights_of(const job *j, char *per_thread)
{
    const dq_conv_winograd *g = j->g;
    thread_cache *h = (thread_cache *)(void *)(per_thread + g->thread_cache_offset);
    if (j->u)
        return j->u;
    if (!h->weights)
        some_weights(j, 0, g->form.groups * g->form.panels, at(per_thread, g->u_offset));
    h->weights = true;
    return at(per_thread, g->u_offset);
}

/* Computes chunks: their pixels, then all panels. */
static void run_chunks(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_winograd *g = j->g;
    const size_t in = g->shape->group_in;
    char *per_thread = dq_call_worker_scratch(j->call, worker);
    const float *u = weights_of(j, per_thread);
    for (size_t i = begin; i < end; i++) {
        task t = task_of(g, i);
        t.v = at(per_thread, g->v_offset);
        for (size_t c = 0; c < in; c += CHANNELS)
            pixels(j, &t, c, dq_least(CHANNELS, in - c), at(per_thread, g->image_offset),
                   at(per_thread, g->v_offset));
        for (; t.panel < g->panels; t.panel += t.panels) {
            t.panels = dq_least(g->panels_per_task, g->panels - t.panel);
            products(j, &t, u, at(per_thread, g->sums_offset));
            results(j, &t, per_thread);
        }
    }
}

static size_t channels_at_once(size_t in)
{
    return in < 4 * CHANNELS ? CHANNELS_CHANNELS_LAST : CHANNELS;
}

/* Transforms the pixels of the only chunk, some channels per task. */
static void run_pixels(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_winograd *g = j->g;
    const size_t in = g->shape->group_in, some = channels_at_once(in), parts = (in + some - 1) / some;
    char *per_thread = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i++) {
        const task t = task_of(g, i / parts);
        size_t c = i % parts * some;
        pixels(j, &t, c, dq_least(some, in - c), at(per_thread, g->image_offset),
               at(j->call->scratch, g->v_offset) + t.group * POINTS * g->v_point);
    }
}

/* The transformed pixels of a task that is a whole plane. */
static const float *pixels_of(const job *j, const task *t, char *per_thread)
{
    const dq_conv_winograd *g = j->g;
    thread_cache *h = (thread_cache *)(void *)(per_thread + g->thread_cache_offset);
    const size_t in = g->shape->group_in;
    if (!g->per_thread)
        return at(j->call->scratch, g->v_offset) + t->group * POINTS * g->v_point;
    for (size_t c = 0; c < in && h->groups != t->group + 1; c += CHANNELS)
        pixels(j, t, c, dq_least(CHANNELS, in - c), at(per_thread, g->image_offset),
               at(per_thread, g->v_offset));
    h->groups = t->group + 1;
    return at(per_thread, g->v_offset);
}

/* Computes panels from transformed pixels (pixels_first). */
static void run_panels(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_winograd *g = j->g;
    const size_t steps = (g->panels + g->panels_per_task - 1) / g->panels_per_task;
    char *per_thread = dq_call_worker_scratch(j->call, worker);
    const float *u = weights_of(j, per_thread);
    for (size_t i = begin; i < end; i++) {
        task t = task_of(g, i / steps);
        t.panel = i % steps * g->panels_per_task;
        t.panels = dq_least(g->panels_per_task, g->panels - t.panel);
        t.v = pixels_of(j, &t, per_thread);
        products(j, &t, u, at(per_thread, g->sums_offset));
        results(j, &t, per_thread);
    }
}

void dq_conv_winograd_run(const dq_op_call *call, const dq_conv_winograd *g, const dq_conv_floats *o)
{
    const dq_conv_shape *s = g->shape;
    const size_t some = channels_at_once(s->group_in);
    job j = {call, g, o, g->packed};
    for (unsigned i = 0; i < dq_threads_count(call->threads) && g->per_thread; i++)
        *(thread_cache *)(void *)((char *)dq_call_worker_scratch(call, i) + g->thread_cache_offset) =
            (thread_cache){0};
    if (!g->packed && !g->per_thread) {
        dq_parallel(call->threads, s->group * g->panels, 1, run_weights, &j);
        j.u = at(call->scratch, g->u_offset);
    }
    if (g->pixels_first && !g->per_thread)
        dq_parallel(call->threads, s->group * ((s->group_in + some - 1) / some), 1, run_pixels, &j);
    if (g->pixels_first)
        dq_parallel(call->threads, s->group * ((g->panels + g->panels_per_task - 1) / g->panels_per_task), 1,
                    run_panels, &j);
    else
        dq_parallel(call->threads, s->batch * s->group * g->chunks, 1, run_chunks, &j);
}
