/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolution of NCHW planes (one input channel per group).
 *
 * Weights: the zero point is subtracted first, which gives int16 weights w' of magnitude at most 255. Only
 * the compensation for x's zero point zx remains: sum x w' - zx * sum w'.
 *
 * Three algorithms:
 *
 *   - depthwise_nchw: the padded plane is expanded to pairs of neighboring pixels (dq_dwconv_pairs_s8_fn), so
 *     that kernel elements 2p and 2p + 1 of a row are one step. An odd last element is paired with weight 0.
 *     If 2 * dilation is a multiple of the stride, the same pairs serve all p; else they are written for each
 *     p. Rows of pairs are written when the first output reads them, and are in the cache for the next ones.
 *
 *   - depthwise_nchw_3x3: 3×3 kernels at stride 1 read the padded plane itself (dq_dwconv_3x3_s8).
 *
 *   - depthwise_nchw_requantize: fused requantization without sums in memory (dq_dwconv_requantize_s8). It
 * needs constant weights, scales and zero points, one or two axes, and stride 1 or 2. */
#include "base/checked.h"
#include "base/copy.h"
#include "ops/conv/conv_s8.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { SUMS = 2048 /* approximate sums per call of store */ };
enum { PADDED_MAX = 16 }; /* maximum planes that are padded at a time */

static bool is_nchw(const dq_conv_s8_problem *p, dq_reason *reason)
{
    return (p->depthwise && !p->shape->x_last && !p->shape->y_last) ||
           dq_not_applicable(reason, "not depthwise with channels first");
}

static dq_algorithm_work work_of(const dq_conv_s8_problem *p)
{
    const dq_conv_shape *s = p->shape;
    const double planes = (double)s->batch * (double)s->out_channels;
    return (dq_algorithm_work){.macs = planes * (double)s->out_size * (double)s->kernel_size,
                               .bytes = (double)s->batch * (double)p->image_bytes,
                               .calls = planes};
}

bool dq_conv_s8_depthwise_nchw_requantize_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    const dq_window *w = &p->shape->window;
    if (!is_nchw(p, reason))
        return false;
    if (!p->kernels->dwconv_requantize_s8->pack)
        return dq_not_applicable(reason, "there is no kernel for this instruction set");
    if (!p->known_requantization)
        return dq_not_applicable(reason, "weights, bias, scales or zero points are not constant, or the "
                                         "result is not quantized");
    return (w->rank <= 2 && w->stride[w->rank - 1] <= 2) ||
           dq_not_applicable(reason, "%zu spatial axes and stride %d, expected at most 2 and 2", w->rank,
                             (int)w->stride[w->rank - 1]);
}

dq_algorithm_work dq_conv_s8_depthwise_nchw_requantize_work(const void *problem)
{
    return work_of(problem);
}

bool dq_conv_s8_depthwise_nchw_3x3_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s8_problem *p = problem;
    if (!is_nchw(p, reason))
        return false;
    return dq_conv_is_3x3(p->shape) || dq_not_applicable(reason, "the kernel is not 3x3 at stride 1");
}

/* Kernels compute `least` outputs of a row at a time, also for the last ones: macs are rounded up. */
dq_algorithm_work dq_conv_s8_depthwise_nchw_3x3_work(const void *problem)
{
    const dq_conv_s8_problem *p = problem;
    const double width = (double)p->shape->window.out[1], least = (double)p->kernels->dwconv_3x3_s8->least;
    dq_algorithm_work work = work_of(p);
    work.macs *= ceil(width / least) * least / width;
    return work;
}

bool dq_conv_s8_depthwise_nchw_is_applicable(const void *problem, dq_reason *reason)
{
    return is_nchw(problem, reason);
}

/* Each byte is expanded to a pair of int16. */
dq_algorithm_work dq_conv_s8_depthwise_nchw_work(const void *problem)
{
    dq_algorithm_work work = work_of(problem);
    work.bytes *= 1 + 2 * sizeof(int16_t);
    return work;
}

static bool lay_out_lines(const dq_conv_shape *s, const dq_padded_input *image, dq_dwconv_planes *p)
{
    const dq_window *w = &s->window;
    size_t last = w->rank - 1, kernel = (size_t)w->kernel[last], twice;
    size_t stride = (size_t)w->stride[last], dilation = (size_t)w->dilation[last];
    p->line = image->width / stride + (image->width % stride != 0);
    p->steps = kernel / 2 + kernel % 2;
    p->distance = kernel > 1 ? dilation : 0;
    p->lines = p->steps;
    p->shift = 0;
    if (p->steps > 1 && dq_mul_size(dilation, 2, &twice) && twice % stride == 0) {
        p->lines = 1;
        p->shift = twice / stride;
    }
    return dq_mul_size(p->line, stride, &p->pitch);
}

/* Sets the size of a padded plane. Pairs are written for whole rows, whose last windows may read past the
 * end. Several small planes are padded at a time, so few that the first is cached when it is read. */
static bool lay_out_planes(const dq_padded_input *image, dq_dwconv_planes *p)
{
    enum { BATCH_BYTES = 4096 }; /* of planes padded at a time */
    bool fits = dq_add_size(image->rows, 1, &p->size) && dq_mul_size(p->size, p->pitch, &p->size) &&
                dq_add_size(p->size, p->distance + DQ_GEMM_S8_SLACK, &p->size) &&
                dq_align_size(p->size, DQ_ALIGN, &p->size);
    p->padded = fits ? BATCH_BYTES / p->size : 0;
    p->padded = p->padded < 1 ? 1 : p->padded < PADDED_MAX ? p->padded : PADDED_MAX;
    return fits;
}

/* Computes the offset of each pair of kernel elements from the first pair of a window's first row. */
static dq_status find_pairs(dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    dq_dwconv_planes *p = &conv->planes;
    const dq_window *w = &conv->s.window;
    size_t kernel = (size_t)w->kernel[w->rank - 1], rows = conv->s.kernel_size / kernel;
    size_t phase_stride = p->lines == 1 ? p->shift : conv->image.rows * p->line;
    p->pairs = rows * p->steps;
    conv->offsets = DQ_NEW_ARRAY(call->arena, p->pairs, ptrdiff_t);
    if (!conv->offsets)
        return dq_no_memory(err, p->pairs, "offsets of a kernel's elements");
    for (size_t t = 0; t < p->pairs; t++) {
        size_t row =
            (size_t)dq_padded_input_offset(&conv->image, w, t / p->steps * kernel) / conv->image.width;
        conv->offsets[t] = (ptrdiff_t)(2 * (row * p->line + t % p->steps * phase_stride));
        p->reach = row > p->reach ? row : p->reach;
    }
    return DQ_OK;
}

static dq_status find_rows(dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    dq_dwconv_planes *p = &conv->planes;
    const dq_window *w = &conv->s.window;
    size_t width = (size_t)w->out[w->rank - 1], rows = conv->s.out_size / width, at;
    p->sources = DQ_NEW_ARRAY(call->arena, conv->image.rows, ptrdiff_t);
    p->corners = DQ_NEW_ARRAY(call->arena, rows, size_t);
    if (!p->sources || !p->corners)
        return dq_no_memory(err, conv->image.rows, "rows of a plane");
    for (size_t i = 0; i < conv->image.rows; i++)
        p->sources[i] = dq_padded_input_source(&conv->image, w, i, &at) ? (ptrdiff_t)at : -1;
    for (size_t i = 0; i < rows; i++)
        p->corners[i] = dq_padded_input_corner(&conv->image, w, i * width) / conv->image.width;
    return DQ_OK;
}

typedef struct run_state {
    const dq_op_call *call;
    const dq_conv_s8 *conv;
    uint8_t sign_xor, pad;
    int32_t x_zero; /* after sign_xor */
} run_state;

static run_state begin_run(const dq_op_call *call, const dq_conv_s8 *conv)
{
    dq_dtype type = call->in[conv->x]->dtype;
    run_state run = {.call = call, .conv = conv, .sign_xor = dq_gemm_s8_sign_xor(type, false)};
    run.x_zero = dq_gemm_s8_zero(dq_conv_s8_zero(call, conv->x_zero, 0), type, false);
    run.pad = (uint8_t)run.x_zero;
    return run;
}

/* Writes the int16 weights of an output channel. Returns the initial value of its sums. */
static int32_t take_weights(const run_state *run, size_t channel, int16_t *out)
{
    const dq_conv_shape *s = &run->conv->s;
    const dq_tensor *w = run->call->in[run->conv->w];
    size_t row = (size_t)s->window.kernel[s->window.rank - 1], i = channel * s->kernel_size;
    int32_t zero = dq_conv_s8_zero(run->call, run->conv->w_zero, channel), sum = 0;
    for (size_t t = 0; t < s->kernel_size; t += row) {
        for (size_t e = t; e < t + row; e++) {
            int32_t value = w->dtype == DQ_INT8 ? dq_data(w, int8_t)[i + e] : dq_data(w, uint8_t)[i + e];
            *out++ = (int16_t)(value - zero);
            sum = (int32_t)((uint32_t)sum + (uint32_t)(value - zero));
        }
        if (row % 2)
            *out++ = 0;
    }
    return (int32_t)((uint32_t)dq_conv_s8_bias(run->call, run->conv, channel) -
                     (uint32_t)run->x_zero * (uint32_t)sum);
}

enum { INPUTS = 10 /* of a QLinearConv */ };

/* Key of the packed channels (compared up to `run`), then arguments of packing. */
typedef struct channels_key {
    const dq_dwconv_requantize_s8 *kernel;
    const void *data[INPUTS];
    size_t channels, pairs, steps, distance, last; /* as in dq_dwconv_planes; position of the last element */
    dq_dtype x;
    const run_state *run;
    const size_t *at;
    int16_t *w;
} channels_key;

/* Bytes of a packed channel: a word that is nonzero if packing succeeded, then the packed form. */
static size_t channel_size(const dq_conv_s8 *conv, const dq_dwconv_requantize_s8 *kernel)
{
    return sizeof(uint64_t) + kernel->size(2 * conv->planes.pairs);
}

static void make_channels(void *packed, const dq_tensor *from, const void *key)
{
    (void)from;
    const channels_key *k = key;
    const dq_conv_s8 *conv = k->run->conv;
    size_t size = channel_size(conv, k->kernel);
    for (size_t j = 0; j < conv->s.out_channels; j++) {
        uint64_t *to = (uint64_t *)(void *)((char *)packed + j * size);
        int32_t init = take_weights(k->run, j, k->w);
        double scale;
        dq_requantize_to qvalues;
        *to = conv->qvalues(k->run->call, j, &scale, &qvalues) &&
              k->kernel->pack(k->w, k->at, 2 * conv->planes.pairs, init, &qvalues, to + 1);
    }
}

/* Gives the position of each kernel element as dq_conv_s8_at. Returns false if one is out of its range. */
static bool find_elements(const dq_conv_s8 *conv, size_t *at)
{
    const dq_window *window = &conv->s.window;
    const dq_dwconv_planes *p = &conv->planes;
    for (size_t t = 0; t < 2 * p->pairs; t++) { /* the element that makes a row even has weight 0 */
        size_t row = t / 2 / p->steps, column = (t - row * 2 * p->steps) * p->distance;
        row = (size_t)dq_padded_input_offset(&conv->image, window,
                                             row * (size_t)window->kernel[window->rank - 1]) /
              conv->image.width;
        if (row >= DQ_CONV_S8_MAX || column >= DQ_CONV_S8_MAX)
            return false;
        at[t] = dq_conv_s8_at(row, column);
    }
    return true;
}

/* Converts each packed channel to offsets for this plan's row pitch (dq_dwconv_requantize_resolve_fn). */
static dq_status resolve_channels(dq_op_call *call, dq_conv_s8 *conv, const char *packed, dq_error *err)
{
    const dq_dwconv_requantize_s8 *kernel = call->kernels->dwconv_requantize_s8;
    dq_dwconv_planes *p = &conv->planes;
    const size_t n = conv->s.out_channels, size = channel_size(conv, kernel);
    size_t all = 0;
    for (size_t j = 0; j < n; j++)
        if (*(const uint64_t *)(const void *)(packed + j * size))
            all += kernel->resolve(packed + j * size + sizeof(uint64_t), p->pitch, NULL);
    char *resolved = dq_arena_alloc(call->arena, all, sizeof(uint64_t));
    p->channels = DQ_NEW_ARRAY(call->arena, n, const void *);
    if (!resolved || !p->channels)
        return dq_no_memory(err, n, "channels of a convolution");
    for (size_t j = 0, wrote; j < n; j++, packed += size) {
        const char *from = packed + sizeof(uint64_t);
        if (!*(const uint64_t *)(const void *)packed || !kernel->resolve(from, p->pitch, NULL))
            continue;
        wrote = kernel->resolve(from, p->pitch, resolved);
        p->channels[j] = resolved;
        resolved += wrote;
    }
    return DQ_OK;
}

/* Packs the channels: once per model if all inputs but x are persistent, else for this plan. */
static dq_status pack_channels(dq_op_call *call, dq_conv_s8 *conv, dq_error *err)
{
    const run_state run = begin_run(call, conv);
    const dq_dwconv_requantize_s8 *kernel = call->kernels->dwconv_requantize_s8;
    const dq_dwconv_planes *p = &conv->planes;
    dq_arena passing = {0};
    size_t all;
    size_t *at = DQ_NEW_ARRAY(&passing, 2 * p->pairs, size_t);
    int16_t *w = DQ_NEW_ARRAY(&passing, 2 * p->pairs, int16_t);
    const void *packed = NULL;
    dq_status status = DQ_OK;
    channels_key key;
    memset(&key, 0, sizeof key); /* compared as bytes */
    key.kernel = kernel;
    key.channels = conv->s.out_channels;
    key.pairs = p->pairs;
    key.steps = p->steps;
    key.distance = p->distance;
    key.x = call->in[conv->x]->dtype;
    key.run = &run;
    key.at = at;
    key.w = w;
    bool persistent = call->in_count <= INPUTS;
    for (uint32_t i = 0; i < call->in_count && persistent; i++)
        if (i != conv->x && call->in[i]) {
            key.data[i] = call->in[i]->data;
            persistent = call->persistent_inputs >> i & 1;
        }
    if (!at || !w || !dq_mul_size(channel_size(conv, kernel), conv->s.out_channels, &all)) {
        status = dq_no_memory(err, p->pairs, "channels of a convolution");
    } else if (find_elements(conv, at)) {
        key.last = at[2 * p->pairs - 1];
        if (persistent) {
            status = dq_call_pack(call, conv->w, make_channels, &key, offsetof(channels_key, run), all,
                                  &packed, err);
        } else if ((packed = dq_arena_alloc(&passing, all, sizeof(uint64_t)))) {
            make_channels((void *)(uintptr_t)packed, call->in[conv->w], &key);
        } else {
            status = dq_no_memory(err, all, "channels of a convolution");
        }
        if (status == DQ_OK)
            status = resolve_channels(call, conv, packed, err);
    }
    dq_arena_free(&passing);
    return status;
}

static dq_status prepare(dq_op_call *call, dq_conv_s8 *conv, bool as_bytes, dq_error *err)
{
    const dq_conv_shape *s = &conv->s;
    dq_dwconv_planes *p = &conv->planes;
    size_t width = (size_t)s->window.out[s->window.rank - 1], rows = s->out_size / width, bytes, at;
    size_t *used = &call->worker_scratch_size;
    p->rows_per_store = width < SUMS ? SUMS / width : 1;
    p->rows_per_store = p->rows_per_store < rows ? p->rows_per_store : rows;
    p->as_bytes = as_bytes;
    bool fits =
        lay_out_lines(s, &conv->image, p) && lay_out_planes(&conv->image, p) &&
        dq_reserve_size(used, p->size, p->padded, DQ_ALIGN, &at) && dq_mul_size(p->lines, p->line, &bytes) &&
        dq_mul_size(bytes, 2 * sizeof(int16_t), &bytes) &&
        dq_reserve_size(used, p->as_bytes ? 0 : conv->image.rows, bytes, DQ_ALIGN, &p->lines_offset) &&
        dq_add_size(*used, DQ_GEMM_S8_SLACK, used) &&
        dq_reserve_size(used, p->rows_per_store * width, sizeof(int32_t), DQ_ALIGN, &conv->sums_offset) &&
        dq_mul_size(conv->own, s->out_channels, &call->scratch_size);
    if (!fits)
        return dq_no_memory(err, SIZE_MAX, "a padded plane");
    DQ_TRY(find_pairs(call, conv, err));
    DQ_TRY(find_rows(call, conv, err));
    if (!dq_reserve_size(used, p->pairs, 2 * sizeof(int16_t), DQ_ALIGN, &conv->weights_offset))
        return dq_no_memory(err, SIZE_MAX, "a padded plane");
    return DQ_OK;
}

dq_status dq_conv_s8_depthwise_nchw_prepare(dq_op_call *call, void *state, dq_error *err)
{
    return prepare(call, state, false, err);
}

dq_status dq_conv_s8_depthwise_nchw_3x3_prepare(dq_op_call *call, void *state, dq_error *err)
{
    return prepare(call, state, true, err);
}

dq_status dq_conv_s8_depthwise_nchw_requantize_prepare(dq_op_call *call, void *state, dq_error *err)
{
    DQ_TRY(prepare(call, state, false, err));
    return pack_channels(call, state, err);
}

/* One input channel of an image. */
typedef struct plane {
    const run_state *run;
    const uint8_t *x;
    uint8_t *padded;
    char *scratch;
    size_t image, taken, rows; /* taken: rows copied to the padded plane; rows: rows written as pairs */
} plane;

static int16_t *lines_of(const plane *p)
{
    return (int16_t *)(p->scratch + p->run->conv->planes.lines_offset);
}

/* Copies rows to the padded plane, up to row `end`. Its padding is already in place. */
static void take_rows(plane *p, size_t end)
{
    const dq_conv_s8 *conv = p->run->conv;
    const size_t last = conv->image.rank - 1, width = conv->image.width, pitch = conv->planes.pitch;
    const size_t begin = (size_t)conv->s.window.begin[last], in = (size_t)conv->s.window.in[last];
    const ptrdiff_t *sources = conv->planes.sources;
    const uint8_t sign_xor = p->run->sign_xor, *x = p->x;
    const size_t n = begin >= width ? 0 : in < width - begin ? in : width - begin;
    uint8_t *row = p->padded + p->taken * pitch + begin;
    for (size_t i = p->taken; i < end; i++, row += pitch) {
        if (n == 0 || sources[i] < 0)
            continue;
        dq_copy_row(row, x + sources[i], n);
        for (size_t j = 0; sign_xor && j < n; j++)
            row[j] ^= sign_xor;
    }
    p->taken = p->taken < end ? end : p->taken;
}

/* Writes rows of the padded plane as pairs, up to row `last`. All rows are copied first, then all are paired:
 * a load that spans two recent stores cannot be forwarded and stalls. */
static void write_rows(plane *p, size_t last)
{
    const dq_conv_s8 *conv = p->run->conv;
    const dq_dwconv_planes *q = &conv->planes;
    size_t stride = (size_t)conv->s.window.stride[conv->image.rank - 1], whole = conv->image.rows * q->line;
    if (p->rows > last)
        return;
    take_rows(p, last + 1);
    for (size_t i = 0; i < q->lines && !q->as_bytes; i++)
        p->run->call->kernels->dwconv_pairs_s8(p->padded + p->rows * q->pitch + 2 * i * q->distance, stride,
                                               q->distance, (last + 1 - p->rows) * q->line,
                                               lines_of(p) + (p->rows * q->line + i * whole) * 2);
    p->rows = last + 1;
}

/* Computes output rows first … first + count - 1. Rows along the last axis but one have a constant stride. */
static void sum_rows(const plane *p, size_t first, size_t count, const int16_t *weights, int32_t init,
                     int32_t *sums)
{
    const dq_conv_s8 *conv = p->run->conv;
    const dq_dwconv_planes *q = &conv->planes;
    const dq_window *w = &conv->s.window;
    size_t width = (size_t)w->out[w->rank - 1], even = w->rank > 1 ? (size_t)w->out[w->rank - 2] : 1;
    size_t step = w->rank > 1 ? (size_t)w->stride[w->rank - 2] * q->line * 2 : 0;
    if (q->as_bytes) {
        p->run->call->kernels->dwconv_3x3_s8->rows(p->padded + q->corners[first] * q->pitch, q->pitch, count,
                                                   weights, init, width, sums);
        return;
    }
    for (size_t i = 0, n; i < count; i += n) {
        n = even - (first + i) % even;
        n = n < count - i ? n : count - i;
        p->run->call->kernels->dwconv_rows_s8(lines_of(p) + q->corners[first + i] * q->line * 2, step, n,
                                              conv->offsets, weights, q->pairs, init, width,
                                              sums + i * width);
    }
}

/* Computes one output channel through rows of sums. */
static void run_channel(plane *p, size_t channel)
{
    const run_state *run = p->run;
    const dq_conv_s8 *conv = run->conv;
    const dq_dwconv_planes *q = &conv->planes;
    int32_t *sums = (int32_t *)(p->scratch + conv->sums_offset);
    int16_t *weights = (int16_t *)(p->scratch + conv->weights_offset);
    size_t width = (size_t)conv->s.window.out[conv->image.rank - 1], rows = conv->s.out_size / width;
    int32_t init = take_weights(run, channel, weights);
    dq_conv_sums out = {.conv = conv,
                        .call = run->call,
                        .batch = p->image,
                        .channel = channel,
                        .channels = 1,
                        .c_stride = 1,
                        .c = sums};
    for (size_t first = 0, n; first < rows; first += n) {
        n = rows - first < q->rows_per_store ? rows - first : q->rows_per_store;
        out.first = first * width;
        out.count = n * width;
        write_rows(p, q->corners[first + n - 1] + q->reach);
        sum_rows(p, first, n, weights, init, sums);
        conv->store(&out);
    }
}

/* Computes one output channel with fused requantization. */
static void put_qvalues(const plane *p, size_t channel)
{
    const dq_op_call *call = p->run->call;
    const dq_conv_s8 *conv = p->run->conv;
    const dq_dwconv_planes *q = &conv->planes;
    const dq_window *w = &conv->s.window;
    size_t width = (size_t)w->out[w->rank - 1], down = (w->rank > 1 ? (size_t)w->stride[0] : 1) * q->pitch;
    uint8_t *out =
        dq_data(call->out[0], uint8_t) + (p->image * conv->s.out_channels + channel) * conv->s.out_size;
    call->kernels->dwconv_requantize_s8->put(p->padded, down, (size_t)w->stride[w->rank - 1],
                                             conv->s.out_size / width, q->channels[channel], width, out);
}

static void run_plane(plane *p, size_t group)
{
    const dq_conv_s8 *conv = p->run->conv;
    const void **channels = conv->planes.channels;
    for (size_t j = group * conv->s.group_out, end = j + conv->s.group_out; j < end; j++)
        if (channels && channels[j])
            put_qvalues(p, j);
        else
            run_channel(p, j);
}

/* A task item is a plane: an input channel of an image, with all its output channels. */
static void run_planes(void *arg, size_t begin, size_t end, unsigned worker)
{
    const run_state *run = arg;
    const dq_conv_shape *s = &run->conv->s;
    const dq_dwconv_planes *q = &run->conv->planes;
    const uint8_t *x = run->call->in[run->conv->x]->data;
    char *scratch = dq_call_worker_scratch(run->call, worker);
    plane planes[PADDED_MAX];
    memset(scratch, run->pad, q->size * q->padded);
    for (size_t i = begin, some; i < end; i += some) {
        some = end - i < q->padded ? end - i : q->padded;
        for (size_t k = 0; k < some; k++) {
            planes[k] = (plane){.run = run,
                                .x = x + (i + k) * s->in_size,
                                .padded = (uint8_t *)scratch + k * q->size,
                                .scratch = scratch,
                                .image = (i + k) / s->group};
            if (q->channels)
                take_rows(&planes[k], run->conv->image.rows);
        }
        for (size_t k = 0; k < some; k++)
            run_plane(&planes[k], (i + k) % s->group);
    }
}

void dq_conv_s8_depthwise_nchw_run(const dq_op_call *call, const void *state, const void *operands)
{
    (void)operands;
    const dq_conv_s8 *conv = state;
    enum { DEAR = 4 /* cost of a multiply-add relative to one of a GEMM */ };
    run_state run = begin_run(call, conv);
    size_t products = DEAR * conv->s.out_size * conv->s.kernel_size * conv->s.group_out;
    dq_parallel(call->threads, conv->s.batch * conv->s.group, dq_gemm_s8_grain(products), run_planes, &run);
}
