/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv/input_band.h"

#include "base/checked.h"
#include "ops/matmul/qgemm16_pack.h"

#include <string.h>

enum { NR = DQ_GEMM_S16_NR, LINE = 32 /* int16 elements of a cache line */ };

/* Drops trivial axes of length 1. If all windows are single pixels without padding or stride, merges all
 * axes. */
static void simplify(const dq_window *from, dq_window *w)
{
    bool pixels = true;
    w->rank = 0;
    for (size_t d = 0; d < from->rank; d++) {
        bool plain = from->kernel[d] == 1 && from->begin[d] == 0 && from->out[d] == from->in[d];
        pixels = pixels && plain;
        if (plain && from->in[d] == 1 && (w->rank > 0 || d + 1 < from->rank))
            continue;
        w->in[w->rank] = from->in[d];
        w->kernel[w->rank] = from->kernel[d];
        w->stride[w->rank] = from->stride[d];
        w->dilation[w->rank] = from->dilation[d];
        w->begin[w->rank] = from->begin[d];
        w->out[w->rank++] = from->out[d];
    }
    for (; pixels && w->rank > 1; w->rank--) {
        w->in[0] *= w->in[w->rank - 1];
        w->out[0] = w->in[0];
    }
}

/* Index of the phase of a kernel element at `shift` along the last axis; b->phases if there is none yet. */
static size_t find_phase(const dq_input_band *b, size_t shift)
{
    size_t stride = (size_t)b->w.stride[b->w.rank - 1], i = 0;
    while (i < b->phases && b->phase[i] != shift % stride)
        i++;
    return i;
}

static void find_phases(dq_input_band *b)
{
    size_t last = b->w.rank - 1;
    for (int64_t k = 0; k < b->w.kernel[last]; k++) {
        size_t shift = (size_t)(k * b->w.dilation[last]);
        if (find_phase(b, shift) == b->phases)
            b->phase[b->phases++] = shift % (size_t)b->w.stride[last];
    }
}

static size_t reach(const dq_window *w, size_t d)
{
    return (size_t)((w->kernel[d] - 1) * w->dilation[d]);
}

/* Computes the layout for `band` outputs along the first axis. Returns false if a size overflows size_t. */
static bool lay_out(dq_input_band *b, size_t band)
{
    const dq_window *w = &b->w;
    size_t last = w->rank - 1, rows = 1;
    b->band = band;
    b->bands = (size_t)w->out[0] / band + ((size_t)w->out[0] % band != 0);
    for (size_t d = 0; d < last; d++) {
        size_t out = d == 0 ? band : (size_t)w->out[d];
        b->stride[d] = w->kernel[d] == 1 ? 1 : (size_t)w->stride[d];
        if (!dq_mul_size(out - 1, b->stride[d], &b->extent[d]) ||
            !dq_add_size(b->extent[d], reach(w, d) + 1, &b->extent[d]) ||
            !dq_mul_size(rows, b->extent[d], &rows))
            return false;
    }
    b->pitch = dq_input_band_columns(b, band) + reach(w, last) / (size_t)w->stride[last];
    if (!dq_mul_size(b->phases * b->each, b->pitch, &b->row) || !dq_mul_size(b->row, rows, &b->plane) ||
        !dq_align_size(b->plane, LINE, &b->plane))
        return false;
    b->plane += b->plane / LINE % 2 ? 0 : LINE; /* odd number of lines: planes use all cache sets */
    return true;
}

bool dq_input_band_size(const dq_input_band *b, size_t planes, size_t *elements)
{
    return dq_mul_size(b->plane, planes, elements) && dq_add_size(*elements, 2 * NR, elements) &&
           *elements <= UINT32_MAX;
}

/* Chooses the largest band that fits in `bytes`, but at least MIN_OUTPUTS outputs. */
static bool choose_band(dq_input_band *b, size_t planes, size_t bytes)
{
    enum { MIN_OUTPUTS = 192 }; /* output positions */
    size_t out = (size_t)b->w.out[0], each = 1, low, high, size;
    for (size_t d = 1; d < b->w.rank; d++)
        each *= (size_t)b->w.out[d];
    low = MIN_OUTPUTS / each + 1;
    low = low < out ? low : out;
    for (high = out; low < high;) { /* binary search: sizes grow with the band */
        size_t middle = high - (high - low) / 2;
        if (lay_out(b, middle) && dq_input_band_size(b, planes, &size) && size <= bytes / sizeof(int16_t))
            low = middle;
        else
            high = middle - 1;
    }
    if (b->w.rank == 1 && low < out)
        low = (low + DQ_GEMM_S16_COLS - 1) / DQ_GEMM_S16_COLS * DQ_GEMM_S16_COLS;
    else if (low < out) /* bands of about equal size */
        low = (out - 1) / ((out - 1) / low + 1) + 1;
    return lay_out(b, low < out ? low : out);
}

static void set_tap_offsets(dq_input_band *b)
{
    const dq_window *w = &b->w;
    size_t last = w->rank - 1, taps = 1;
    for (size_t d = 0; d < w->rank; d++)
        taps *= (size_t)w->kernel[d];
    for (size_t t = 0; t < taps; t++) {
        size_t shift = t % (size_t)w->kernel[last] * (size_t)w->dilation[last], rest = t, step = b->row;
        size_t at = b->each * (find_phase(b, shift) * b->pitch + shift / (size_t)w->stride[last]);
        for (size_t d = last; d-- > 0; step *= b->extent[d]) {
            rest /= (size_t)w->kernel[d + 1];
            at += rest % (size_t)w->kernel[d] * (size_t)w->dilation[d] * step;
        }
        b->taps[t] = (uint32_t)at;
    }
}

dq_status dq_input_band_prepare(dq_op_call *call, const dq_conv_shape *s, size_t planes, bool single,
                                size_t bytes, dq_input_band *b, dq_error *err)
{
    size_t elements;
    b->each = single ? 1 : 2;
    simplify(&s->window, &b->w);
    b->phase = DQ_NEW_ARRAY(call->arena, (size_t)b->w.kernel[b->w.rank - 1], size_t);
    b->taps = DQ_NEW_ARRAY(call->arena, s->kernel_size, uint32_t);
    if (!b->phase || !b->taps)
        return dq_no_memory(err, s->kernel_size, "offsets of a kernel");
    find_phases(b);
    if (!choose_band(b, planes, bytes) || !dq_input_band_size(b, planes, &elements))
        return dq_no_memory(err, SIZE_MAX, "the input under a convolution's windows");
    set_tap_offsets(b);
    return DQ_OK;
}

void dq_input_band_range(const dq_input_band *b, size_t at, size_t *first, size_t *count)
{
    size_t out = (size_t)b->w.out[0];
    *first = at * b->band;
    *count = out - *first < b->band ? out - *first : b->band;
}

size_t dq_input_band_rows(const dq_input_band *b, size_t count)
{
    size_t rows = b->w.rank == 1 ? 1 : count;
    for (size_t d = 1; d + 1 < b->w.rank; d++)
        rows *= (size_t)b->w.out[d];
    return rows;
}

size_t dq_input_band_offset(const dq_input_band *b, size_t row)
{
    size_t at = 0, step = b->row;
    for (size_t d = b->w.rank - 1; d-- > 0; step *= b->extent[d]) {
        size_t n = d == 0 ? SIZE_MAX : (size_t)b->w.out[d];
        at += row % n * b->stride[d] * step;
        row /= n;
    }
    return at;
}
