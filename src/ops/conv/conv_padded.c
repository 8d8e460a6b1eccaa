#include "ops/conv/conv_padded.h"

#include "base/checked.h"
#include "ops/conv/conv_panels.h"

#include <string.h>

static size_t span(const dq_window *w, size_t d)
{
    return (size_t)dq_window_span(w, d);
}

/* Padding is copied, too. */
static bool suits(const dq_conv_shape *s)
{
    enum { FEW = 4, MANY = 64, MOST_STRIDE = 8, FAR = 64 };
    const dq_window *w = &s->window;
    if (w->rank != 2 || s->group != 1 || dq_conv_patches(w, s->in_channels) ||
        (s->in_channels > FEW && s->kernel_size < MANY) || s->kernel_size == 1 || s->out_size == 0)
        return false;
    for (size_t d = 0; d < 2; d++)
        if (w->stride[d] > MOST_STRIDE ||
            (w->out[d] - 1) * w->stride[d] + dq_window_span(w, d) > w->in[d] + FAR)
            return false;
    return true;
}

dq_status dq_conv_padded_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_conv_padded *p,
                                 dq_error *err)
{
    const dq_window *w = &shape->window;
    *p = (dq_conv_padded){0};
    if (!suits(shape))
        return DQ_OK;
    p->planes = (size_t)w->stride[1];
    p->rows = (size_t)((w->out[0] - 1) * w->stride[0]) + span(w, 0);
    p->pitch = (size_t)w->out[1] + (span(w, 1) - 1) / p->planes;
    size_t k = shape->in_channels * shape->kernel_size, plane = p->rows * p->pitch, count = 0, floats;
    if (!dq_mul_size(shape->in_channels * p->planes, plane, &floats) || floats > UINT32_MAX)
        return DQ_OK;
    uint32_t *steps = DQ_NEW_ARRAY(call->arena, k, uint32_t);
    /* a stretch of a panel may go on behind the last row */
    if (!steps || !dq_call_place(call, floats + DQ_FPANEL, 1, sizeof(float), &p->copy_offset))
        return dq_no_memory(err, k * sizeof *steps, "a padded image");
    for (size_t c = 0; c < shape->in_channels; c++)
        for (int64_t y = 0; y < w->kernel[0]; y++)
            for (int64_t x = 0; x < w->kernel[1]; x++) {
                size_t row = (size_t)(y * w->dilation[0]), col = (size_t)(x * w->dilation[1]);
                steps[count++] =
                    (uint32_t)((c * p->planes + col % p->planes) * plane + row * p->pitch + col / p->planes);
            }
    p->steps = steps;
    p->shape = shape;
    return DQ_OK;
}

/* ---- The copy ----------------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_conv_padded *p;
    const float *x;
} job;

static float *copy_of(const dq_op_call *call, const dq_conv_padded *p)
{
    return (float *)(void *)((char *)call->scratch + p->copy_offset);
}

static void copy_row(const job *j, size_t channel, size_t row)
{
    const dq_conv_padded *p = j->p;
    const dq_window *w = &p->shape->window;
    const int64_t y = (int64_t)row - w->begin[0], step = (int64_t)p->planes;
    const bool inside = y >= 0 && y < w->in[0];
    const float *x = j->x + channel * p->shape->in_size + (inside ? (size_t)(y * w->in[1]) : 0);
    for (int64_t q = 0; q < step; q++) {
        float *to = copy_of(j->call, p) + ((channel * p->planes + (size_t)q) * p->rows + row) * p->pitch;
        const int64_t shift = q - w->begin[1]; /* place i is element i * step + shift of the row */
        size_t begin = shift < 0 ? (size_t)((step - 1 - shift) / step) : 0;
        size_t end = w->in[1] > shift ? (size_t)((w->in[1] - shift + step - 1) / step) : 0;
        end = inside ? end : 0;
        end = end < p->pitch ? end : p->pitch;
        begin = begin < end ? begin : end;
        memset(to, 0, begin * sizeof *to);
        if (begin < end)
            j->call->kernels->fevery(x + (int64_t)begin * step + shift, 0, p->planes, 1, end - begin,
                                     to + begin, 0);
        memset(to + end, 0, (p->pitch - end) * sizeof *to);
    }
}

static void copy_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const size_t channels =
        j->p->shape->in_channels; /* windows of some rows, which a thread meets, want all */
    for (size_t i = begin; i < end; i++)
        copy_row(j, i % channels, i / channels);
}

void dq_conv_padded_copy(const dq_op_call *call, const dq_conv_padded *p, const float *x)
{
    enum { ROWS = 32 };
    job j = {call, p, x};
    dq_parallel(call->threads, p->shape->in_channels * p->rows, ROWS, copy_rows, &j);
}

/* ---- Panels ------------------------------------------------------------------------------------------- */

/* Columns of a panel that stand in a row of the copy, from a lane on. */
typedef struct stretch {
    size_t lane;
    const float *from;
} stretch;

static size_t find_stretches(const dq_conv_padded *p, const float *copy, size_t col, size_t cols,
                             stretch s[DQ_FPANEL])
{
    const dq_window *w = &p->shape->window;
    size_t width = (size_t)w->out[1], count = 0;
    for (size_t lane = 0, n; lane < cols; lane += n, col += n) {
        n = width - col % width;
        s[count].lane = lane;
        s[count++].from = copy + col / width * (size_t)w->stride[0] * p->pitch + col % width;
    }
    return count;
}

/* A stretch is copied as long as a panel: what is too much of it the next one overwrites, or the next step.
 */
static void panel(const stretch *s, size_t count, const uint32_t *steps, size_t k, float *to)
{
    for (size_t i = 0; i + 1 < k; i++, to += DQ_FPANEL)
        for (size_t r = 0; r < count; r++)
            memcpy(to + s[r].lane, s[r].from + steps[i], DQ_FPANEL * sizeof *to);
    for (size_t r = 0; r < count; r++)
        memcpy(to + s[r].lane, s[r].from + steps[k - 1], (DQ_FPANEL - s[r].lane) * sizeof *to);
}

void dq_conv_padded_panels(const dq_op_call *call, const dq_conv_padded *p, const dq_fpart *part, float *room,
                           dq_fblock *block)
{
    for (size_t j = 0; j < part->cols; j += DQ_FPANEL) {
        stretch s[DQ_FPANEL];
        size_t left = part->cols - j;
        size_t count =
            find_stretches(p, copy_of(call, p), part->col + j, left < DQ_FPANEL ? left : DQ_FPANEL, s);
        panel(s, count, p->steps + part->p, part->k, room + j * part->k);
    }
    block->b = room;
    block->b_step = DQ_FPANEL;
    block->b_panel = DQ_FPANEL * part->k;
}
