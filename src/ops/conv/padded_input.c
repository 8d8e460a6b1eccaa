/* SPDX-License-Identifier: Apache-2.0 */
/* Padded NHWC images of bytes: layout, offsets and filling. */
#include "base/checked.h"
#include "ops/conv/conv_s8.h"

#include <string.h>

/* Rows of a `whole` image: approximate bytes, and the divisor of their pixels. */
enum { PIECE = 1 << 14, SQUARE = 64 };

/* True if every window is a single pixel of NHWC x, without padding. */
static bool are_pixels(const dq_conv_shape *s)
{
    const dq_window *w = &s->window;
    bool are = s->x_last && s->kernel_size == 1;
    for (size_t i = 0; are && i < w->rank; i++)
        are = w->begin[i] == 0 && w->out[i] > 0 && (w->out[i] - 1) * w->stride[i] < w->in[i];
    return are;
}

bool dq_padded_input_layout(const dq_conv_shape *s, size_t unit, bool pieces, dq_padded_input *image)
{
    const dq_window *w = &s->window;
    size_t rank = w->rank, step = unit;
    bool pixels = are_pixels(s);
    memset(image, 0, sizeof *image);
    image->rank = rank;
    image->unit = unit;
    image->whole = pieces;
    image->pixels = s->x_last;
    for (size_t i = rank; i-- > 0;) {
        /* dq_window_infer has checked this for overflow. */
        int64_t extent = pixels      ? w->in[i]
                         : w->out[i] ? (w->out[i] - 1) * w->stride[i] + dq_window_span(w, i)
                                     : 0;
        image->extent[i] = (size_t)extent;
        image->step[i] = step;
        image->whole = image->whole && w->begin[i] == 0 && extent == w->in[i];
        if (!dq_mul_size(step, (size_t)extent, &step))
            return false;
    }
    image->size = step;
    image->width = image->extent[rank - 1];
    image->rows = 1;
    for (size_t i = 0; i + 1 < rank; i++)
        image->rows *= image->extent[i];
    if (image->whole) {
        image->width = (PIECE / (unit + 1) / SQUARE + 1) * SQUARE;
        image->rows = s->in_size / image->width + (s->in_size % image->width != 0);
    }
    return true;
}

ptrdiff_t dq_padded_input_offset(const dq_padded_input *image, const dq_window *w, size_t t)
{
    size_t offset = 0;
    for (size_t i = image->rank; i-- > 0; t /= (size_t)w->kernel[i])
        offset += t % (size_t)w->kernel[i] * (size_t)w->dilation[i] * image->step[i];
    return (ptrdiff_t)offset;
}

size_t dq_padded_input_corner(const dq_padded_input *image, const dq_window *w, size_t p)
{
    size_t offset = 0;
    for (size_t i = image->rank; i-- > 0; p /= (size_t)w->out[i])
        offset += p % (size_t)w->out[i] * (size_t)w->stride[i] * image->step[i];
    return offset;
}

bool dq_padded_input_source(const dq_padded_input *image, const dq_window *w, size_t row, size_t *at)
{
    size_t plane = (size_t)w->in[image->rank - 1];
    *at = 0;
    for (size_t i = image->rank - 1; i-- > 0; row /= image->extent[i]) {
        size_t position = row % image->extent[i], begin = (size_t)w->begin[i];
        if (position < begin || position - begin >= (size_t)w->in[i])
            return false;
        *at += (position - begin) * plane;
        plane *= (size_t)w->in[i];
    }
    return true;
}

void dq_padded_input_planes(const dq_padded_input_fill *fill, size_t row, size_t first, size_t end,
                            uint8_t *out)
{
    const dq_padded_input *image = fill->image;
    size_t plane = fill->s->in_size, from = row * image->width;
    fill->kernels->transpose_x8(fill->x + first * plane + from, plane, end - first,
                                dq_least(plane - from, image->width), fill->sign_xor, out + first,
                                image->unit);
}

void dq_padded_input_row(const dq_padded_input_fill *fill, size_t row, uint8_t *out)
{
    const dq_padded_input *image = fill->image;
    const dq_conv_shape *s = fill->s;
    const dq_window *w = &s->window;
    size_t from = row * image->width, unit = image->unit, width = image->width, begin = 0, inside;
    if (image->whole) {
        width = inside = dq_least(s->in_size - from, width);
    } else {
        size_t last = image->rank - 1;
        begin = dq_least((size_t)w->begin[last], width);
        inside = dq_least((size_t)w->in[last], width - begin);
        if (!dq_padded_input_source(image, w, row, &from))
            inside = 0;
    }
    memset(out, fill->pad, begin * unit);
    out += begin * unit;
    if (image->pixels)
        dq_gemm_s8_copy(fill->x + from * unit, inside * unit, fill->sign_xor, out);
    else if (inside)
        fill->kernels->transpose_x8(fill->x + from, s->in_size, unit, inside, fill->sign_xor, out, unit);
    memset(out + inside * unit, fill->pad, (width - begin - inside) * unit);
}
