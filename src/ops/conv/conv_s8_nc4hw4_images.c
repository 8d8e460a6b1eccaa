/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the NC4HW4 images of conv_s8_nc4hw4.c: planes of 4-byte pixels. */
#include "ops/conv/conv_s8.h"

#include <string.h>

enum { STEP = DQ_NC4HW4_STEP };

size_t dq_conv_s8_nc4hw4_row(const dq_conv_s8 *conv)
{
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    return l->by_rows ? l->phase * l->stride + (STEP - 1) * (size_t)conv->s.window.dilation[1] : 0;
}

typedef struct filling {
    const dq_conv_s8_batch_tile *pass;
    const uint8_t *pixels;       /* NHWC x: pixels of a group; NCHW x: NULL */
    const uint8_t *planes[STEP]; /* NCHW x: planes of four channels; NULL: no such channel */
    uint8_t sign_xor, pad;
} filling;

/* Interleaves n pixels from element `at` of the planes on, at the convolution's stride. */
static void put_pixels(const filling *f, size_t at, size_t n, uint8_t *out)
{
    enum { PIXELS_PER_BLOCK = 128 }; /* pixels copied at a time */
    const dq_kernels *kernels = f->pass->call->kernels;
    size_t stride = f->pass->conv->nc4hw4.stride;
    uint8_t picked[STEP][PIXELS_PER_BLOCK];
    const uint8_t *from[STEP];
    for (size_t p = 0, some; p < n; p += some) {
        some = stride == 1 || n - p < PIXELS_PER_BLOCK ? n - p : PIXELS_PER_BLOCK;
        for (size_t e = 0; e < STEP; e++) {
            const uint8_t *x = f->planes[e] ? f->planes[e] + at + p * stride : NULL;
            from[e] = x;
            if (!x || stride == 1)
                continue;
            from[e] = picked[e];
            if (stride == 2) /* a constant, for the compiler's vectorizer */
                for (size_t i = 0; i < some; i++)
                    picked[e][i] = x[2 * i];
            else
                for (size_t i = 0; i < some; i++)
                    picked[e][i] = x[i * stride];
        }
        kernels->conv_nc4hw4_s8->interleave(from, some, f->sign_xor, out + p * STEP);
    }
}

/* Transposes NHWC pixels at stride `step`, as 32-bit elements of four channels, to a group's planes. */
static void transpose_quads(const filling *f, const void *x, size_t step, size_t n, uint8_t *out)
{
    const dq_conv_s8_nc4hw4 *l = &f->pass->conv->nc4hw4;
    f->pass->call->kernels->transpose_x32(x, step, n, l->planes, (uint32_t *)(void *)out, l->plane / STEP);
    for (size_t q = 0; f->sign_xor && q < l->planes; q++)
        for (size_t i = 0; i < n * STEP; i++)
            out[q * l->plane + i] ^= f->sign_xor;
}

/* As put_pixels, for NHWC x and all channels of a group. Channels that are not a multiple of 4, or unaligned,
 * are copied and padded first. The padding has weights of 0. */
static void transpose_pixels(const filling *f, size_t at, size_t n, uint8_t *out)
{
    enum { MAX_WORDS = 4096 }; /* 32-bit elements copied at a time */
    const dq_conv_shape *s = &f->pass->conv->s;
    const dq_conv_s8_nc4hw4 *l = &f->pass->conv->nc4hw4;
    const uint8_t *x = f->pixels + at * s->in_channels;
    size_t step = l->stride * s->in_channels, most = MAX_WORDS / l->planes;
    uint32_t whole[MAX_WORDS];
    if (s->group_in % STEP == 0 && (uintptr_t)x % sizeof *whole == 0) {
        transpose_quads(f, x, step / STEP, n, out);
        return;
    }
    for (size_t p = 0, some; p < n; p += some) {
        some = n - p < most ? n - p : most;
        memset(whole, 0, some * l->planes * sizeof *whole);
        for (size_t i = 0; i < some; i++)
            memcpy(whole + i * l->planes, x + (p + i) * step, s->group_in);
        transpose_quads(f, whole, l->planes, some, out + p * STEP);
    }
}

static void put(const filling *f, size_t at, size_t n, uint8_t *out)
{
    if (f->pixels)
        transpose_pixels(f, at, n, out);
    else
        put_pixels(f, at, n, out);
}

static void put_padding(const filling *f, size_t n, uint8_t *out)
{
    const dq_conv_s8_nc4hw4 *l = &f->pass->conv->nc4hw4;
    for (size_t q = 0; n && q < (f->pixels ? l->planes : 1); q++)
        memset(out + q * l->plane, f->pad, n * STEP);
}

/* Fills a row if `by_rows`: a pixel is four neighbors of one channel. The channel's row is padded first. */
static void fill_neighbours(const filling *f, size_t at, uint8_t *padded, uint8_t *out)
{
    const dq_conv_s8 *conv = f->pass->conv;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    size_t size = dq_conv_s8_nc4hw4_row(conv), before = (size_t)conv->s.window.begin[1],
           n = (size_t)conv->s.window.in[1];
    filling moved = *f;
    before = before < size ? before : size;
    n = n < size - before ? n : size - before;
    memset(padded, f->pad ^ f->sign_xor, size);
    memcpy(padded + before, f->planes[0] + at, n);
    for (size_t e = 0; e < STEP; e++)
        moved.planes[e] = padded + e * (size_t)conv->s.window.dilation[1];
    for (size_t i = 0; i < l->phases; i++)
        put_pixels(&moved, i, l->phase, out + i * l->phase * STEP);
}

/* Fills row `row` of one plane, or of all planes of a group. */
static void fill_row(const filling *f, size_t row, uint8_t *scratch, uint8_t *out)
{
    const dq_conv_s8 *conv = f->pass->conv;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    const dq_window *w = &conv->s.window;
    int64_t y = (int64_t)row * (l->every_row ? 1 : w->stride[0]) - w->begin[0], stride = (int64_t)l->stride;
    if (y < 0 || y >= w->in[0]) {
        put_padding(f, l->row / STEP, out);
        return;
    }
    if (l->by_rows) {
        fill_neighbours(f, (size_t)(y * w->in[1]), scratch + l->row_offset, out);
        return;
    }
    for (size_t i = 0; i < l->phases; i++, out += l->phase * STEP) {
        int64_t x = (int64_t)i - w->begin[1], phase = (int64_t)l->phase;
        int64_t before = x < 0 ? (stride - 1 - x) / stride : 0;
        before = before < phase ? before : phase;
        int64_t end = x < w->in[1] ? (w->in[1] - x + stride - 1) / stride : 0;
        end = end < before ? before : end < phase ? end : phase;
        put_padding(f, (size_t)before, out);
        put(f, (size_t)(y * w->in[1] + x + before * stride), (size_t)(end - before), out + before * STEP);
        put_padding(f, (size_t)(phase - end), out + end * STEP);
    }
}

/* Sets the source of plane `number` of a group; for NHWC x, that of all planes of the group. */
static void find_source(filling *f, size_t image, size_t group, size_t number)
{
    const dq_conv_shape *s = &f->pass->conv->s;
    const dq_op_call *call = f->pass->call;
    const uint8_t *x = call->in[f->pass->conv->x]->data;
    size_t first = f->pass->conv->nc4hw4.by_rows ? number : number * STEP;
    if (s->x_last) {
        f->pixels = x + (f->pass->first + image) * s->in_channels * s->in_size + group * s->group_in;
        return;
    }
    x += ((f->pass->first + image) * s->in_channels + group * s->group_in + first) * s->in_size;
    for (size_t e = 0; e < STEP; e++)
        f->planes[e] = first + e < s->group_in ? x + e * s->in_size : NULL;
}

static filling begin_filling(const dq_conv_s8_batch_tile *pass)
{
    filling f = {.pass = pass, .sign_xor = dq_gemm_s8_sign_xor(pass->call->in[pass->conv->x]->dtype, false)};
    f.pad = (uint8_t)dq_conv_s8_zero(pass->call, pass->conv->x_zero, 0) ^ f.sign_xor;
    return f;
}

static size_t planes_at_once(const dq_conv_s8 *conv)
{
    return conv->s.x_last ? conv->nc4hw4.planes : 1;
}

void dq_conv_s8_nc4hw4_block(const dq_conv_s8_batch_tile *pass, size_t image, size_t group, size_t first,
                             size_t n, uint8_t *out)
{
    filling f = begin_filling(pass);
    for (size_t number = 0; number < pass->conv->nc4hw4.planes; number += planes_at_once(pass->conv)) {
        find_source(&f, image, group, number);
        put(&f, first, n, out + number * pass->conv->nc4hw4.plane);
    }
}

static void fill_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const dq_conv_s8_batch_tile *pass = arg;
    const dq_conv_s8_nc4hw4 *l = &pass->conv->nc4hw4;
    size_t some = planes_at_once(pass->conv), sets = l->planes / some * pass->conv->s.group;
    filling f = begin_filling(pass);
    for (size_t i = begin; i < end; i++) {
        size_t row = i % l->stored, number = i / l->stored % sets * some, image = i / l->stored / sets;
        find_source(&f, image, number / l->planes, number % l->planes);
        fill_row(&f, row, dq_call_worker_scratch(pass->call, worker),
                 pass->images + image * l->image + number * l->plane + row * l->row);
    }
}

void dq_conv_s8_nc4hw4_images(const dq_conv_s8_batch_tile *pass)
{
    enum { PIECE = 1 << 14 }; /* approximate bytes per task */
    const dq_conv_s8 *conv = pass->conv;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    dq_conv_s8_batch_tile run = *pass;
    size_t some = planes_at_once(conv);
    dq_parallel(pass->call->threads, pass->count * conv->s.group * (l->planes / some) * l->stored,
                PIECE / (l->row * some + 1) + 1, fill_rows, &run);
}
