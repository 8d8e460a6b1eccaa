#include "ops/conv/wide_window.h"

#include "base/checked.h"
#include "ops/matmul/wide_codes.h"

#include <string.h>

enum { OCTET = DQ_WGEMM_OCTET, LINE = 32 /* int16 elements of a cache line */ };

/* Axes on which nothing happens fall away; where windows are single neighbouring pixels, all are one. */
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

/* Where a kernel element lies: the phase of the last axis, and the step in it. */
static size_t find_phase(const dq_wband *b, size_t shift)
{
    size_t stride = (size_t)b->w.stride[b->w.rank - 1], i = 0;
    while (i < b->phases && b->phase[i] != shift % stride)
        i++;
    return i;
}

static void find_phases(dq_wband *b)
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

/* The layout for `band` outputs on the first axis. */
static bool lay_out(dq_wband *b, size_t band)
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
    b->pitch = dq_wband_columns(b, band) + reach(w, last) / (size_t)w->stride[last];
    if (!dq_mul_size(b->phases * 2, b->pitch, &b->row) || !dq_mul_size(b->row, rows, &b->plane) ||
        !dq_align_size(b->plane, LINE, &b->plane))
        return false;
    b->plane += b->plane / LINE % 2 ? 0 : LINE; /* an odd number of lines: planes fall on all cache sets */
    return true;
}

bool dq_wband_size(const dq_wband *b, size_t planes, size_t *elements)
{
    return dq_mul_size(b->plane, planes, elements) && dq_add_size(*elements, 2 * OCTET, elements) &&
           *elements <= UINT32_MAX;
}

/* The largest band that takes `bytes`, but `LEAST` outputs or more. */
static bool choose_band(dq_wband *b, size_t planes, size_t bytes)
{
    enum { LEAST = 192 };
    size_t out = (size_t)b->w.out[0], each = 1, low, high, size;
    for (size_t d = 1; d < b->w.rank; d++)
        each *= (size_t)b->w.out[d];
    low = LEAST / each + 1;
    low = low < out ? low : out;
    for (high = out; low < high;) { /* sizes grow with the band */
        size_t middle = high - (high - low) / 2;
        if (lay_out(b, middle) && dq_wband_size(b, planes, &size) && size <= bytes / sizeof(int16_t))
            low = middle;
        else
            high = middle - 1;
    }
    if (b->w.rank == 1 && low < out)
        low = (low + DQ_WGEMM_COLS - 1) / DQ_WGEMM_COLS * DQ_WGEMM_COLS;
    else if (low < out) /* bands alike */
        low = (out - 1) / ((out - 1) / low + 1) + 1;
    return lay_out(b, low < out ? low : out);
}

static void place_taps(dq_wband *b)
{
    const dq_window *w = &b->w;
    size_t last = w->rank - 1, taps = 1;
    for (size_t d = 0; d < w->rank; d++)
        taps *= (size_t)w->kernel[d];
    for (size_t t = 0; t < taps; t++) {
        size_t shift = t % (size_t)w->kernel[last] * (size_t)w->dilation[last], rest = t, step = b->row;
        size_t at = 2 * (find_phase(b, shift) * b->pitch + shift / (size_t)w->stride[last]);
        for (size_t d = last; d-- > 0; step *= b->extent[d]) {
            rest /= (size_t)w->kernel[d + 1];
            at += rest % (size_t)w->kernel[d] * (size_t)w->dilation[d] * step;
        }
        b->taps[t] = (uint32_t)at;
    }
}

dq_status dq_wband_prepare(dq_op_call *call, const dq_conv_shape *s, size_t planes, size_t bytes, dq_wband *b,
                           dq_error *err)
{
    size_t elements;
    simplify(&s->window, &b->w);
    b->phase = DQ_NEW_ARRAY(call->arena, (size_t)b->w.kernel[b->w.rank - 1], size_t);
    b->taps = DQ_NEW_ARRAY(call->arena, s->kernel_size, uint32_t);
    if (!b->phase || !b->taps)
        return dq_no_memory(err, s->kernel_size, "places of a kernel");
    find_phases(b);
    if (!choose_band(b, planes, bytes) || !dq_wband_size(b, planes, &elements))
        return dq_no_memory(err, SIZE_MAX, "the input under a convolution's windows");
    place_taps(b);
    return DQ_OK;
}

void dq_wband_range(const dq_wband *b, size_t at, size_t *first, size_t *count)
{
    size_t out = (size_t)b->w.out[0];
    *first = at * b->band;
    *count = out - *first < b->band ? out - *first : b->band;
}

size_t dq_wband_rows(const dq_wband *b, size_t count)
{
    size_t rows = b->w.rank == 1 ? 1 : count;
    for (size_t d = 1; d + 1 < b->w.rank; d++)
        rows *= (size_t)b->w.out[d];
    return rows;
}

size_t dq_wband_place(const dq_wband *b, size_t row)
{
    size_t at = 0, step = b->row;
    for (size_t d = b->w.rank - 1; d-- > 0; step *= b->extent[d]) {
        size_t n = d == 0 ? SIZE_MAX : (size_t)b->w.out[d];
        at += row % n * b->stride[d] * step;
        row /= n;
    }
    return at;
}

/* ---- Filling --------------------------------------------------------------------------------------------
 */

/* Where a row of the plane begins in a channel of the input; false: it is all padding. */
static bool find_source(const dq_wband *b, size_t row, size_t first, int64_t *at)
{
    const dq_window *w = &b->w;
    int64_t step = w->in[w->rank - 1];
    *at = 0;
    for (size_t d = w->rank - 1; d-- > 0; step *= w->in[d]) {
        int64_t i = (int64_t)(d > 0 ? row % b->extent[d] : row);
        i = i * (w->kernel[d] == 1 ? w->stride[d] : 1) - w->begin[d];
        i += d == 0 ? (int64_t)first * w->stride[d] : 0;
        if (i < 0 || i >= w->in[d])
            return false;
        *at += i * step;
        if (d > 0)
            row /= b->extent[d];
    }
    return true;
}

static size_t rows_of(const dq_wband *b)
{
    size_t rows = 1;
    for (size_t d = 0; d + 1 < b->w.rank; d++)
        rows *= b->extent[d];
    return rows;
}

/* One phase: where its elements from `from` to `end` - 1 are in a row of the input, `step` apart; the others
 * are padding. */
typedef struct stretch {
    size_t from, end, at, step;
} stretch;

static stretch find_stretch(const dq_wband *b, size_t first, size_t phase)
{
    size_t last = b->w.rank - 1;
    int64_t stride = b->w.stride[last], in = b->w.in[last], n = (int64_t)b->pitch;
    int64_t start = (int64_t)phase + (last == 0 ? (int64_t)first * stride : 0) - b->w.begin[last];
    int64_t from = start < 0 ? (-start - 1) / stride + 1 : 0;
    int64_t end = in > start ? (in - start - 1) / stride + 1 : 0;
    end = end < n ? end : n;
    if (from >= end)
        return (stretch){0};
    return (stretch){(size_t)from, (size_t)end, (size_t)(start + from * stride), (size_t)stride};
}

static void fill(int16_t code, size_t n, int16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = code;
}

/* Every `step`-th of a channel's elements, of 16 bits. */
static void take_16(const dq_tensor *x, size_t at, size_t step, size_t n, int16_t *restrict to)
{
    const int16_t *from = (const int16_t *)x->data + at, flip = x->dtype == DQ_UINT16 ? INT16_MIN : 0;
    for (size_t i = 0; i < n && step == 1; i++)
        to[i] = from[i] ^ flip;
    for (size_t i = 0; i < n && step != 1; i++)
        to[i] = from[i * step] ^ flip;
}

/* The same of any type; that the last ones are taken twice keeps vectors whole. */
static void take(const dq_tensor *x, size_t at, size_t step, size_t n, int16_t *to)
{
    enum { OVER = 8 };
    const size_t some = step == 1 && n > OVER ? n / OVER * OVER : n;
    if (dq_dtype_get(x->dtype)->bits == 16) {
        take_16(x, at, step, some, to);
        if (some < n)
            take_16(x, at + n - OVER, 1, OVER, to + n - OVER);
    } else {
        const size_t each = step == 1 ? n : 1;
        for (size_t i = 0; i < n; i += each)
            dq_wcodes_load(x->dtype, x->data, at + i * step, each, to + i);
    }
}

/* A channel's plane, elements alone. */
static void take_plane(const dq_wband *b, const dq_tensor *x, size_t first, size_t channel, int16_t pad,
                       int16_t *plane)
{
    const size_t rows = rows_of(b), pitch = b->pitch;
    for (size_t i = 0; i < b->phases; i++) {
        const stretch s = find_stretch(b, first, b->phase[i]);
        int16_t *to = plane + i * pitch;
        for (size_t row = 0; row < rows; row++, to += b->phases * pitch) {
            int64_t at;
            const bool inside = find_source(b, row, first, &at) && s.from < s.end;
            fill(pad, inside ? s.from : pitch, to);
            if (!inside)
                continue;
            take(x, channel + (size_t)at + s.at, s.step, s.end - s.from, to + s.from);
            fill(pad, pitch - s.end, to + s.end);
        }
    }
}

/* Pairs of elements from two places on, `step` apart; without a second place, of an element and a zero. */
#define INTERLEAVE(S, middle)                                                                                \
    do {                                                                                                     \
        const S *p = (const S *)x->data + one, *q = (const S *)x->data + (two == SIZE_MAX ? one : two);      \
        for (size_t i = 0; i < n && step == 1; i++) {                                                        \
            to[2 * i] = (int16_t)(p[i] - (middle));                                                          \
            to[2 * i + 1] = (int16_t)(q[i] - (middle));                                                      \
        }                                                                                                    \
        for (size_t i = 0; i < n && step != 1; i++) {                                                        \
            to[2 * i] = (int16_t)(p[i * step] - (middle));                                                   \
            to[2 * i + 1] = (int16_t)(q[i * step] - (middle));                                               \
        }                                                                                                    \
        for (size_t i = 0; i < n && two == SIZE_MAX; i++)                                                    \
            to[2 * i + 1] = 0;                                                                               \
    } while (0)

static void interleave(const dq_tensor *x, size_t one, size_t two, size_t step, size_t n, int16_t *to)
{
    if (x->dtype == DQ_UINT16)
        INTERLEAVE(uint16_t, 32768);
    else if (x->dtype == DQ_INT16)
        INTERLEAVE(int16_t, 0);
    else if (x->dtype == DQ_UINT8)
        INTERLEAVE(uint8_t, 128);
    else
        INTERLEAVE(int8_t, 0);
}

static void pad_pairs(int16_t first, int16_t second, size_t n, int16_t *to)
{
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = first;
        to[2 * i + 1] = second;
    }
}

static void fill_pairs(const stretch *s, const dq_tensor *x, size_t one, size_t two, size_t n, int16_t pad,
                       int16_t *to)
{
    int16_t second = two == SIZE_MAX ? 0 : pad;
    pad_pairs(pad, second, s->from, to);
    interleave(x, one + s->at, two == SIZE_MAX ? two : two + s->at, s->step, s->end - s->from,
               to + 2 * s->from);
    pad_pairs(pad, second, n - s->end, to + 2 * s->end);
}

static size_t channel_size(const dq_wband *b)
{
    size_t size = 1;
    for (size_t d = 0; d < b->w.rank; d++)
        size *= (size_t)b->w.in[d];
    return size;
}

void dq_wband_fill(const dq_wband *b, const dq_tensor *x, size_t first, size_t at, size_t channels,
                   int16_t pad, int16_t *to)
{
    const size_t rows = rows_of(b), channel = channel_size(b);
    for (size_t i = 0; i < rows * b->phases; i++) {
        const size_t row = i / b->phases;
        stretch s = find_stretch(b, first, b->phase[i % b->phases]);
        int64_t source;
        if (find_source(b, row, first, &source))
            s.at += (size_t)source;
        else
            s = (stretch){0};
        for (size_t c = 0; c < channels; c += 2) {
            size_t one = at + c * channel;
            fill_pairs(&s, x, one, c + 1 < channels ? one + channel : SIZE_MAX, b->pitch, pad,
                       to + c / 2 * b->plane + 2 * i * b->pitch);
        }
    }
}

/* Bytes of four places, `step` apart. */
static inline __attribute__((always_inline)) void split_quads(const uint16_t *const x[4], size_t at,
                                                              size_t step, size_t n, uint16_t flip,
                                                              uint16_t *restrict low, uint16_t *restrict high)
{
    const uint16_t *x0 = x[0] + at, *x1 = x[1] + at, *x2 = x[2] + at, *x3 = x[3] + at;
    for (size_t i = 0; i < n; i++) {
        const uint16_t a = x0[i * step] ^ flip, b = x1[i * step] ^ flip;
        const uint16_t c = x2[i * step] ^ flip, d = x3[i * step] ^ flip;
        low[2 * i] = (uint16_t)((a & 255) | b << 8);
        low[2 * i + 1] = (uint16_t)((c & 255) | d << 8);
        high[2 * i] = (uint16_t)(a >> 8 | (b & 0xff00));
        high[2 * i + 1] = (uint16_t)(c >> 8 | (d & 0xff00));
    }
}

static void fill_quads(const stretch *s, const uint16_t *const x[4], uint16_t flip, size_t n, int16_t pad,
                       int16_t *low, int16_t *high)
{
    const size_t count = s->end - s->from;
    uint16_t *lower = (uint16_t *)low + 2 * s->from, *upper = (uint16_t *)high + 2 * s->from;
    memset(low, pad & 255, s->from * 4);
    memset(high, (uint16_t)pad >> 8, s->from * 4);
    if (s->step == 1)
        split_quads(x, s->at, 1, count, flip, lower, upper);
    else
        split_quads(x, s->at, s->step, count, flip, lower, upper);
    memset(low + 2 * s->end, pad & 255, (n - s->end) * 4);
    memset(high + 2 * s->end, (uint16_t)pad >> 8, (n - s->end) * 4);
}

void dq_wband_fill_quads(const dq_wband *b, const dq_tensor *x, size_t first, size_t at, size_t channels,
                         int16_t pad, int16_t *to)
{
    const size_t rows = rows_of(b), channel = channel_size(b);
    const uint16_t flip = x->dtype == DQ_UINT16 ? 0x8000 : 0;
    for (size_t i = 0; i < rows * b->phases; i++) {
        stretch s = find_stretch(b, first, b->phase[i % b->phases]);
        int64_t source;
        if (find_source(b, i / b->phases, first, &source))
            s.at += (size_t)source;
        else
            s = (stretch){0};
        for (size_t c = 0; c < channels; c += 4) {
            int16_t *low = to + c / 2 * b->plane + 2 * i * b->pitch;
            const uint16_t *from[4];
            for (size_t j = 0; j < 4; j++)
                from[j] = (const uint16_t *)x->data + at + (c + j < channels ? c + j : c) * channel;
            fill_quads(&s, from, flip, b->pitch, pad, low, low + b->plane);
        }
    }
}

void dq_wband_fill_neighbours(const dq_wband *b, const dq_tensor *x, size_t first, size_t at, int16_t pad,
                              int16_t *room, int16_t *restrict to)
{
    const size_t n = rows_of(b) * b->phases * b->pitch;
    const int16_t *restrict from = room;
    take_plane(b, x, first, at, pad, room);
    room[n] = pad; /* which no kernel element meets, as those behind rows */
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = from[i];
        to[2 * i + 1] = from[i + 1];
    }
}
