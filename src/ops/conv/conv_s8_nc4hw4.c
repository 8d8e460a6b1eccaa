/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution (kernels/conv_nc4hw4/nc4hw4.h) over two spatial axes, or 1×1 over any.
 *
 * An image is first copied to NC4HW4 with its padding. If the stride along a row is above 1, each row is
 * split by column modulo the stride: columns 0, stride, 2 * stride …, then those from 1 on, and so on. The
 * inputs of a kernel position for a row of windows are then contiguous. Rows and columns that no window reads
 * are left out, as for 1×1 kernels with strides.
 *
 * Few input channels would waste most of the 4 channels of a step. If it wastes less, the four bytes of a
 * pixel are of one channel instead: the pixel and the next three that the kernel reads in its row
 * (`by_rows`).
 *
 * A task takes rows of windows of one group. */
#include "base/checked.h"
#include "ops/conv/conv_s8.h"
#include "ops/packers.h"

#include <math.h>
#include <string.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, PIXELS = DQ_NC4HW4_PIXELS };
enum { TRANSPOSED = 8 }; /* panels of results that are transposed to NHWC at a time */

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Parameters of the packed weights; the key of dq_call_pack, compared as bytes. */
typedef struct form {
    const dq_conv_nc4hw4_s8 *kernel;
    size_t group, in, out, taps, row, steps,
        panels; /* in, out: channels of a group; row: elements of a kernel row if by_rows, else 0 */
    size_t sums_offset, starts_offset, first;
    uint8_t sign_xor;
} form;

/* Writes n weights (ones if `from` is NULL) at stride `row_stride`. Returns their sum. */
static inline __attribute__((always_inline)) int32_t put_row(const uint8_t *from, size_t n, uint8_t sign_xor,
                                                             int8_t *restrict to, size_t row_stride)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        int8_t value = from ? (int8_t)(from[i] ^ sign_xor) : 1;
        to[i * row_stride] = value;
        sum += value;
    }
    return sum;
}

/* Arranges the weights of one panel for the kernel's pack function, and their sums: output channels from
 * `first` on of the group at w. If w is NULL, the first channel has ones. Missing weights are 0.
 *
 * by_rows: the elements of a kernel row are contiguous. A kernel of one element: input channels are
 * contiguous. Otherwise a step has one kernel element of four input channels, and the steps of such channels
 * are consecutive. */
static void arrange(const form *f, const uint8_t *w, size_t first, int8_t *to, int32_t *sums)
{
    size_t row = f->row ? f->row : f->taps == 1 ? f->in : f->taps, rows = f->in * f->taps / row;
    size_t each = (row + STEP - 1) / STEP * STEP; /* weights of a contiguous row, padded to whole steps */
    memset(to, 0, OUTS * f->steps * STEP);
    for (size_t j = 0; j < OUTS; j++, to += f->steps * STEP) {
        const uint8_t *from = w ? w + (first + j) * f->in * f->taps : NULL;
        sums[j] = 0;
        if (w ? first + j >= f->out : j > 0)
            continue;
        for (size_t r = 0; r < rows; r++, from = from ? from + row : NULL)
            sums[j] += f->row || f->taps == 1
                           ? put_row(from, row, f->sign_xor, to + r * each, 1)
                           : put_row(from, row, f->sign_xor, to + r / STEP * STEP * row + r % STEP, STEP);
    }
}

/* Packs the panels contiguously, a panel of ones last. Each is arranged past the maximum size of its packed
 * form, so that packing does not overwrite it. */
void dq_pack_conv_nc4hw4_s8(void *packed, const dq_tensor *from, const void *key)
{
    const form *f = key;
    size_t start = f->first, most = f->kernel->panel_size(f->steps);
    int32_t *sums = (int32_t *)(void *)((char *)packed + f->sums_offset);
    size_t *starts = (size_t *)(void *)((char *)packed + f->starts_offset);
    for (size_t i = 0; i <= f->group * f->panels; i++) {
        const uint8_t *w = (const uint8_t *)from->data + i / f->panels * f->out * f->in * f->taps;
        int8_t *arranged = (int8_t *)packed + start + most;
        arrange(f, i == f->group * f->panels ? NULL : w, i % f->panels * OUTS, arranged, sums + i * OUTS);
        starts[i] = start;
        start += f->kernel->pack(arranged, f->steps, (char *)packed + start);
    }
}

/* Panels of a kernel without `used` have the same size. */
static size_t used_of_panel(const void *panel, size_t size, const void *key)
{
    const form *f = key;
    const size_t most = f->kernel->panel_size(f->steps);
    if (f->kernel->used)
        return f->kernel->used(f->steps, panel, size);
    return size < most ? 0 : most;
}

size_t dq_packed_conv_nc4hw4_s8_used(const void *packed, size_t size, size_t full, const void *key)
{
    const form *f = key;
    const dq_packed_panels panels = {.starts = f->starts_offset,
                                     .count = f->group * f->panels + 1,
                                     .first = f->first,
                                     .used = used_of_panel};
    return dq_packed_panels_used(&panels, packed, size, full, key);
}

/* ---- Planning ----------------------------------------------------------------------------------------- */

/* True for an unpadded 1×1 convolution at stride 1, whose image is then one row of pixels. */
static bool is_linear(const dq_conv_shape *s, bool unpadded)
{
    return s->kernel_size == 1 && unpadded && s->out_size == s->in_size;
}

static size_t round_up(size_t n)
{
    return (n + STEP - 1) / STEP * STEP;
}

static bool is_by_rows(const dq_conv_shape *s, bool unpadded)
{
    size_t row = (size_t)s->window.kernel[s->window.rank - 1];
    return !s->x_last && !is_linear(s, unpadded) && s->group_in < STEP &&
           round_up(row) * s->group_in < STEP * row;
}

/* Bytes of a window. Deep windows do not stay in L1, although every panel of weights reads them again; and
 * GEMM kernels accumulate more products of small weights in 16 bits. */
static size_t depth_of(const dq_conv_shape *s, bool unpadded)
{
    size_t row = (size_t)s->window.kernel[s->window.rank - 1];
    return is_by_rows(s, unpadded) ? s->group_in * (s->kernel_size / row) * round_up(row)
                                   : round_up(s->group_in) * s->kernel_size;
}

bool dq_conv_s8_nc4hw4_is_applicable(const void *problem, dq_reason *reason)
{
    enum { MAX_STRIDE = 8, MAX_DEPTH = 256 }; /* maximum stride along a row; maximum bytes of a window */
    const dq_conv_s8_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const dq_window *w = &s->window;
    const dq_conv_nc4hw4_s8 *kernel = p->kernels->conv_nc4hw4_s8;
    const size_t in = s->group_in, depth = depth_of(s, p->unpadded);
    const size_t most = s->kernel_size == 1 ? dq_least(kernel->deepest, MAX_DEPTH) : MAX_DEPTH;
    if (p->depthwise)
        return dq_not_applicable(reason, "groups have one input channel each (depthwise)");
    if (!p->constant_weights)
        return dq_not_applicable(reason, "weights are not constant");
    if (in == 0 || (round_up(in) > 2 * in && !is_by_rows(s, p->unpadded)))
        return dq_not_applicable(reason, "%zu input channels do not fill groups of %d", in, STEP);
    if (depth > most || s->kernel_size > MAX_DEPTH)
        return dq_not_applicable(reason, "windows have %zu bytes, expected at most %zu", depth, most);
    if (s->out_size < kernel->least)
        return dq_not_applicable(reason, "%zu output pixels, expected at least %zu", s->out_size,
                                 kernel->least);
    if ((s->x_last || s->y_last) && !kernel->nhwc)
        return dq_not_applicable(reason, "the kernel takes and gives channels first only");
    if (is_linear(s, p->unpadded))
        return true;
    if (w->rank != 2 || w->stride[1] > MAX_STRIDE)
        return dq_not_applicable(reason, "%zu spatial axes and stride %d, expected 2 and at most %d", w->rank,
                                 (int)w->stride[w->rank - 1], MAX_STRIDE);
    const size_t width = (size_t)w->out[1],
                 wide = (width + kernel->lanes - 1) / kernel->lanes * kernel->lanes;
    return wide - width <= width / 4 ||
           dq_not_applicable(reason, "rows of %zu pixels leave much of %zu vector lanes empty", width,
                             kernel->lanes);
}

dq_algorithm_work dq_conv_s8_nc4hw4_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const bool linear = is_linear(s, p->unpadded);
    const size_t lanes = p->kernels->conv_nc4hw4_s8->lanes, last = s->window.rank - 1;
    const size_t width = linear ? s->out_size : (size_t)s->window.out[last], rows = s->out_size / width;
    const double pixels = (double)(s->batch * rows) * (double)((width + lanes - 1) / lanes * lanes);
    const double out = (double)((s->group_out + OUTS - 1) / OUTS * OUTS * s->group);
    /* NCHW planes are interleaved; NHWC pixels are transposed, and so are NHWC results. */
    const double read = (double)p->image_bytes * (s->x_last ? 2 : 1);
    const double written = s->y_last ? (double)s->out_size * out * sizeof(int32_t) : 0;
    return (dq_algorithm_work){.macs = pixels * out * (double)depth_of(s, p->unpadded),
                               .bytes = (double)s->batch * (read + written),
                               .calls = (double)(s->batch * rows) * out / OUTS};
}

static void set_shape(dq_conv_s8 *conv)
{
    const dq_conv_shape *s = &conv->s;
    dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    l->linear = is_linear(s, conv->image.whole);
    l->by_rows = is_by_rows(s, conv->image.whole);
    l->planes = l->by_rows ? s->group_in : round_up(s->group_in) / STEP;
    l->steps = depth_of(s, conv->image.whole) / STEP;
    l->rows = l->linear ? 1 : (size_t)s->window.out[0];
    l->width = l->linear ? s->out_size : (size_t)s->window.out[1];
    l->stride = l->linear ? 1 : (size_t)s->window.stride[1];
}

/* Sets the layout of an image; if linear, that of a task's copy. */
static bool lay_out_image(dq_conv_s8 *conv)
{
    const dq_conv_shape *s = &conv->s;
    const dq_window *w = &s->window;
    dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    size_t lines;
    if (l->linear)
        return dq_mul_size(l->across * STEP / DQ_ALIGN | 1, DQ_ALIGN, &l->plane);
    l->every_row = w->kernel[0] > 1;
    l->stored = l->every_row ? conv->image.extent[0] : l->rows;
    l->phase = (conv->image.extent[1] + l->stride - 1) / l->stride;
    bool one = w->kernel[1] == 1 || (l->by_rows && STEP * (size_t)w->dilation[1] % l->stride == 0);
    l->phases = one ? 1 : l->stride;
    if (!dq_mul_size(l->phase, l->phases * STEP, &l->row) || !dq_mul_size(l->row, l->stored, &l->plane) ||
        !dq_align_size(l->plane, DQ_ALIGN, &l->plane))
        return false;
    lines = l->plane / DQ_ALIGN | 1; /* odd: planes fall into different cache sets */
    return dq_mul_size(lines, DQ_ALIGN, &l->plane) && dq_mul_size(l->planes * s->group, l->plane, &l->image);
}

static dq_status find_offsets(dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    const dq_window *w = &conv->s.window;
    dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    size_t taps = l->steps / l->planes, wide = l->by_rows ? STEP : 1;
    conv->offsets = DQ_NEW_ARRAY(call->arena, l->steps, ptrdiff_t);
    if (!conv->offsets)
        return dq_no_memory(err, l->steps, "offsets of a kernel's elements");
    for (size_t i = 0; i < l->steps; i++) {
        size_t t = i % taps, row = 0, column = 0;
        if (!l->linear) {
            size_t each = ((size_t)w->kernel[1] + wide - 1) / wide; /* steps of a kernel row */
            row = t / each * (size_t)w->dilation[0];
            column = t % each * wide * (size_t)w->dilation[1];
        }
        size_t at = column % l->stride * l->phase + column / l->stride;
        conv->offsets[i] = (ptrdiff_t)(i / taps * l->plane + row * l->row + at * STEP);
    }
    return DQ_OK;
}

/* Chooses blocks of pixels that stay in the cache, with all channels, while every panel reads them. */
static void cut(dq_conv_s8 *conv)
{
    enum {
        BLOCK_BYTES = 1 << 15,
        MIN_PIXELS = 32,
        MAX_PIXELS = 512
    }; /* bytes of a block; bounds of its pixels */
    const dq_conv_shape *s = &conv->s;
    dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    size_t pixels = BLOCK_BYTES / (l->planes * STEP), blocks;
    pixels = pixels < MIN_PIXELS ? MIN_PIXELS : pixels > MAX_PIXELS ? MAX_PIXELS : pixels;
    l->across = l->width;
    l->rows_per_task = 1;
    if (l->linear) {
        blocks = (l->width + pixels - 1) / pixels;
        l->across = ((l->width + blocks - 1) / blocks + PIXELS - 1) / PIXELS * PIXELS;
    } else if (l->width < pixels) {
        l->rows_per_task = pixels / l->width < l->rows ? pixels / l->width : l->rows;
    }
    l->blocks = l->linear ? (l->width + l->across - 1) / l->across
                          : (l->rows + l->rows_per_task - 1) / l->rows_per_task;
    conv->pass = dq_conv_s8_images(conv);
    l->panels = (s->group_out + OUTS - 1) / OUTS;
}

static bool lay_out_weights(const dq_op_call *call, dq_conv_s8 *conv, form *f, size_t *size)
{
    const dq_conv_shape *s = &conv->s;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    size_t panels, most, at;
    memset(f, 0, sizeof *f);
    f->kernel = call->kernels->conv_nc4hw4_s8;
    f->group = s->group;
    f->in = s->group_in;
    f->out = s->group_out;
    f->taps = s->kernel_size;
    f->row = l->by_rows ? (size_t)s->window.kernel[1] : 0;
    f->steps = l->steps;
    f->panels = l->panels;
    f->sign_xor = dq_gemm_s8_sign_xor(call->in[conv->w]->dtype, true);
    most = f->kernel->panel_size(l->steps);
    bool fits = most && dq_mul_size(l->panels, s->group, &panels) && dq_add_size(panels, 1, &panels) &&
                dq_reserve_size(size, panels, OUTS * sizeof(int32_t), DQ_ALIGN, &f->sums_offset) &&
                dq_reserve_size(size, panels, sizeof(size_t), DQ_ALIGN, &f->starts_offset) &&
                dq_reserve_size(size, panels, most, DQ_ALIGN, &f->first) &&
                dq_reserve_size(size, l->steps, OUTS * STEP, DQ_ALIGN, &at);
    conv->nc4hw4.sums_offset = f->sums_offset;
    conv->nc4hw4.starts_offset = f->starts_offset;
    return fits;
}

/* Finds exact scales if all parameters of requantization are constant. It does not pay for few pixels. */
static dq_status find_exact_scale(dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    enum { MIN_PIXELS = 196 }; /* minimum pixels */
    const dq_conv_shape *s = &conv->s;
    const dq_conv_nc4hw4_s8 *kernel = call->kernels->conv_nc4hw4_s8;
    double scale, most = 255.0 * 255.0 * (double)(s->group_in * s->kernel_size);
    dq_requantize_to to;
    if (s->out_size < MIN_PIXELS || s->y_last || !kernel->exact_scale || !conv->qvalues ||
        !conv->qvalues(call, 0, &scale, &to) ||
        (dq_call_in(call, conv->bias) && !dq_call_constant(call, conv->bias)))
        return DQ_OK;
    float *exact_scale = conv->nc4hw4.exact_scale = DQ_NEW_ARRAY(call->arena, s->out_channels, float);
    if (!exact_scale)
        return dq_no_memory(err, s->out_channels, "scales of a convolution");
    for (size_t j = 0; j < s->out_channels && conv->qvalues(call, j, &scale, &to); j++)
        exact_scale[j] = kernel->exact_scale(&to, most + fabs((double)dq_conv_s8_bias(call, conv, j)));
    return DQ_OK;
}

dq_status dq_conv_s8_nc4hw4_prepare(dq_op_call *call, void *state, dq_error *err)
{
    dq_conv_s8 *conv = state;
    const dq_conv_shape *s = &conv->s;
    dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    size_t size = 0, *used = &call->scratch_size, *worker = &call->worker_scratch_size, columns;
    form f;
    set_shape(conv);
    cut(conv);
    if (!lay_out_image(conv))
        return dq_no_memory(err, SIZE_MAX, "a padded image");
    l->c_stride = (l->across * l->rows_per_task + 2 * PIXELS - 1) / PIXELS * PIXELS;
    bool fits =
        lay_out_weights(call, conv, &f, &size) && dq_mul_size(conv->own, s->out_channels, used) &&
        dq_align_size(*used, DQ_ALIGN, used) && dq_mul_size(l->panels * s->group, OUTS, &columns) &&
        dq_reserve_size(used, columns, 2 * sizeof(int32_t), DQ_ALIGN, &conv->columns_offset) &&
        dq_reserve_size(used, l->image, conv->pass, DQ_ALIGN, &conv->images_offset) &&
        dq_add_size(*used, PIXELS * STEP, used) &&
        dq_reserve_size(worker, l->c_stride, OUTS * sizeof(int32_t), DQ_ALIGN, &l->c_offset) &&
        dq_reserve_size(worker, l->c_stride, OUTS * sizeof(int32_t), DQ_ALIGN, &l->pixel_sums_offset) &&
        dq_reserve_size(worker, l->linear ? l->plane : 0, l->planes, DQ_ALIGN, &l->block_offset) &&
        dq_reserve_size(worker, dq_conv_s8_nc4hw4_row(conv), 1, DQ_ALIGN, &l->row_offset);
    if (s->y_last && s->group_out % OUTS == 0)
        fits = fits && dq_reserve_size(worker, l->c_stride, TRANSPOSED * OUTS, DQ_ALIGN, &l->results_offset);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "padded images");
    DQ_TRY(find_offsets(call, conv, err));
    DQ_TRY(find_exact_scale(call, conv, err));
    return dq_call_pack_deferred(call, conv->w, dq_pack_conv_nc4hw4_s8, &f, sizeof f, size, &conv->packed,
                                 err);
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

static size_t columns_of(const dq_conv_s8 *conv)
{
    return conv->nc4hw4.panels * conv->s.group * OUTS;
}

/* Sets the initial values of sums, and the zero points of weights. */
static void set_columns(const dq_op_call *call, const dq_conv_s8 *conv)
{
    const int32_t *sums =
        (const int32_t *)(const void *)((const char *)conv->packed + conv->nc4hw4.sums_offset);
    int32_t *init = (int32_t *)((char *)call->scratch + conv->columns_offset),
            *zero = init + columns_of(conv);
    uint32_t x_zero =
        (uint32_t)dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->x_zero, 0), call->in[conv->x]->dtype, false);
    uint32_t depth = (uint32_t)(conv->s.group_in * conv->s.kernel_size);
    size_t width = conv->nc4hw4.panels * OUTS;
    dq_conv_s8_columns(call, conv, width, init, zero);
    for (size_t g = 0; g < conv->s.group; g++)
        for (size_t j = g * width; j < g * width + conv->s.group_out; j++)
            init[j] = (int32_t)((uint32_t)init[j] - x_zero * ((uint32_t)sums[j] - depth * (uint32_t)zero[j]));
}

typedef struct task {
    const dq_conv_s8_batch_tile *pass;
    const uint8_t *x;             /* corner of the first window in the group's planes */
    size_t image, group, row, px; /* image of the batch; group; row and column of the first window */
    size_t rows, pixels;          /* rows of windows, and windows of a row */
    int32_t *c, *pixel_sums;
    uint8_t *qvalues; /* quantized results of TRANSPOSED panels before transposition to NHWC; NULL: none */
} task;

static void sum_panel(const task *t, size_t panel, const int32_t *init, int32_t *c)
{
    const dq_conv_s8 *conv = t->pass->conv;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    const size_t *starts = (const size_t *)(const void *)((const char *)conv->packed + l->starts_offset);
    size_t down = (l->every_row ? (size_t)conv->s.window.stride[0] : 1) * l->row;
    /* Contiguous rows, as of 1×1 kernels with strides, are computed as one. */
    bool one = down == t->pixels * STEP;
    size_t rows = one ? 1 : t->rows, pixels = one ? t->rows * t->pixels : t->pixels;
    for (size_t i = 0; i < rows; i++)
        t->pass->call->kernels->conv_nc4hw4_s8->sums(t->x + i * down, conv->offsets, l->steps,
                                                     (const char *)conv->packed + starts[panel], init, pixels,
                                                     c + i * pixels, l->c_stride);
}

static void run_panel(const task *t, size_t panel)
{
    const dq_conv_s8 *conv = t->pass->conv;
    const dq_op_call *call = t->pass->call;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    const int32_t *init = (const int32_t *)((const char *)call->scratch + conv->columns_offset);
    const int32_t *zero = init + columns_of(conv);
    size_t column = (t->group * l->panels + panel) * OUTS;
    dq_conv_sums out = {.conv = conv,
                        .call = call,
                        .batch = t->image,
                        .channels = 1,
                        .first = t->row * l->width + t->px,
                        .count = t->rows * t->pixels,
                        .c_stride = 1};
    sum_panel(t, t->group * l->panels + panel, init + column, t->c);
    size_t channels = conv->s.group_out - panel * OUTS < OUTS ? conv->s.group_out - panel * OUTS : OUTS;
    for (size_t j = 0; j < channels; j++)
        if (zero[column + j] != 0)
            call->kernels->subtract_scaled_s32(t->c + j * l->c_stride, out.count, zero[column + j],
                                               t->pixel_sums);
    out.channel = t->group * conv->s.group_out + panel * OUTS;
    out.c = t->c;
    if (conv->s.y_last) {
        out.transposed = true;
        out.channels = channels;
        out.c_stride = l->c_stride;
        out.qvalues = t->qvalues ? t->qvalues + panel % TRANSPOSED * l->c_stride * OUTS : NULL;
        conv->store(&out);
        return;
    }
    for (size_t j = 0; j < channels; j++, out.channel++, out.c += l->c_stride)
        conv->store(&out);
}

/* Writes the quantized results of panels first … end - 1 to NHWC output by transposing 32-bit elements. */
static void put_qvalues(const task *t, size_t first, size_t end)
{
    const dq_conv_shape *s = &t->pass->conv->s;
    const dq_conv_s8_nc4hw4 *l = &t->pass->conv->nc4hw4;
    const dq_op_call *call = t->pass->call;
    size_t pixel = t->image * s->out_size + t->row * l->width + t->px;
    uint8_t *out = dq_data(call->out[0], uint8_t) + pixel * s->out_channels + t->group * s->group_out;
    call->kernels->transpose_x32((const uint32_t *)(void *)t->qvalues + first % TRANSPOSED * l->c_stride,
                                 l->c_stride, end - first, t->rows * t->pixels,
                                 (uint32_t *)(void *)(out + first * OUTS), s->out_channels / OUTS);
}

static void run_panels(const task *t, size_t first, size_t end)
{
    for (size_t panel = first, begin = first; panel < end; panel++) {
        run_panel(t, panel);
        if (t->qvalues && (panel % TRANSPOSED == TRANSPOSED - 1 || panel + 1 == end)) {
            put_qvalues(t, begin, panel + 1);
            begin = panel + 1;
        }
    }
}

static bool any_zero(const dq_conv_s8_batch_tile *pass)
{
    const dq_conv_s8 *conv = pass->conv;
    const int32_t *zero =
        (const int32_t *)((const char *)pass->call->scratch + conv->columns_offset) + columns_of(conv);
    for (size_t i = 0; i < columns_of(conv); i++)
        if (zero[i] != 0)
            return true;
    return false;
}

/* Partition of blocks and panels over threads. Panels are split in sets of `some`, transposed together. */
typedef struct tasks {
    const dq_conv_s8_batch_tile *pass;
    dq_partition cut;
    size_t some, sets;
} tasks;

static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    static const int32_t none[OUTS] = {0};
    const tasks *all = arg;
    const dq_conv_s8_batch_tile *pass = all->pass;
    const dq_conv_s8 *conv = pass->conv;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    char *scratch = dq_call_worker_scratch(pass->call, worker);
    bool zeros = any_zero(pass);
    bool transposes = l->results_offset && (uintptr_t)pass->call->out[0]->data % sizeof(uint32_t) == 0;
    size_t down = (l->every_row ? (size_t)conv->s.window.stride[0] : 1) * l->row;
    for (size_t i = begin; i < end; i++) {
        size_t first, last, at = dq_partition_piece(&all->cut, i, all->sets, &first, &last);
        size_t block = at % l->blocks, rest = at / l->blocks, image = rest / conv->s.group;
        task t = {.pass = pass, .image = pass->first + image, .group = rest % conv->s.group};
        t.row = l->linear ? 0 : block * l->rows_per_task;
        t.px = l->linear ? block * l->across : 0;
        t.rows = l->rows - t.row < l->rows_per_task ? l->rows - t.row : l->rows_per_task;
        t.pixels = l->width - t.px < l->across ? l->width - t.px : l->across;
        if (l->linear)
            dq_conv_s8_nc4hw4_block(pass, image, t.group, t.px, t.pixels,
                                    (uint8_t *)scratch + l->block_offset);
        t.x = l->linear ? (const uint8_t *)scratch + l->block_offset
                        : pass->images + image * l->image + t.group * l->planes * l->plane + t.row * down;
        t.c = (int32_t *)(scratch + l->c_offset);
        t.pixel_sums = (int32_t *)(scratch + l->pixel_sums_offset);
        if (zeros)
            sum_panel(&t, conv->s.group * l->panels, none, t.pixel_sums);
        t.qvalues = transposes ? (uint8_t *)scratch + l->results_offset : NULL;
        last *= all->some;
        run_panels(&t, first * all->some, last < l->panels ? last : l->panels);
    }
}

static void run_pass(const dq_conv_s8_batch_tile *pass)
{
    const dq_conv_s8 *conv = pass->conv;
    const dq_conv_s8_nc4hw4 *l = &conv->nc4hw4;
    tasks all = {.pass = pass, .some = conv->s.y_last ? TRANSPOSED : 1};
    all.sets = (l->panels + all.some - 1) / all.some;
    if (!l->linear)
        dq_conv_s8_nc4hw4_images(pass);
    all.cut = dq_threads_cut(pass->call->threads, pass->count * conv->s.group * l->blocks, all.sets);
    size_t products = l->across * l->rows_per_task * l->panels * OUTS * l->steps * STEP / all.cut.parts;
    dq_parallel(pass->call->threads, dq_partition_count(&all.cut), dq_gemm_s8_grain(products), run_tasks,
                &all);
}

void dq_conv_s8_nc4hw4_run(const dq_op_call *call, const void *state, const void *operands)
{
    (void)operands;
    dq_conv_s8_batch_tile pass = {.call = call, .conv = state};
    set_columns(call, pass.conv);
    dq_conv_s8_run_batch_tiles(&pass, false, run_pass);
}
