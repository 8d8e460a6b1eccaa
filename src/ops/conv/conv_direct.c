/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/conv_direct.h"

#include "base/checked.h"
#include "ops/conv/conv_f32_algorithms.h"
#include "ops/conv/im2col_pack.h"

#include <string.h>

enum {
    MAX_GROUP_OUT = 4,           /* maximum output channels of a group, for any number of input channels */
    MAX_GROUP_CHANNELS = 6,      /* maximum output channels of a group with as many input channels */
    MAX_COPY_ELEMENTS = 1 << 15, /* maximum floats of a padded copy, unless a single row has more */
    MACS_PER_TASK = 1 << 17      /* approximate minimum of multiply-adds per task */
};

typedef struct job {
    const dq_op_call *call;
    const dq_conv_direct *r;
    const dq_conv_floats *o;
    size_t bands;
} job;

/* True if the padded length exceeds the input so much that copying padding is too expensive. */
static bool reaches_far(const dq_window *w)
{
    enum { MAX_PADDING = 4096 }; /* elements */
    for (size_t d = 0; d < w->rank; d++)
        if (((w->out[d] - 1) * w->stride[d] + dq_window_span(w, d)) / 2 > w->in[d] + MAX_PADDING)
            return true;
    return false;
}

bool dq_conv_direct_is_applicable(const dq_conv_shape *s, dq_reason *reason)
{
    if (s->group_out > MAX_GROUP_OUT &&
        (s->group_out > MAX_GROUP_CHANNELS || s->group_in > MAX_GROUP_CHANNELS))
        return dq_not_applicable(reason, "%zu output channels of %zu, expected at most %d, or %d of as many",
                                 s->group_out, s->group_in, MAX_GROUP_OUT, MAX_GROUP_CHANNELS);
    return (s->kernel_size > 0 && dq_im2col_pack_fit(&s->window) && !reaches_far(&s->window)) ||
           dq_not_applicable(reason, "windows are empty or reach too far beyond the image");
}

bool dq_conv_f32_direct_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_f32_problem *p = problem;
    if (!dq_conv_f32_is_countable(p, reason))
        return false;
    if (p->shape->kernel_size == 1)
        return dq_not_applicable(reason, "the kernel has one element");
    return dq_conv_direct_is_applicable(p->shape, reason);
}

dq_algorithm_work dq_conv_f32_direct_work(const void *problem)
{
    const dq_conv_f32_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double images = (double)s->batch,
                 rows = (double)s->out_size / (double)s->window.out[s->window.rank - 1];
    return (dq_algorithm_work){.macs = dq_conv_f32_macs(s, 1),
                               .bytes = images * (double)s->in_channels * (double)s->in_size * sizeof(float),
                               .calls = images * (double)s->out_channels * rows};
}

/* Input positions along an axis that `count` windows span. */
static size_t under(const dq_window *w, size_t d, size_t count)
{
    return (count - 1) * (size_t)w->stride[d] + (size_t)dq_window_span(w, d);
}

static void find_positions(const dq_window *w, size_t d, size_t count, dq_conv_direct *r)
{
    size_t length = under(w, d, count);
    r->step[d] = count > 1 ? (size_t)w->stride[d] : 1;
    r->positions[d] = length / r->step[d] + (length % r->step[d] != 0);
}

static void choose_band(const dq_op_call *call, dq_conv_direct *r)
{
    const dq_window *w = &r->shape->window;
    size_t out = (size_t)w->out[0], slice = 1, span = (size_t)dq_window_span(w, 0);
    for (size_t d = 1; d < w->rank; d++)
        slice *= dq_least(r->positions[d] * r->step[d], MAX_COPY_ELEMENTS);
    size_t planes = r->shape->batch * r->shape->group, expected = 2 * dq_threads_count(call->threads),
           workspace = MAX_COPY_ELEMENTS / slice;
    r->band = workspace > span ? (workspace - span) / (size_t)w->stride[0] + 1 : 1;
    if (expected > 2 && planes < expected)
        r->band = dq_least(r->band, out / expected + 1);
    r->band = dq_least(r->band, out);
    find_positions(w, 0, r->band, r);
}

/* Offset of a kernel element in the copy: in the plane of its position's remainders modulo the steps. */
static size_t tap_offset(const dq_conv_direct *r, size_t tap)
{
    const dq_window *w = &r->shape->window;
    size_t offset = 0, plane = r->plane;
    for (size_t d = w->rank; d-- > 0; tap /= (size_t)w->kernel[d]) {
        size_t at = tap % (size_t)w->kernel[d] * (size_t)w->dilation[d];
        offset += at / r->step[d] * r->pitch[d] + at % r->step[d] * plane;
        plane *= r->step[d];
    }
    return offset;
}

static bool find_sizes(const dq_conv_direct *r, size_t *copy, size_t *bytes)
{
    size_t floats = r->plane;
    for (size_t d = 0; d < r->shape->window.rank; d++)
        if (!dq_mul_size(floats, r->step[d], &floats))
            return false;
    return dq_add_size(floats, DQ_CONV_F32_SLACK, copy) && dq_mul_size(*copy, sizeof(float), bytes) &&
           dq_align_size(*bytes, DQ_ALIGN, bytes);
}

/* Gives row run `i` of a band. Returns false if it is padding for every band. */
static bool find_run(const dq_conv_direct *r, size_t i, dq_conv_run *to)
{
    const dq_window *w = &r->shape->window;
    size_t last = w->rank - 1, plane = r->plane * r->step[last], step = (size_t)w->in[last];
    bool inside = true;
    *to = (dq_conv_run){0};
    for (size_t d = last; --d > 0; step *= (size_t)w->in[d]) {
        size_t length = under(w, d, (size_t)w->out[d]), at = i % length;
        int64_t x = (int64_t)at - w->begin[d];
        i /= length;
        to->to += at / r->step[d] * r->pitch[d] + at % r->step[d] * plane;
        plane *= r->step[d];
        inside = inside && x >= 0 && x < w->in[d];
        to->from += inside ? (size_t)x * step : 0;
    }
    to->to += i * plane;
    to->x = (int64_t)i - w->begin[0];
    to->count = (under(w, 0, r->band) - i - 1) / r->step[0] + 1;
    return inside;
}

static dq_status find_runs(dq_op_call *call, dq_conv_direct *r, dq_error *err)
{
    const dq_window *w = &r->shape->window;
    size_t runs = r->step[0];
    r->run_count = 0;
    if (w->rank == 1)
        return DQ_OK;
    for (size_t d = 1; d + 1 < w->rank; d++)
        if (!dq_mul_size(runs, under(w, d, (size_t)w->out[d]), &runs))
            return dq_no_memory(err, SIZE_MAX, "padded rows");
    dq_conv_run *list = DQ_NEW_ARRAY(call->arena, runs, dq_conv_run);
    if (!list)
        return dq_no_memory(err, runs * sizeof *list, "padded rows");
    for (size_t i = 0; i < runs; i++)
        r->run_count += find_run(r, i, &list[r->run_count]);
    r->runs = list;
    return DQ_OK;
}

dq_status dq_conv_direct_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_conv_direct *r,
                                 dq_error *err)
{
    const dq_window *w = &shape->window;
    size_t *offsets = dq_arena_alloc(call->arena, shape->kernel_size * sizeof *offsets, sizeof *offsets),
           bytes;
    if (!offsets)
        return dq_no_memory(err, shape->kernel_size * sizeof *offsets, "offsets of the kernel");
    *r = (dq_conv_direct){.shape = shape, .offsets = offsets, .plane = 1};
    if (shape->out_size == 0)
        return DQ_OK;
    for (size_t d = 1; d < w->rank; d++)
        find_positions(w, d, (size_t)w->out[d], r);
    choose_band(call, r);
    for (size_t d = w->rank; d-- > 0;) {
        r->pitch[d] = r->plane;
        if (!dq_mul_size(r->plane, r->positions[d], &r->plane))
            return dq_no_memory(err, SIZE_MAX, "padded rows");
    }
    if (!find_sizes(r, &r->copy, &bytes))
        return dq_no_memory(err, SIZE_MAX, "padded rows");
    for (size_t t = 0; t < shape->kernel_size; t++)
        offsets[t] = tap_offset(r, t);
    call->worker_scratch_size = bytes;
    return find_runs(call, r, err);
}

/* ---- Padded copy -------------------------------------------------------------------------------------- */

/* The positions of one remainder along the last axis that are inside the image: `count` of them from `begin`
 * on in the copy, from position `from` on at stride `step` in the image. */
typedef struct span {
    size_t begin, count, from, step;
} span;

/* ceil(x / step), or 0 for x <= 0. */
static int64_t up_to(int64_t x, int64_t step)
{
    return x <= 0 ? 0 : (x - 1) / step + 1;
}

static span find_span(const dq_conv_direct *r, size_t remainder, size_t first)
{
    const dq_window *w = &r->shape->window;
    size_t last = w->rank - 1;
    int64_t step = (int64_t)r->step[last], positions = (int64_t)r->positions[last];
    int64_t shift = (int64_t)remainder - w->begin[last] + (last ? 0 : (int64_t)first * w->stride[0]);
    int64_t begin = up_to(-shift, step), end = up_to(w->in[last] - shift, step);
    begin = begin < positions ? begin : positions;
    end = end < positions ? end : positions;
    return (span){(size_t)begin, end > begin ? (size_t)(end - begin) : 0, (size_t)(begin * step + shift),
                  (size_t)step};
}

/* A strided 2-D copy from an input plane to the padded copy. */
typedef struct rows_copy {
    size_t from, from_row, step, to, to_row, rows, count;
} rows_copy;

/* The copy for a run. `size`: stride of the image's first axis, in elements. */
static rows_copy copy_of(const dq_conv_direct *r, const dq_conv_run *run, const span *s, size_t size,
                         size_t first)
{
    const dq_window *w = &r->shape->window;
    int64_t x = run->x + (int64_t)first * w->stride[0], step = (int64_t)r->step[0];
    size_t begin = (size_t)up_to(-x, step), end = (size_t)up_to(w->in[0] - x, step);
    end = dq_least(end, run->count);
    return (rows_copy){.from = (size_t)(x + (int64_t)begin * step) * size + run->from + s->from,
                       .from_row = r->step[0] * size,
                       .step = s->step,
                       .to = run->to + begin * r->pitch[0] + s->begin,
                       .to_row = r->pitch[0],
                       .rows = begin < end ? end - begin : 0,
                       .count = s->count};
}

/* Up to this many 2-D copies, those of a band are listed once for all its planes. */
enum { COPIES = 4 };

typedef struct band {
    size_t first, count;
    bool found; /* copies are listed; otherwise they are computed for each plane */
    size_t copy_count;
    rows_copy copies[COPIES];
    dq_conv_f32_rows plane; /* kernel arguments for the last two axes that all channels share */
    size_t planes;          /* output planes over the last two axes */
} band;

typedef void copy_fn(void *arg, const rows_copy *c);

static __attribute__((noinline)) void each_copy(const dq_conv_direct *r, size_t first, copy_fn *f, void *arg)
{
    const dq_window *w = &r->shape->window;
    if (r->shape->in_size == 0) /* all is padding */
        return;
    size_t last = w->rank - 1, size = r->shape->in_size / (size_t)w->in[0];
    for (size_t q = 0; q < r->step[last]; q++) {
        const span s = find_span(r, q, first);
        const rows_copy line = {.from = s.from,
                                .from_row = 0,
                                .step = s.step,
                                .to = s.begin,
                                .to_row = 0,
                                .rows = 1,
                                .count = s.count};
        for (size_t i = 0; i < (last ? r->run_count : 1) && s.count; i++) {
            rows_copy c = last ? copy_of(r, &r->runs[i], &s, size, first) : line;
            c.to += q * r->plane;
            f(arg, &c);
        }
    }
}

static void keep_copy(void *arg, const rows_copy *c)
{
    band *b = arg;
    b->copies[b->copy_count++] = *c;
}

/* Output positions of the band along an axis. */
static size_t length_of(const dq_conv_direct *r, const band *b, size_t axis)
{
    return axis ? (size_t)r->shape->window.out[axis] : b->count;
}

static void find_planes(const dq_conv_direct *r, band *b)
{
    const dq_conv_shape *s = r->shape;
    const dq_window *w = &s->window;
    const size_t last = w->rank - 1, n = length_of(r, b, last);
    const bool regular = last && r->step[last - 1] == 1 && w->dilation[last - 1] == 1 &&
                         s->kernel_size == (size_t)(w->kernel[last] * w->kernel[last - 1]);
    b->plane = (dq_conv_f32_rows){.offsets = r->offsets,
                                  .taps = s->kernel_size,
                                  .across = regular ? (size_t)w->kernel[last] : 0,
                                  .rows = last ? length_of(r, b, last - 1) : 1,
                                  .n = n,
                                  .x_row = last ? r->pitch[last - 1] : 0,
                                  .y_row = n};
    b->planes = 1;
    for (size_t d = 0; d + 1 < last; d++)
        b->planes *= length_of(r, b, d);
}

static band find_band(const dq_conv_direct *r, size_t first)
{
    const dq_window *w = &r->shape->window;
    const size_t last = w->rank - 1, count = dq_least(r->band, (size_t)w->out[0] - first);
    band b = {.first = first, .count = count};
    find_planes(r, &b);
    b.found = (last ? r->run_count : 1) <= COPIES / r->step[last];
    if (b.found)
        each_copy(r, first, keep_copy, &b);
    return b;
}

typedef struct copier {
    dq_copy_strided_f32_fn *every;
    const float *plane;
    float *copy;
} copier;

static void make_copy(void *arg, const rows_copy *c)
{
    const copier *m = arg;
    if (c->rows)
        m->every(m->plane + c->from, c->from_row, c->step, c->rows, c->count, m->copy + c->to, c->to_row);
}

/* Copies the input plane that a band's windows read. `clean`: the padding is already zero, since the previous
 * copy had the same layout. */
static void copy_band(const dq_conv_direct *r, const band *b, bool clean, copier *m)
{
    if (!clean)
        memset(m->copy, 0, r->copy * sizeof *m->copy);
    if (!b->found)
        each_copy(r, b->first, make_copy, m);
    for (size_t i = 0; i < b->copy_count; i++)
        make_copy(m, &b->copies[i]);
}

/* ---- Sums --------------------------------------------------------------------------------------------- */

/* Accumulates one input channel into one output channel of the band. */
static void sums(const job *j, const band *b, const float *copy, size_t in, size_t channel, float *out)
{
    const dq_conv_direct *r = j->r;
    const dq_conv_shape *s = r->shape;
    const dq_conv_epilogue *to = j->o->finish;
    const size_t last = s->window.rank - 1;
    dq_conv_f32_rows f = b->plane;
    f.w = j->o->w + (channel * s->group_in + in) * s->kernel_size;
    f.y = out;
    f.more = in > 0;
    f.last = in + 1 == s->group_in && !j->o->z;
    f.bias = j->o->bias ? j->o->bias[channel] : -0.0f;
    f.low = to->low;
    f.high = to->high;
    f.gate = to->gate;
    for (size_t i = 0; i < b->planes; i++, f.y += f.rows * f.n) {
        size_t at = 0, rest = i;
        for (size_t d = last ? last - 1 : 0; d-- > 0; rest /= length_of(r, b, d))
            at += rest % length_of(r, b, d) * r->pitch[d];
        f.x = copy + at;
        j->call->kernels->conv_direct_f32(&f);
    }
}

static void finish(const job *j, size_t channel, size_t at, size_t n)
{
    const dq_conv_floats *o = j->o;
    const dq_plane_sums sums = {at, 1, n, n};
    if (o->z || o->finish->fn)
        dq_conv_epilogue_sums(j->call, o, &sums, o->bias ? o->bias + channel : NULL, !o->z);
}

/* A task item is a band of all output channels of a group of an image. */
static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_direct *r = j->r;
    const dq_conv_shape *s = r->shape;
    float *copy = dq_call_worker_scratch(j->call, worker);
    const size_t band_size = s->out_size / (size_t)s->window.out[0];
    copier m = {.every = j->call->kernels->copy_strided_f32, .copy = copy};
    band b;
    for (size_t i = begin; i < end; i++) {
        const size_t of = i / j->bands, first = (i - of * j->bands) * r->band, group = of % s->group;
        const bool clean = i > begin && j->bands == 1;
        if (!clean)
            b = find_band(r, first);
        const size_t at = (of * s->group_out) * s->out_size + first * band_size;
        for (size_t c = 0; c < s->group_in; c++) {
            m.plane = j->o->x + (of * s->group_in + c) * s->in_size;
            copy_band(r, &b, clean || (c > 0 && j->bands == 1), &m);
            for (size_t out = 0; out < s->group_out; out++)
                sums(j, &b, copy, c, group * s->group_out + out, j->o->out + at + out * s->out_size);
        }
        for (size_t out = 0; out < s->group_out; out++)
            finish(j, group * s->group_out + out, at + out * s->out_size, b.count * band_size);
    }
}

void dq_conv_direct_run(const dq_op_call *call, const dq_conv_direct *r, const dq_conv_floats *o)
{
    const dq_conv_shape *s = r->shape;
    size_t out = (size_t)s->window.out[0];
    job j = {call, r, o, out / r->band + (out % r->band != 0)};
    size_t work = s->group_out * s->group_in * s->kernel_size * r->band * (s->out_size / out);
    dq_parallel(call->threads, s->batch * s->group * j.bands, MACS_PER_TASK / (work + 1) + 1, piece, &j);
}
