/* SPDX-License-Identifier: Apache-2.0 */
/* Filling of the planes of input_band.h. */
#include "ops/conv/input_band.h"
#include "ops/matmul/qgemm16_pack.h"
#include "ops/row_quantizer.h"

#include <string.h>

/* Gives the offset in an input channel of a row of the plane, for any rank. Returns false if the row is all
 * padding. */
static bool find_deep_source(const dq_input_band *b, size_t row, size_t first, int64_t *at)
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

static inline bool find_source(const dq_input_band *b, size_t row, size_t first, int64_t *at)
{
    const dq_window *w = &b->w;
    if (w->rank != 2)
        return find_deep_source(b, row, first, at);
    int64_t i = (int64_t)row * (w->kernel[0] == 1 ? w->stride[0] : 1) - w->begin[0];
    i += (int64_t)first * w->stride[0];
    *at = i * w->in[1];
    return i >= 0 && i < w->in[0];
}

static size_t rows_of(const dq_input_band *b)
{
    size_t rows = 1;
    for (size_t d = 0; d + 1 < b->w.rank; d++)
        rows *= b->extent[d];
    return rows;
}

/* The span of a row (or of the rows along an axis) that is inside the image: positions from … end - 1. They
 * read the image from position `at` on at stride `step`. Other positions are padding. */
typedef struct span {
    size_t from, end, at, step;
} span;

/* The span of n positions whose first is position `start` of an axis of length `in`. */
static span inside(int64_t start, int64_t step, int64_t in, int64_t n)
{
    int64_t from = start < 0 ? (-start - 1) / step + 1 : 0;
    int64_t end = in > start ? (in - start - 1) / step + 1 : 0;
    end = end < n ? end : n;
    if (from >= end)
        return (span){0};
    return (span){(size_t)from, (size_t)end, (size_t)(start + from * step), (size_t)step};
}

static span find_span(const dq_input_band *b, size_t first, size_t phase)
{
    const size_t last = b->w.rank - 1;
    const int64_t stride = b->w.stride[last], before = last == 0 ? (int64_t)first * stride : 0;
    return inside((int64_t)phase + before - b->w.begin[last], stride, b->w.in[last], (int64_t)b->pitch);
}

static void fill(int16_t qvalue, size_t n, int16_t *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = qvalue;
}

/* Copies every `step`-th 16-bit value of a channel. */
static inline void take_16(const uint16_t *from, size_t step, size_t n, uint16_t sign_xor,
                           int16_t *restrict to)
{
    if (step == 1)
        dq_sign_xor_16((const int16_t *)from, n, sign_xor, to);
    else if (step == 2)
        for (size_t i = 0; i < n; i++)
            to[i] = (int16_t)(from[i * 2] ^ sign_xor);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = (int16_t)(from[i * step] ^ sign_xor);
}

/* Interleaves n elements from offsets `one` and `two` on at stride `step`; if two is SIZE_MAX, with zeros. */
#define PAIRS(step)                                                                                          \
    for (size_t i = 0; i < n; i++) {                                                                         \
        to[2 * i] = (int16_t)(p[i * (step)] - middle);                                                       \
        to[2 * i + 1] = (int16_t)(q[i * (step)] - middle);                                                   \
    }
#define INTERLEAVE(S, of)                                                                                    \
    do {                                                                                                     \
        const S *p = (const S *)x->data + one, *q = (const S *)x->data + (two == SIZE_MAX ? one : two);      \
        const int32_t middle = of;                                                                           \
        if (step == 1)                                                                                       \
            PAIRS(1)                                                                                         \
        else                                                                                                 \
            PAIRS(step)                                                                                      \
        for (size_t i = 0; i < n && two == SIZE_MAX; i++)                                                    \
            to[2 * i + 1] = 0;                                                                               \
    } while (0)

static void interleave(const dq_tensor *x, size_t one, size_t two, size_t step, size_t n,
                       int16_t *restrict to)
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

static void fill_pairs(const span *s, const dq_tensor *x, size_t one, size_t two, size_t n, int16_t pad,
                       int16_t *to)
{
    int16_t second = two == SIZE_MAX ? 0 : pad;
    pad_pairs(pad, second, s->from, to);
    interleave(x, one + s->at, two == SIZE_MAX ? two : two + s->at, s->step, s->end - s->from,
               to + 2 * s->from);
    pad_pairs(pad, second, n - s->end, to + 2 * s->end);
}

static size_t channel_size(const dq_input_band *b)
{
    size_t size = 1;
    for (size_t d = 0; d < b->w.rank; d++)
        size *= (size_t)b->w.in[d];
    return size;
}

void dq_input_band_fill(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at, size_t channels,
                        int16_t pad, int16_t *to)
{
    const size_t rows = rows_of(b), channel = channel_size(b);
    for (size_t i = 0; i < rows * b->phases; i++) {
        const size_t row = i / b->phases;
        span s = find_span(b, first, b->phase[i % b->phases]);
        int64_t source;
        if (find_source(b, row, first, &source))
            s.at += (size_t)source;
        else
            s = (span){0};
        for (size_t c = 0; c < channels; c += 2) {
            size_t one = at + c * channel;
            fill_pairs(&s, x, one, c + 1 < channels ? one + channel : SIZE_MAX, b->pitch, pad,
                       to + c / 2 * b->plane + 2 * i * b->pitch);
        }
    }
}

/* Splits n quads of four channels, at stride `step`, into low and high bytes. */
static inline __attribute__((always_inline)) void split_quads(const uint16_t *const x[4], size_t at,
                                                              size_t step, size_t n, uint16_t sign_xor,
                                                              uint16_t *restrict low, uint16_t *restrict high)
{
    const uint16_t *x0 = x[0] + at, *x1 = x[1] + at, *x2 = x[2] + at, *x3 = x[3] + at;
    for (size_t i = 0; i < n; i++) {
        const uint16_t a = x0[i * step] ^ sign_xor, b = x1[i * step] ^ sign_xor;
        const uint16_t c = x2[i * step] ^ sign_xor, d = x3[i * step] ^ sign_xor;
        low[2 * i] = (uint16_t)((a & 255) | b << 8);
        low[2 * i + 1] = (uint16_t)((c & 255) | d << 8);
        high[2 * i] = (uint16_t)(a >> 8 | (b & 0xff00));
        high[2 * i + 1] = (uint16_t)(c >> 8 | (d & 0xff00));
    }
}

static void fill_quads(const span *s, const uint16_t *const x[4], uint16_t sign_xor, size_t n, int16_t pad,
                       int16_t *low, int16_t *high)
{
    const size_t count = s->end - s->from;
    uint16_t *lower = (uint16_t *)low + 2 * s->from, *upper = (uint16_t *)high + 2 * s->from;
    memset(low, pad & 255, s->from * 4);
    memset(high, (uint16_t)pad >> 8, s->from * 4);
    if (s->step == 1)
        split_quads(x, s->at, 1, count, sign_xor, lower, upper);
    else
        split_quads(x, s->at, s->step, count, sign_xor, lower, upper);
    memset(low + 2 * s->end, pad & 255, (n - s->end) * 4);
    memset(high + 2 * s->end, (uint16_t)pad >> 8, (n - s->end) * 4);
}

void dq_input_band_fill_quads(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                              size_t channels, int16_t pad, int16_t *to)
{
    const size_t rows = rows_of(b), channel = channel_size(b);
    const uint16_t sign_xor = x->dtype == DQ_UINT16 ? 0x8000 : 0;
    for (size_t i = 0; i < rows * b->phases; i++) {
        span s = find_span(b, first, b->phase[i % b->phases]);
        int64_t source;
        if (find_source(b, i / b->phases, first, &source))
            s.at += (size_t)source;
        else
            s = (span){0};
        for (size_t c = 0; c < channels; c += 4) {
            int16_t *low = to + c / 2 * b->plane + 2 * i * b->pitch;
            const uint16_t *from[4];
            for (size_t j = 0; j < 4; j++)
                from[j] = (const uint16_t *)x->data + at + (c + j < channels ? c + j : c) * channel;
            fill_quads(&s, from, sign_xor, b->pitch, pad, low, low + b->plane);
        }
    }
}

/* The rows of a plane of two axes that are inside the image. */
static span find_rows(const dq_input_band *b, size_t first)
{
    const int64_t step = b->w.kernel[0] == 1 ? b->w.stride[0] : 1;
    return inside((int64_t)first * b->w.stride[0] - b->w.begin[0], step, b->w.in[0], (int64_t)b->extent[0]);
}

/* Copies one phase of a plane of two axes of 16-bit values. */
static void take_phase(const dq_input_band *b, const uint16_t *x, const span *rows, const span *s,
                       uint16_t sign_xor, int16_t *to)
{
    const size_t in = (size_t)b->w.in[1], n = s->end - s->from, step = s->step, down = rows->step * in;
    const size_t next = b->row;
    x += rows->at * in + s->at;
    to += rows->from * next + s->from;
    for (size_t i = rows->end - rows->from; i > 0; i--, to += next, x += down)
        take_16(x, step, n, sign_xor, to);
}

void dq_input_band_fill_single(const dq_input_band *b, const dq_tensor *x, size_t first, size_t at,
                               int16_t pad, int16_t *to)
{
    const size_t rows = rows_of(b), pitch = b->pitch;
    const bool is_16_bit = dq_dtype_get(x->dtype)->bits == 16, flat = b->w.rank == 2 && is_16_bit;
    const uint16_t sign_xor = x->dtype == DQ_UINT16 ? 0x8000 : 0;
    const span image = flat ? find_rows(b, first) : (span){0};
    fill(pad, rows * b->row + 1, to); /* one more value, which is read as slack */
    for (size_t i = 0; i < b->phases; i++) {
        const span s = find_span(b, first, b->phase[i]);
        int16_t *out = to + i * pitch;
        if (flat) {
            take_phase(b, (const uint16_t *)x->data + at, &image, &s, sign_xor, out);
            continue;
        }
        const size_t n = s.end - s.from, each = s.step == 1 ? n : 1;
        for (size_t row = 0; row < rows && n > 0; row++, out += b->row) {
            int64_t source;
            if (!find_source(b, row, first, &source))
                continue;
            const size_t source_index = at + (size_t)source + s.at;
            if (is_16_bit)
                take_16((const uint16_t *)x->data + source_index, s.step, n, sign_xor, out + s.from);
            else
                for (size_t k = 0; k < n; k += each)
                    dq_qgemm16_load(x->dtype, x->data, source_index + k * s.step, each, out + s.from + k);
        }
    }
}
