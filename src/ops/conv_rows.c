#include "ops/conv_rows.h"

#include "base/checked.h"
#include "ops/conv_panels.h"

#include <string.h>

enum {
    FEW = 4,
    COPY = 1 << 15, /* elements of a padded copy, at most, unless a single row has more */
    WORK = 1 << 17, /* products of a piece of parallel work, at least about */
    ALIGN = 64
};

typedef struct job {
    const dq_op_call *call;
    const dq_conv_rows *r;
    const dq_conv_floats *o;
    size_t bands;
} job;

/* Padding is copied too. */
static bool reaches_far(const dq_window *w)
{
    enum { FAR = 4096 };
    for (size_t d = 0; d < w->rank; d++)
        if (((w->out[d] - 1) * w->stride[d] + dq_window_span(w, d)) / 2 > w->in[d] + FAR)
            return true;
    return false;
}

bool dq_conv_rows_suits(const dq_conv_shape *s)
{
    return s->group_out < FEW && s->kernel_size > 1 && dq_conv_panels_suits(&s->window) &&
           !reaches_far(&s->window);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Input places along an axis under `count` windows. */
static size_t under(const dq_window *w, size_t d, size_t count)
{
    return (count - 1) * (size_t)w->stride[d] + (size_t)dq_window_span(w, d);
}

/* Elements of the copy for one place along the first axis. */
static size_t slice(const dq_conv_rows *r)
{
    size_t size = 1;
    for (size_t d = 1; d < r->shape->window.rank; d++)
        size *= r->padded[d];
    return size;
}

static void choose_band(const dq_op_call *call, dq_conv_rows *r)
{
    const dq_window *w = &r->shape->window;
    size_t out = (size_t)w->out[0], room = COPY / slice(r), span = (size_t)dq_window_span(w, 0);
    size_t planes = r->shape->batch * r->shape->group, wanted = 2 * dq_threads_count(call->threads);
    r->band = room > span ? (room - span) / (size_t)w->stride[0] + 1 : 1;
    if (wanted > 2 && planes < wanted)
        r->band = least(r->band, out / wanted + 1);
    r->band = least(r->band, out);
    r->padded[0] = under(w, 0, r->band);
}

dq_status dq_conv_rows_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_conv_rows *r, dq_error *err)
{
    const dq_window *w = &shape->window;
    size_t *offsets = dq_arena_alloc(call->arena, shape->kernel_size * sizeof *offsets, sizeof *offsets),
           bytes;
    if (!offsets)
        return dq_no_memory(err, shape->kernel_size * sizeof *offsets, "places of the kernel");
    *r = (dq_conv_rows){.shape = shape, .offsets = offsets};
    if (shape->out_size == 0)
        return DQ_OK;
    for (size_t d = 1; d < w->rank; d++)
        r->padded[d] = under(w, d, (size_t)w->out[d]);
    choose_band(call, r);
    for (size_t t = 0; t < shape->kernel_size; t++) {
        size_t rest = t, step = 1;
        offsets[t] = 0;
        for (size_t d = w->rank; d-- > 0; rest /= (size_t)w->kernel[d]) {
            offsets[t] += rest % (size_t)w->kernel[d] * (size_t)w->dilation[d] * step;
            step *= r->padded[d];
        }
    }
    if (!dq_mul_size(r->padded[0], slice(r), &bytes) || !dq_add_size(bytes, DQ_FCONV_SLACK, &bytes) ||
        !dq_mul_size(bytes, sizeof(float), &bytes) || !dq_align_size(bytes, ALIGN, &bytes))
        return dq_no_memory(err, SIZE_MAX, "padded rows");
    call->worker_scratch_size = bytes;
    return DQ_OK;
}

/* A row of the copy from a row of the image (NULL: padding). What stands around the image is zero already
 * when the copy before had the same places. */
static void copy_row(const dq_window *w, const float *from, size_t n, bool clean, float *to)
{
    size_t last = w->rank - 1, begin = least((size_t)w->begin[last], n), in = (size_t)w->in[last];
    size_t count = least(in, n - begin);
    if (!clean)
        memset(to, 0, n * sizeof *to);
    if (from)
        memcpy(to + begin, from, count * sizeof *to);
}

/* The plane under `count` places from `first` on along the first axis. */
static void copy_plane(const dq_conv_rows *r, const float *plane, size_t first, size_t count, bool clean,
                       float *to)
{
    const dq_window *w = &r->shape->window;
    size_t last = w->rank - 1, n = last ? r->padded[last] : under(w, 0, count), rows = 1;
    for (size_t d = 0; d < last; d++)
        rows *= d ? r->padded[d] : under(w, 0, count);
    for (size_t row = 0; row < rows; row++, to += n) {
        size_t rest = row, offset = 0, step = (size_t)w->in[last];
        bool inside = true;
        for (size_t d = last; d-- > 0;) {
            size_t length = d ? r->padded[d] : under(w, 0, count);
            int64_t x = (int64_t)(rest % length) - w->begin[d] + (d ? 0 : (int64_t)first * w->stride[0]);
            inside = inside && x >= 0 && x < w->in[d];
            offset += inside ? (size_t)x * step : 0;
            step *= (size_t)w->in[d];
            rest /= length;
        }
        copy_row(w, inside ? plane + offset : NULL, n, clean, to);
    }
}

/* Without outer axes the band cuts the row itself: its windows begin further on. */
static void copy_band(const dq_conv_rows *r, const float *plane, size_t first, size_t count, bool clean,
                      float *to)
{
    const dq_window *w = &r->shape->window;
    if (w->rank > 1) {
        copy_plane(r, plane, first, count, clean, to);
        return;
    }
    int64_t from = (int64_t)first * w->stride[0] - w->begin[0];
    for (size_t i = 0, n = under(w, 0, count); i < n; i++, from++)
        to[i] = from >= 0 && from < w->in[0] ? plane[from] : 0;
}

/* The band's sums over one input channel, of one output channel. */
static void sums(const job *j, const float *copy, const float *w, size_t count, bool more, float *y)
{
    const dq_conv_rows *r = j->r;
    const dq_window *win = &r->shape->window;
    size_t last = win->rank - 1, outer = 1, n = last ? (size_t)win->out[last] : count;
    size_t rows = last == 0 ? 1 : last == 1 ? count : (size_t)win->out[last - 1];
    for (size_t d = 0; d + 1 < last; d++)
        outer *= d ? (size_t)win->out[d] : count;
    for (size_t i = 0; i < outer; i++, y += rows * n) {
        size_t rest = i, offset = 0, step = last ? r->padded[last] * r->padded[last - 1] : 0;
        for (size_t d = last ? last - 1 : 0; d-- > 0; rest /= (size_t)win->out[d]) {
            offset += rest % (d ? (size_t)win->out[d] : count) * (size_t)win->stride[d] * step;
            step *= r->padded[d];
        }
        dq_fconv f = {.x = copy + offset,
                      .w = w,
                      .offsets = r->offsets,
                      .taps = r->shape->kernel_size,
                      .x_row = last ? (size_t)win->stride[last - 1] * r->padded[last] : 0,
                      .stride = (size_t)win->stride[last],
                      .rows = rows,
                      .n = n,
                      .y = y,
                      .y_row = n,
                      .more = more};
        j->call->kernels->fconv_plane(&f);
    }
}

static void finish(const job *j, size_t channel, size_t at, size_t n)
{
    const dq_conv_floats *o = j->o;
    const dq_conv_finish *to = o->finish;
    /* no steps: what is left to do upon the sums */
    dq_fblock rest = {.rows = 1,
                      .cols = n,
                      .c = o->out + at,
                      .more = true,
                      .last = true,
                      .alpha = 1,
                      .low = to->low,
                      .high = to->high,
                      .bias = o->bias ? o->bias + channel : NULL,
                      .z = o->z ? o->z + at : NULL};
    j->call->kernels->fblock(&rest);
    dq_conv_function(to, o->out + at, n);
}

/* A piece: a band of all output channels of a group of an image. */
static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const dq_conv_shape *s = j->r->shape;
    float *copy = dq_call_worker_scratch(j->call, worker);
    size_t band_size = s->out_size / (size_t)s->window.out[0];
    bool clean = false;
    for (size_t i = begin; i < end; i++) {
        size_t first = i % j->bands * j->r->band, group = i / j->bands % s->group,
               image = i / j->bands / s->group;
        size_t count = least(j->r->band, (size_t)s->window.out[0] - first);
        for (size_t c = 0; c < s->group_in; c++) {
            copy_band(j->r, j->o->x + (image * s->in_channels + group * s->group_in + c) * s->in_size, first,
                      count, clean, copy);
            clean = j->bands == 1;
            for (size_t out = 0; out < s->group_out; out++) {
                size_t channel = group * s->group_out + out;
                sums(j, copy, j->o->w + (channel * s->group_in + c) * s->kernel_size, count, c > 0,
                     j->o->out + (image * s->out_channels + channel) * s->out_size + first * band_size);
            }
        }
        for (size_t out = 0; out < s->group_out; out++) {
            size_t channel = group * s->group_out + out;
            finish(j, channel, (image * s->out_channels + channel) * s->out_size + first * band_size,
                   count * band_size);
        }
    }
}

void dq_conv_rows_run(const dq_op_call *call, const dq_conv_rows *r, const dq_conv_floats *o)
{
    const dq_conv_shape *s = r->shape;
    size_t out = (size_t)s->window.out[0];
    job j = {call, r, o, out / r->band + (out % r->band != 0)};
    size_t work = s->group_out * s->group_in * s->kernel_size * r->band * (s->out_size / out);
    dq_parallel(call->threads, s->batch * s->group * j.bands, WORK / (work + 1) + 1, piece, &j);
}
