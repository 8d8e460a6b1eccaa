/* SPDX-License-Identifier: Apache-2.0 */
/* 1-D Winograd F(2,3). A strip is some tiles of a row. For each input line, element e of all tiles of the
 * strip is gathered to a contiguous vector, for every e; these vectors are transformed to panels. A GEMM with
 * the transformed weights gives a row of sums for each output channel and point. The outputs are then
 * transformed and scattered to their row. */
#include "ops/conv/winograd_1d.h"

#include "base/checked.h"
#include "ops/conv/conv_f32_algorithms.h"
#include "ops/packers.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = 4,
    MAX_TAPS = 15,
    MAX_TILES = 160,   /* maximum tiles of a strip */
    LEAST_TILES = 64,  /* minimum tiles of a strip */
    SUMS = 128 * 1024, /* floats of a strip's sums, which limit its tiles so that they stay in L2 */
    AHEAD = 4,         /* prefetch distance in rows */
    STEPS = 256        /* KC: steps of a GEMM block; a panel of this depth stays in L1 */
};

typedef struct job {
    const dq_op_call *call;
    const dq_winograd_1d *g;
    const dq_conv_floats *o;
    const float *u;
} job;

/* Some tiles of a row. */
typedef struct task {
    size_t batch, first, count; /* batch: image and group */
    size_t offset;              /* position of the first output of the first tile in its row */
    bool whole;                 /* the strip has all outputs from its first to its last */
} task;

static size_t pieces(size_t n, size_t each)
{
    return n / each + (n % each != 0);
}

static float *at(void *workspace, size_t offset)
{
    return (float *)(void *)((char *)workspace + offset);
}

/* The row's axis: axes after it have a single element. */
static size_t axis_of(const dq_window *w)
{
    size_t d = w->rank - 1;
    while (d > 0 && w->in[d] == 1 && w->out[d] == 1 && w->kernel[d] == 1)
        d--;
    return d;
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

static size_t tiles_of(size_t row, size_t pair_distance)
{
    const size_t whole = row / 2 / pair_distance * pair_distance;
    return whole + dq_least(row - 2 * whole, pair_distance);
}

bool dq_conv_f32_winograd_1d_is_applicable(const void *problem, dq_reason *reason)
{
    enum { LEAST_LINES = 16, LEAST_OUT = 32, LEAST_ROW = 96 };
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const dq_window *w = &s->window;
    const size_t axis = axis_of(w), row = (size_t)w->out[axis], taps = (size_t)w->kernel[axis];
    const size_t lines = taps ? s->group_in * (s->kernel_size / taps) : 0;
    if (!dq_conv_f32_is_countable(p, reason))
        return false;
    if (w->stride[axis] != 1 || taps < 3 || taps > MAX_TAPS)
        return dq_not_applicable(reason, "kernel %zu at stride %d, expected 3 to %d at stride 1", taps,
                                 (int)w->stride[axis], MAX_TAPS);
    for (size_t d = 0; d < axis; d++)
        if (w->out[d] != 1 || w->begin[d] != 0 || dq_window_span(w, d) > w->in[d])
            return dq_not_applicable(reason, "the image has more than one row of results");
    if (row < LEAST_ROW || s->group_out < LEAST_OUT || lines < LEAST_LINES)
        return dq_not_applicable(reason,
                                 "%zu by %zu channels and rows of %zu, expected at least %d, %d and %d",
                                 lines, s->group_out, row, LEAST_LINES, LEAST_OUT, LEAST_ROW);
    return tiles_of(row, (size_t)w->dilation[axis]) <= row / 5 * 3 ||
           dq_not_applicable(reason, "dilation %d leaves tiles of single results", (int)w->dilation[axis]);
}

/* F(2,3): two outputs of three taps take 4 multiply-adds instead of 6. */
dq_algorithm_work dq_conv_f32_winograd_1d_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double results = (double)s->batch * (double)s->out_channels * (double)s->out_size;
    return (dq_algorithm_work){.macs = dq_conv_f32_macs(s, DQ_GEMM_F32_NR) * 2 / 3,
                               .bytes = 2 * results * sizeof(float) +
                                        2 * (double)s->batch * (double)(s->in_channels * s->in_size) *
                                            sizeof(float),
                               .calls = results / DQ_GEMM_F32_NR};
}

static void cut(const dq_op_call *call, dq_winograd_1d *g)
{
    const dq_conv_shape *s = g->shape;
    const dq_window *w = &s->window;
    const size_t axis = axis_of(w), threads = dq_threads_count(call->threads);
    dq_winograd_1d_weights *f = &g->form;
    memset(f, 0, sizeof *f); /* compared as bytes */
    f->groups = s->group;
    f->out = s->group_out;
    f->taps = (size_t)w->kernel[axis];
    f->lines = s->group_in * (s->kernel_size / f->taps);
    f->pieces = (f->taps + 2) / 3;
    f->threes = f->taps - 2 * f->pieces;
    g->some = dq_least(STEPS / f->pieces, f->lines);
    g->pair_distance = (size_t)w->dilation[axis];
    g->row = (size_t)w->out[axis];
    g->in = w->in[axis];
    g->begin = w->begin[axis];
    g->tiles = tiles_of(g->row, g->pair_distance);
    const size_t most = dq_least(SUMS / POINTS / f->out, MAX_TILES);
    g->strips = pieces(g->tiles, most < LEAST_TILES ? LEAST_TILES : most);
    if (s->batch * s->group * g->strips < threads)
        g->strips = threads;
    g->strip = pieces(pieces(g->tiles, g->strips), DQ_GEMM_F32_NR) * DQ_GEMM_F32_NR;
    g->strips = pieces(g->tiles, g->strip);
}

static dq_status find_starts(dq_op_call *call, dq_winograd_1d *g, dq_error *err)
{
    const dq_window *w = &g->shape->window;
    const size_t count = g->shape->kernel_size / g->form.taps;
    size_t *starts = DQ_NEW_ARRAY(call->arena, count, size_t);
    if (!starts)
        return dq_no_memory(err, count * sizeof *starts, "offsets of the kernel");
    for (size_t i = 0; i < count; i++) {
        size_t d = axis_of(w), rest = i, step = (size_t)g->in;
        starts[i] = 0;
        for (; d-- > 0; step *= (size_t)w->in[d]) {
            starts[i] += rest % (size_t)w->kernel[d] * (size_t)w->dilation[d] * step;
            rest /= (size_t)w->kernel[d];
        }
    }
    g->starts = starts;
    return DQ_OK;
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Steps of an output channel at a point; and offset of the point in the weights of a group. */
static size_t steps_of(const dq_winograd_1d_weights *f, size_t point)
{
    return f->lines * (point == 2 ? f->threes : f->pieces);
}

static size_t point_of(const dq_winograd_1d_weights *f, size_t point)
{
    return f->out * (point * steps_of(f, 0) - (point == 3 ? steps_of(f, 0) - steps_of(f, 2) : 0));
}

/* Transforms the weights of output channel `i`, counted over all groups. */
static void weights(const dq_winograd_1d_weights *f, const float *w, size_t i, float *u)
{
    float *to[POINTS];
    w += i * f->lines * f->taps;
    u += i / f->out * point_of(f, POINTS);
    for (size_t p = 0; p < POINTS; p++)
        to[p] = u + point_of(f, p) + i % f->out * steps_of(f, p);
    for (size_t l = 0; l < f->lines; l++)
        for (size_t q = 0; q < f->pieces; q++) {
            const bool three = q < f->threes;
            const float sum = three ? w[0] + w[2] : w[0] + w[1];
            *to[0]++ = w[0];
            *to[1]++ = three ? (sum + w[1]) * 0.5f : sum;
            if (three)
                *to[2]++ = (sum - w[1]) * 0.5f;
            *to[3]++ = w[three ? 2 : 1];
            w += three ? 3 : 2;
        }
}

void dq_pack_winograd_1d_f32(void *packed, const dq_tensor *from, const void *key)
{
    const dq_winograd_1d_weights *f = key;
    for (size_t i = 0; i < f->groups * f->out; i++)
        weights(f, dq_data(from, float), i, packed);
}

static dq_status prepare_weights(dq_op_call *call, uint32_t w, dq_winograd_1d *g, dq_error *err)
{
    const dq_winograd_1d_weights *f = &g->form;
    size_t size;
    if (!dq_mul_size(f->lines * f->out, POINTS * f->pieces * sizeof(float), &size) ||
        !dq_mul_size(point_of(f, POINTS) * sizeof(float), f->groups, &size))
        return dq_no_memory(err, SIZE_MAX, "transformed weights");
    if (dq_call_constant(call, w) && call->in[w]->dtype == DQ_FLOAT)
        return dq_call_pack_deferred(call, w, dq_pack_winograd_1d_f32, f, sizeof *f, size, &g->packed, err);
    return dq_call_reserve(call, size, 1, 1, &g->u_offset)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "transformed weights");
}

dq_status dq_winograd_1d_prepare(dq_op_call *call, uint32_t w, const dq_conv_float *direct, dq_winograd_1d *g,
                                 dq_error *err)
{
    enum { ODD_LINE = 16 }; /* floats of a cache line */
    const dq_conv_shape *s = direct->shape;
    size_t used = 0;
    *g = (dq_winograd_1d){.shape = s, .direct = direct};
    cut(call, g);
    DQ_TRY(find_starts(call, g, err));
    g->m_point = g->strip * s->group_out + ODD_LINE; /* points fall into different sets of L1 */
    if (!dq_call_reserve(call, s->batch * s->group, g->strips, 1, &g->odd_offset) ||
        !dq_reserve_size(&used, (g->form.taps + 1) * g->strip, sizeof(float), DQ_ALIGN, &g->row_offset) ||
        !dq_reserve_size(&used, POINTS * g->some * g->form.pieces * g->strip, sizeof(float), DQ_ALIGN,
                         &g->v_offset) ||
        !dq_reserve_size(&used, g->m_point, POINTS * sizeof(float), DQ_ALIGN, &g->m_offset))
        return dq_no_memory(err, SIZE_MAX, "transformed rows");
    if (call->worker_scratch_size < used)
        call->worker_scratch_size = used;
    return prepare_weights(call, w, g, err);
}

/* Prefetches `taps` elements of each tile of a strip in a row of input or output. */
static void fetch(const dq_winograd_1d *g, const task *t, const float *row, size_t taps)
{
    enum { LINE = 16 }; /* floats of a cache line */
    const bool dense = g->pair_distance < g->strip;
    const size_t length = dense ? 2 * t->count + (taps - 2) * g->pair_distance : t->count;
    row += t->offset;
    for (size_t i = 0; i < (dense ? 1 : taps); i++, row += g->pair_distance)
        for (size_t k = 0; k < length; k += LINE)
            __builtin_prefetch(row + k);
}

/* ---- Input transform ---------------------------------------------------------------------------------- */

/* Copies `count` segments of n floats at strides x_step and y_step. */
static inline __attribute__((always_inline)) void equal_segments(const float *x, size_t x_step, float *y,
                                                                 size_t y_step, size_t n, size_t count)
{
    for (; count; count--, x += x_step, y += y_step)
        memcpy(y, x, n * sizeof *y);
}

/* The same; short segments have constant lengths, which compile to one or two instructions. */
static __attribute__((noinline)) void spans(const float *x, size_t x_step, float *y, size_t y_step, size_t n,
                                            size_t count)
{
    if (n == 1)
        equal_segments(x, x_step, y, y_step, 1, count);
    else if (n == 2)
        equal_segments(x, x_step, y, y_step, 2, count);
    else if (n == 4)
        equal_segments(x, x_step, y, y_step, 4, count);
    else if (n == 8)
        equal_segments(x, x_step, y, y_step, 8, count);
    else
        equal_segments(x, x_step, y, y_step, n, count);
}

/* Copies every second element from x[from] on. Padding, and positions after the row, are zeros. */
static void copy_stride2(const job *j, const float *x, int64_t from, size_t count, float *to)
{
    const int64_t n = (int64_t)count, in = j->g->in, begin = from < 0 ? (1 - from) / 2 : 0;
    int64_t end = in > from ? (in - from + 1) / 2 : 0;
    end = end < n ? end : n;
    memset(to, 0, j->g->strip * sizeof *to);
    if (begin < end)
        j->call->kernels->copy_strided_f32(x + from + 2 * begin, 0, 2, 1, (size_t)(end - begin), to + begin,
                                           0);
}

/* Gathers element `e` of all tiles of a strip from an input line. */
static void gather_element(const job *j, const task *t, const float *x, size_t e, float *to)
{
    const size_t pair_distance = j->g->pair_distance;
    const int64_t in = j->g->in, shift = (int64_t)(e * pair_distance) - j->g->begin;
    const int64_t from = (int64_t)t->offset + shift;
    if (pair_distance == 1) {
        copy_stride2(j, x, from, t->count, to);
        return;
    }
    if (t->whole && from >= 0 && from + 2 * (int64_t)t->count - (int64_t)pair_distance <= in) {
        memset(to + t->count, 0, (j->g->strip - t->count) * sizeof *to);
        spans(x + from, 2 * pair_distance, to, pair_distance, pair_distance, t->count / pair_distance);
        return;
    }
    memset(to, 0, j->g->strip * sizeof *to);
    for (size_t i = 0, n; i < t->count; i += n) {
        const size_t tile = t->first + i, off = tile % pair_distance;
        const int64_t offset = (int64_t)(2 * tile - off) + shift;
        n = dq_least(pair_distance - off, t->count - i);
        const int64_t begin = offset < 0 ? -offset : 0, left = in - offset;
        const int64_t end = left < (int64_t)n ? left : (int64_t)n;
        if (begin < end)
            memcpy(to + i + begin, x + offset + begin, (size_t)(end - begin) * sizeof *to);
    }
}

/* Transforms input lines line … line + count - 1 of a strip. */
static void lines(const job *j, const task *t, size_t line, size_t count, float *row, float *v)
{
    const dq_winograd_1d *g = j->g;
    const dq_conv_shape *s = g->shape;
    const size_t each = s->kernel_size / g->form.taps, panel = g->some * g->form.pieces * DQ_GEMM_F32_NR;
    const size_t point = panel / DQ_GEMM_F32_NR * g->strip;
    const float *x = j->o->x + t->batch * s->group_in * s->in_size;
    float *to[POINTS] = {v, v + point, v + 2 * point, v + 3 * point};
    for (size_t l = line; l < line + count; l++) {
        const size_t next = dq_least(l + AHEAD, g->form.lines - 1);
        const float *from = x + l / each * s->in_size + g->starts[l % each];
        fetch(g, t, x + next / each * s->in_size + g->starts[next % each], g->form.taps + 1);
        for (size_t i = 0; i <= g->form.taps; i++)
            gather_element(j, t, from, i, row + i * g->strip);
        for (size_t q = 0, tap = 0; q < g->form.pieces; q++) {
            const size_t taps = q < g->form.threes ? 3 : 2;
            j->call->kernels->winograd_f32->line(row + tap * g->strip, g->strip, g->strip / DQ_GEMM_F32_NR,
                                                 taps, to, panel);
            for (size_t p = 0; p < POINTS; p++)
                to[p] += taps == 2 && p == 2 ? 0 : DQ_GEMM_F32_NR;
            tap += taps;
        }
    }
}

/* ---- Products and output transform -------------------------------------------------------------------- */

static void products(const job *j, const task *t, size_t line, size_t count, const float *v, float *m)
{
    const dq_winograd_1d *g = j->g;
    const dq_winograd_1d_weights *f = &g->form;
    const size_t panel = g->some * f->pieces * DQ_GEMM_F32_NR, point = panel / DQ_GEMM_F32_NR * g->strip;
    const float *u = j->u + t->batch % f->groups * point_of(f, POINTS);
    for (size_t p = 0; p < POINTS; p++) {
        const size_t steps = steps_of(f, p) / f->lines;
        const dq_gemm_block_f32 block = {.rows = f->out,
                                         .cols = g->strip,
                                         .k = count * steps,
                                         .a = u + point_of(f, p) + line * steps,
                                         .a_row = steps_of(f, p),
                                         .b = v + p * point,
                                         .b_step = DQ_GEMM_F32_NR,
                                         .b_panel = panel,
                                         .next = p + 1 < POINTS ? v + (p + 1) * point : NULL,
                                         .c = m + p * g->m_point,
                                         .c_row = g->strip,
                                         .more = line > 0};
        j->call->kernels->gemm_block_f32(&block);
    }
}

/* Scatters the outputs of a strip to their row: the first ones of the tiles are at y[0 …], the second ones at
 * y[strip …]. */
static void scatter_outputs(const dq_winograd_1d *g, const task *t, const float *y, float *out)
{
    const size_t pair_distance = g->pair_distance, row = g->row, count = t->count;
    const float *z = y + g->strip;
    if (t->whole && t->offset + 2 * count <= row) {
        out += t->offset;
        spans(y, pair_distance, out, 2 * pair_distance, pair_distance, count / pair_distance);
        spans(z, pair_distance, out + pair_distance, 2 * pair_distance, pair_distance, count / pair_distance);
        return;
    }
    for (size_t i = 0, n; i < count; i += n) {
        const size_t tile = t->first + i, off = tile % pair_distance, to = 2 * tile - off,
                     second = to + pair_distance;
        n = dq_least(pair_distance - off, count - i);
        memcpy(out + to, y + i, dq_least(n, row - to) * sizeof *out);
        if (second < row)
            memcpy(out + second, z + i, dq_least(n, row - second) * sizeof *out);
    }
}

/* Writes the outputs of a strip. Returns false if one is not finite. */
static bool outputs(const job *j, const task *t, const float *m, float *y)
{
    const dq_winograd_1d *g = j->g;
    const dq_conv_floats *o = j->o;
    const size_t out = g->form.out, row = g->row;
    const bool bounds = !o->z;
    bool finite = true;
    for (size_t i = 0; i < out && finite; i++) {
        const size_t channel = t->batch % g->form.groups * out + i;
        fetch(g, t, o->out + (t->batch * out + dq_least(i + AHEAD, out - 1)) * row, 2);
        finite = j->call->kernels->winograd_f32->line_output(
            m + i * g->strip, g->m_point, g->strip, o->bias ? o->bias[channel] : -0.0f,
            bounds ? o->finish->low : -INFINITY, bounds ? o->finish->high : INFINITY, y);
        scatter_outputs(g, t, y, o->out + (t->batch * out + i) * row);
    }
    return finite;
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

static void run_weights(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        weights(&j->g->form, j->o->w, i, at(j->call->scratch, j->g->u_offset));
}

static void run_strips(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_winograd_1d *g = j->g;
    char *own = dq_call_worker_scratch(j->call, worker);
    float *row = at(own, g->row_offset), *v = at(own, g->v_offset), *m = at(own, g->m_offset);
    for (size_t i = begin; i < end; i++) {
        const size_t first = i % g->strips * g->strip;
        const size_t count = dq_least(g->strip, g->tiles - first), off = first % g->pair_distance;
        const task t = {i / g->strips, first, count, 2 * first - off,
                        off == 0 && count % g->pair_distance == 0};
        for (size_t line = 0; line < g->form.lines; line += g->some) {
            const size_t some = dq_least(g->some, g->form.lines - line);
            lines(j, &t, line, some, row, v);
            products(j, &t, line, some, v, m);
        }
        ((bool *)j->call->scratch)[g->odd_offset + i] = !outputs(j, &t, m, row);
    }
}

/* Applies Z, gate and activation to whole rows. */
static void run_rest(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const dq_conv_floats *o = j->o;
    const size_t row = j->g->row;
    const dq_plane_sums sums = {begin * row, end - begin, row, row};
    dq_conv_epilogue_sums(j->call, o, &sums, NULL, !o->z && !o->finish->gate);
}

void dq_winograd_1d_run(const dq_op_call *call, const dq_winograd_1d *g, const dq_conv_floats *o)
{
    const dq_conv_shape *s = g->shape;
    const size_t count = s->batch * s->group * g->strips;
    const bool *odd = (const bool *)call->scratch + g->odd_offset;
    job j = {call, g, o, g->packed ? g->packed : at(call->scratch, g->u_offset)};
    if (!g->packed)
        dq_parallel(call->threads, s->group * s->group_out, 8, run_weights, &j);
    dq_parallel(call->threads, count, 1, run_strips, &j);
    for (size_t i = 0; i < count; i++)
        if (odd[i]) {
            dq_conv_float_run(call, g->direct, o);
            return;
        }
    if (o->z || o->finish->gate || o->finish->fn)
        dq_parallel(call->threads, s->batch * s->out_channels, 8, run_rest, &j);
}
