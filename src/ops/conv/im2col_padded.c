/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/im2col_padded.h"

#include "base/checked.h"
#include "ops/conv/im2col_pack.h"

#include <string.h>

/* True if computing element positions (dq_im2col_pack) is expensive compared with the multiply-adds. */
static bool is_position_bound(const dq_conv_shape *s)
{
    enum {
        MAX_CHANNELS = 4,
        MIN_TAPS = 64,
        MAX_CHANNELS_3D = 32,
        MIN_TAPS_3D = 16,
        MAX_ELEMENTS_3D = 1 << 22 /* elements */
    };
    const dq_window *w = &s->window;
    if (s->in_channels <= MAX_CHANNELS || s->kernel_size >= MIN_TAPS)
        return true;
    /* Three axes: rows of at least a panel, and a window at most positions. */
    return w->rank > 2 && s->in_channels <= MAX_CHANNELS_3D && s->kernel_size >= MIN_TAPS_3D &&
           w->out[w->rank - 1] >= DQ_GEMM_F32_NR && s->out_size >= s->in_size / 2 &&
           s->in_channels * s->in_size <= MAX_ELEMENTS_3D;
}

/* True if the padded copy pays: padding, which is copied too, is limited. */
static bool is_applicable(const dq_conv_shape *s)
{
    enum { MAX_STRIDE = 8, MAX_PADDING = 64 }; /* MAX_PADDING: maximum excess of the padded length */
    const dq_window *w = &s->window;
    if (w->rank < 2 || s->group != 1 || s->kernel_size == 1 || s->out_size == 0 || !is_position_bound(s) ||
        dq_im2col_is_patches(w, s->in_channels))
        return false;
    for (size_t d = 0; d < w->rank; d++)
        if (w->stride[d] > MAX_STRIDE ||
            (w->out[d] - 1) * w->stride[d] + dq_window_span(w, d) > w->in[d] + MAX_PADDING)
            return false;
    return true;
}

/* Sets rows, pitch and planes. Returns false if the size overflows size_t. */
static bool lay_out(const dq_window *w, dq_im2col_padded *p)
{
    const size_t last = w->rank - 1;
    p->planes = (size_t)w->stride[last];
    p->pitch = (size_t)w->out[last] + ((size_t)dq_window_span(w, last) - 1) / p->planes;
    p->rows = p->lines = 1;
    for (size_t d = 0; d < last; d++) {
        p->extent[d] = (size_t)((w->out[d] - 1) * w->stride[d] + dq_window_span(w, d));
        p->lines *= (size_t)w->out[d];
        if (!dq_mul_size(p->rows, p->extent[d], &p->rows))
            return false;
    }
    return true;
}

/* The row of the copy of item `i` (row-major) among `count` items along each axis at strides `far`. */
static inline size_t row_at(const dq_im2col_padded *p, size_t i, const int64_t *count,
                            const int64_t *exceeds_caches)
{
    size_t row = 0, step = 1;
    for (size_t d = p->shape->window.rank - 1; d-- > 1; step *= p->extent[d]) {
        row += i % (size_t)count[d] * (size_t)exceeds_caches[d] * step;
        i /= (size_t)count[d];
    }
    return row + i * (size_t)exceeds_caches[0] * step;
}

static void find_steps(const dq_im2col_padded *p, size_t plane, uint32_t *steps)
{
    const dq_window *w = &p->shape->window;
    const size_t last = w->rank - 1, kernel = (size_t)w->kernel[last];
    for (size_t c = 0; c < p->shape->in_channels; c++)
        for (size_t t = 0; t < p->shape->kernel_size; t++) {
            const size_t row = row_at(p, t / kernel, w->kernel, w->dilation);
            const size_t col = t % kernel * (size_t)w->dilation[last];
            *steps++ =
                (uint32_t)((c * p->planes + col % p->planes) * plane + row * p->pitch + col / p->planes);
        }
}

dq_status dq_im2col_padded_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_im2col_padded *p,
                                   dq_error *err)
{
    size_t k, plane, floats;
    *p = (dq_im2col_padded){.shape = shape};
    if (!is_applicable(shape) || !lay_out(&shape->window, p) || !dq_mul_size(p->rows, p->pitch, &plane) ||
        !dq_mul_size(shape->in_channels * p->planes, plane, &floats) || floats > UINT32_MAX) {
        p->shape = NULL;
        return DQ_OK;
    }
    k = shape->in_channels * shape->kernel_size;
    uint32_t *steps = DQ_NEW_ARRAY(call->arena, k, uint32_t);
    /* Slack: copying a span of a panel may read past the last row. */
    if (!steps || !dq_call_reserve(call, floats + DQ_GEMM_F32_NR, 1, sizeof(float), &p->copy_offset))
        return dq_no_memory(err, k * sizeof *steps, "a padded image");
    find_steps(p, plane, steps);
    p->steps = steps;
    return DQ_OK;
}

/* ---- Padded copy -------------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_im2col_padded *p;
    const float *x;
} job;

static float *copy_of(const dq_op_call *call, const dq_im2col_padded *p)
{
    return (float *)(void *)((char *)call->scratch + p->copy_offset);
}

/* Gives the offset in an input channel of a row of the copy. Returns false if the row is all padding. */
static inline bool find_source(const dq_im2col_padded *p, size_t row, size_t *at)
{
    const dq_window *w = &p->shape->window;
    size_t step = (size_t)w->in[w->rank - 1];
    *at = 0;
    for (size_t d = w->rank - 1; d-- > 0;) {
        const int64_t i = (int64_t)(d ? row % p->extent[d] : row) - w->begin[d];
        if (i < 0 || i >= w->in[d])
            return false;
        *at += (size_t)i * step;
        step *= (size_t)w->in[d];
        row = d ? row / p->extent[d] : 0;
    }
    return true;
}

static void copy_row(const job *j, size_t channel, size_t row)
{
    const dq_im2col_padded *p = j->p;
    const dq_window *w = &p->shape->window;
    const size_t last = w->rank - 1;
    const int64_t step = (int64_t)p->planes, in = w->in[last];
    size_t at = 0;
    const bool inside = find_source(p, row, &at);
    const float *x = j->x + channel * p->shape->in_size + (inside ? at : 0);
    for (int64_t q = 0; q < step; q++) {
        float *to = copy_of(j->call, p) + ((channel * p->planes + (size_t)q) * p->rows + row) * p->pitch;
        const int64_t shift = q - w->begin[last]; /* position i is element i * step + shift of the row */
        size_t begin = shift < 0 ? (size_t)((step - 1 - shift) / step) : 0;
        size_t end = in > shift ? (size_t)((in - shift + step - 1) / step) : 0;
        end = inside ? end : 0;
        end = end < p->pitch ? end : p->pitch;
        begin = begin < end ? begin : end;
        memset(to, 0, begin * sizeof *to);
        if (begin < end)
            j->call->kernels->copy_strided_f32(x + (int64_t)begin * step + shift, 0, p->planes, 1,
                                               end - begin, to + begin, 0);
        memset(to + end, 0, (p->pitch - end) * sizeof *to);
    }
}

static void copy_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const size_t channels = j->p->shape->in_channels; /* windows of a thread's rows read all channels */
    for (size_t i = begin; i < end; i++)
        copy_row(j, i % channels, i / channels);
}

void dq_im2col_padded_copy(const dq_op_call *call, const dq_im2col_padded *p, const float *x)
{
    enum { ROWS = 32 }; /* rows per task */
    job j = {call, p, x};
    dq_parallel(call->threads, p->shape->in_channels * p->rows, ROWS, copy_rows, &j);
}

/* ---- Panels ------------------------------------------------------------------------------------------- */

/* A contiguous span of a panel's columns, from a lane on, in one row of the copy. */
typedef struct span {
    size_t lane;
    const float *from;
} span;

/* Finds the spans of the next panel, from output column *col of output row *row on, and advances both.
 * Returns their number. */
static size_t find_spans(const dq_im2col_padded *p, const float *copy, size_t *row, size_t *col,
                         span s[DQ_GEMM_F32_NR])
{
    const dq_window *w = &p->shape->window;
    const size_t width = (size_t)w->out[w->rank - 1];
    size_t count = 0;
    for (size_t lane = 0, n; lane < DQ_GEMM_F32_NR && *row < p->lines; lane += n) {
        n = dq_least(width - *col, DQ_GEMM_F32_NR - lane);
        s[count].lane = lane;
        s[count++].from = copy + row_at(p, *row, w->out, w->stride) * p->pitch + *col;
        *col += n;
        *row += *col == width;
        *col = *col == width ? 0 : *col;
    }
    return count;
}

/* Packs a panel. Each span is copied with the fixed length of a panel; the next span or the next step
 * overwrites the excess. The last step is copied exactly. */
static void panel(const span *s, size_t count, const uint32_t *steps, size_t k, float *to)
{
    for (size_t i = 0; i + 1 < k; i++, to += DQ_GEMM_F32_NR)
        for (size_t r = 0; r < count; r++)
            memcpy(to + s[r].lane, s[r].from + steps[i], DQ_GEMM_F32_NR * sizeof *to);
    for (size_t r = 0; r < count; r++)
        memcpy(to + s[r].lane, s[r].from + steps[k - 1], (DQ_GEMM_F32_NR - s[r].lane) * sizeof *to);
}

void dq_im2col_padded_panels(const dq_op_call *call, const dq_im2col_padded *p, const dq_gemm_part *part,
                             float *workspace, dq_gemm_block_f32 *block)
{
    const size_t width = (size_t)p->shape->window.out[p->shape->window.rank - 1];
    const float *copy = copy_of(call, p);
    size_t row = part->col / width, col = part->col % width;
    for (size_t j = 0; j < part->cols; j += DQ_GEMM_F32_NR) {
        span s[DQ_GEMM_F32_NR];
        panel(s, find_spans(p, copy, &row, &col, s), p->steps + part->p, part->k, workspace + j * part->k);
    }
    block->b = workspace;
    block->b_step = DQ_GEMM_F32_NR;
    block->b_panel = DQ_GEMM_F32_NR * part->k;
}
