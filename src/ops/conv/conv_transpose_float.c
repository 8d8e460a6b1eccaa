/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"
#include "ops/conv/conv_transpose.h"
#include "ops/conv/im2col_pack.h"
#include "ops/packers.h"

#include <string.h>

enum { MAX_PHASES = 64, CHANNELS = 4 /* channels per task of interleaving */ };

/* Phases along an axis: remainders modulo the stride that at least one output has. */
static int64_t phases_along(const dq_conv_transpose_shape *s, size_t d)
{
    return s->stride[d] < s->out[d] ? s->stride[d] : s->out[d];
}

/* Greatest common divisor. */
static int64_t divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Sets one axis of the phase whose first output is at `first`. The phase uses the kernel elements t for which
 * first + begin - t * dilation is a multiple of the stride; the quotient is the input position. */
static void phase_axis(const dq_conv_transpose_shape *s, size_t d, int64_t first, dq_conv_transpose_phase *p)
{
    int64_t stride = s->stride[d], common = divisor(stride, s->dilation[d]), least = 0, count = 0;
    int64_t step = stride / common;
    dq_window *w = &p->window;
    while (least < step && (first + s->begin[d] - least * s->dilation[d]) % stride != 0)
        least++;
    if (least < step && least < s->kernel[d])
        count = (s->kernel[d] - 1 - least) / step + 1;
    p->first[d] = first;
    p->step[d] = step;
    p->tap[d] = least + (count - 1) * step; /* the last element reads the first input */
    w->in[d] = s->in[d];
    w->kernel[d] = count;
    w->stride[d] = 1;
    w->dilation[d] = s->dilation[d] / common;
    w->begin[d] = count ? -((first + s->begin[d] - p->tap[d] * s->dilation[d]) / stride) : 0;
    w->end[d] = 0;
    w->out[d] = (s->out[d] - 1 - first) / stride + 1;
}

/* Sets phase i. Returns the number of its kernel elements. */
static size_t set_phase(const dq_conv_transpose_shape *s, size_t i, dq_conv_transpose_phase *p)
{
    size_t taps = 1;
    p->window.rank = s->rank;
    for (size_t d = s->rank; d-- > 0; i /= (size_t)phases_along(s, d)) {
        phase_axis(s, d, (int64_t)(i % (size_t)phases_along(s, d)), p);
        taps *= (size_t)p->window.kernel[d];
    }
    return taps;
}

static size_t phase_count(const dq_conv_transpose_shape *s)
{
    size_t count = 1;
    for (size_t d = 0; d < s->rank; d++)
        count *= (size_t)phases_along(s, d);
    return count;
}

bool dq_conv_transpose_has_phases(const dq_conv_transpose_shape *s)
{
    int64_t count = 1;
    for (size_t d = 0; d < s->rank; d++) {
        if (phases_along(s, d) > MAX_PHASES || s->begin[d] < 0)
            return false;
        count *= phases_along(s, d);
        if (count > MAX_PHASES)
            return false;
    }
    for (size_t i = 0; i < (size_t)count; i++) {
        dq_conv_transpose_phase p;
        if (set_phase(s, i, &p) && !dq_im2col_pack_fit(&p.window))
            return false;
    }
    return count > 0;
}

/* ---- Weights ------------------------------------------------------------------------------------------ */

/* Source of weights: floats, or a tensor of a narrower float type. */
typedef struct elements {
    const float *floats;
    const dq_tensor *narrow;
} elements;

/* Arranges the weights of a phase: a row per output channel, with the phase's kernel elements of all input
 * channels. */
static void arrange_phase(const dq_conv_transpose_shape *s, const dq_conv_transpose_phase *p, size_t taps,
                          elements from, float *to)
{
    for (size_t o = 0; o < s->group * s->group_out; o++)
        for (size_t c = 0; c < s->group_in; c++) {
            size_t channel = (o / s->group_out * s->group_in + c) * s->group_out + o % s->group_out;
            for (size_t t = 0; t < taps; t++) {
                size_t rest = t, at = 0, step = 1;
                for (size_t d = s->rank; d-- > 0; rest /= (size_t)p->window.kernel[d]) {
                    int64_t i = (int64_t)(rest % (size_t)p->window.kernel[d]);
                    at += (size_t)(p->tap[d] - i * p->step[d]) * step;
                    step *= (size_t)s->kernel[d];
                }
                at += channel * s->kernel_size;
                *to++ = from.floats ? from.floats[at] : (float)dq_tensor_get_double(from.narrow, at);
            }
        }
}

/* Arranges the weights of all phases, in order. */
static void arrange(const dq_conv_transpose_shape *s, elements from, float *to)
{
    for (size_t i = 0; i < phase_count(s); i++) {
        dq_conv_transpose_phase p;
        size_t taps = set_phase(s, i, &p);
        arrange_phase(s, &p, taps, from, to);
        to += s->group * s->group_out * s->group_in * taps;
    }
}

void dq_pack_conv_transpose_f32(void *packed, const dq_tensor *from, const void *key)
{
    dq_conv_transpose_shape s;
    memcpy(&s, key, sizeof s);
    arrange(&s, (elements){from->dtype == DQ_FLOAT ? dq_data(from, float) : NULL, from}, packed);
}

/* Parameters of the arranged weights; the key of dq_call_pack, compared as bytes. */
static dq_conv_transpose_shape arrangement(const dq_conv_transpose_shape *s)
{
    dq_conv_transpose_shape key;
    memset(&key, 0, sizeof key);
    key.rank = s->rank;
    key.group = s->group;
    key.group_in = s->group_in;
    key.group_out = s->group_out;
    key.kernel_size = s->kernel_size;
    for (size_t d = 0; d < s->rank; d++) {
        key.kernel[d] = s->kernel[d];
        key.stride[d] = s->stride[d];
        key.dilation[d] = s->dilation[d];
        key.begin[d] = s->begin[d];
        key.out[d] = phases_along(s, d);
    }
    return key;
}

/* ---- GEMM --------------------------------------------------------------------------------------------- */

typedef struct job {
    const dq_op_call *call;
    const dq_conv_transpose_f32 *f;
    const dq_conv_transpose_phase *phase;
    const float *x, *w, *bias;
    dq_bounds bounds;
    float *out;
} job;

static void part_weights(const void *arg, const dq_gemm_part *part, float *workspace,
                         dq_gemm_block_f32 *block)
{
    (void)workspace;
    const job *j = arg;
    const dq_conv_transpose_shape *s = j->f->shape;
    size_t k = j->phase->product.k, channel = part->batch % s->group * s->group_out + part->row;
    block->a = j->w + j->phase->weights + channel * k + part->p;
    block->a_row = k;
}

static void part_windows(const void *arg, const dq_gemm_part *part, float *workspace,
                         dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_conv_transpose_shape *s = j->f->shape;
    const float *image = j->x + part->batch * s->group_in * s->in_size;
    if (j->f->at_once)
        dq_pack_b_nchw_f32(j->call->kernels->transpose_x32, &j->phase->product, image, part, workspace,
                           block);
    else
        dq_im2col_pack(j->call->kernels, &j->phase->window, image, part, workspace, block);
}

static void part_result(const void *arg, const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_conv_transpose_shape *s = j->f->shape;
    block->c = workspace;
    block->c_row = part->cols;
    block->low = j->bounds.low;
    block->high = j->bounds.high;
    block->bias = j->bias ? j->bias + part->batch % s->group * s->group_out + part->row : NULL;
}

static void pair(const float *restrict a, const float *restrict b, size_t n, float *restrict to)
{
    for (size_t i = 0; i < n; i++) {
        to[2 * i] = a[i];
        to[2 * i + 1] = b[i];
    }
}

/* Scatters `count` results of each row of the block, from column `col` on, to `out` at the stride. If two
 * phases alternate along a row, both are interleaved at once. */
static void bring(const job *j, const dq_gemm_part *part, const dq_gemm_block_f32 *block, size_t col,
                  size_t count, float *out)
{
    const dq_conv_transpose_shape *s = j->f->shape;
    const size_t step = (size_t)s->stride[s->rank - 1], next = s->group_out * block->c_row;
    const bool twos = j->f->at_once && step == 2;
    size_t phase = j->f->at_once ? part->row / s->group_out : 0;
    size_t channel = part->row - phase * s->group_out;
    const float *from = block->c + col;
    for (size_t i = 0; i < part->rows; i++, channel++, from += block->c_row) {
        if (channel == s->group_out && j->f->at_once) {
            channel = 0;
            phase++;
        }
        float *to = out + channel * s->out_size + j->phase[phase].offset;
        if (twos && phase % 2 == 0 && i + s->group_out < part->rows)
            pair(from, from + next, count, to);
        else if (!twos || phase % 2 == 0 || i < s->group_out)
            for (size_t e = 0; e < count; e++)
                to[e * step] = from[e];
    }
}

/* Offset in an output channel of output row `rest` of a phase, from the phase's first output. */
static size_t row_offset(const dq_conv_transpose_shape *s, const dq_window *w, size_t rest)
{
    size_t last = s->rank - 1, offset = 0, size = (size_t)s->out[last];
    for (size_t d = last; d-- > 0; rest /= (size_t)w->out[d]) {
        offset += rest % (size_t)w->out[d] * (size_t)s->stride[d] * size;
        size *= (size_t)s->out[d];
    }
    return offset;
}

static void part_done(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block)
{
    const job *j = arg;
    const dq_conv_transpose_shape *s = j->f->shape;
    const dq_window *w = &j->phase->window;
    float *out = j->out + part->batch * s->group_out * s->out_size;
    size_t last = s->rank - 1, n = (size_t)w->out[last];
    for (size_t col = 0, count; col < part->cols; col += count) {
        size_t at = part->col + col, offset = row_offset(s, w, at / n);
        count = n - at % n < part->cols - col ? n - at % n : part->cols - col;
        bring(j, part, block, col, count, out + offset + at % n * (size_t)s->stride[last]);
    }
}

/* ---- Direct convolution ------------------------------------------------------------------------------- */

static void set_shape(const dq_conv_transpose_shape *s, size_t taps, size_t offsets,
                      dq_conv_transpose_phase *p)
{
    p->shape = (dq_conv_shape){.window = p->window,
                               .batch = s->batch,
                               .group = s->group,
                               .in_channels = s->group * s->group_in,
                               .out_channels = s->group * s->group_out,
                               .group_in = s->group_in,
                               .group_out = s->group_out,
                               .in_size = s->in_size,
                               .kernel_size = taps,
                               .out_size = offsets};
}

typedef struct interleaved {
    const dq_conv_transpose_f32 *f;
    const dq_conv_transpose_phase
        *phase; /* first of f->interleaved phases that alternate along the last axis */
    const float *sums;
    float *out;
} interleaved;

/* Interleaves the rows of alternating phases, channel by channel. */
static void bring_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const interleaved *t = arg;
    const dq_conv_transpose_shape *s = t->f->shape;
    const dq_conv_transpose_phase *p = t->phase;
    const size_t last = s->rank - 1, step = (size_t)s->stride[last], n = (size_t)p->window.out[last];
    const size_t few = t->f->interleaved == 2 ? (size_t)p[1].window.out[last] : 0;
    for (size_t c = begin; c < end; c++)
        for (size_t row = 0; row < p->shape.out_size / n; row++) {
            const float *from = t->sums + c * p->shape.out_size + row * n;
            float *to = t->out + c * s->out_size + p->offset + row_offset(s, &p->window, row);
            if (few)
                pair(from, t->sums + t->f->sums + c * p[1].shape.out_size + row * few, few, to);
            for (size_t e = few; e < n; e++)
                to[e * step] = from[e];
        }
}

static void run_rows(const job *j, const dq_conv_transpose_f32 *f)
{
    const dq_conv_epilogue finish = {.low = j->bounds.low, .high = j->bounds.high};
    float *sums = (float *)(void *)((char *)j->call->scratch + f->sums_at);
    interleaved t = {f, f->phases, sums, j->out};
    for (size_t i = 0; i < f->count; i++) {
        const dq_conv_transpose_phase *p = &f->phases[i];
        const dq_conv_floats o = {.x = j->x,
                                  .w = j->w + p->weights,
                                  .bias = j->bias,
                                  .out = sums + i % f->interleaved * f->sums,
                                  .finish = &finish};
        dq_conv_direct_run(j->call, &p->rows, &o);
        if (i % f->interleaved + 1 < f->interleaved)
            continue;
        t.phase = p + 1 - f->interleaved;
        dq_parallel(j->call->threads, p->shape.batch * p->shape.out_channels, CHANNELS, bring_rows, &t);
    }
}

static dq_status prepare_rows(dq_op_call *call, dq_conv_transpose_f32 *f, dq_error *err)
{
    const dq_conv_transpose_shape *s = f->shape;
    size_t workspace = 0;
    f->by_rows = !f->at_once && s->group > 1; /* one group is a single GEMM of all channels */
    for (size_t i = 0; i < f->count; i++)
        f->by_rows = f->by_rows && dq_conv_direct_is_applicable(&f->phases[i].shape, NULL);
    if (!f->by_rows)
        return DQ_OK;
    for (size_t i = 0; i < f->count; i++) {
        DQ_TRY(dq_conv_direct_prepare(call, &f->phases[i].shape, &f->phases[i].rows, err));
        workspace = call->worker_scratch_size > workspace ? call->worker_scratch_size : workspace;
    }
    call->worker_scratch_size = workspace;
    f->interleaved = phases_along(s, s->rank - 1) == 2 ? 2 : 1;
    f->sums = s->batch * s->group * s->group_out * f->phases->shape.out_size; /* phase 0 is largest */
    return dq_call_reserve(call, f->sums, f->interleaved, sizeof(float), &f->sums_at)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "sums of a transposed convolution");
}

/* ---- Preparation and run ------------------------------------------------------------------------------ */

static dq_status prepare_phases(dq_op_call *call, dq_conv_transpose_f32 *f, dq_error *err)
{
    const dq_conv_transpose_shape *s = f->shape;
    size_t weights = 0, workspace = 0;
    f->at_once = s->group == 1;
    for (size_t d = 0; d < s->rank; d++)
        f->at_once = f->at_once && s->kernel[d] == s->stride[d] && s->dilation[d] == 1 && s->begin[d] == 0 &&
                     s->out[d] == s->in[d] * s->stride[d];
    for (size_t i = 0; i < f->count; i++) {
        dq_conv_transpose_phase *p = &f->phases[i];
        size_t taps = set_phase(s, i, p), offsets = 1, size = 1;
        p->offset = 0;
        for (size_t d = s->rank; d-- > 0; size *= (size_t)s->out[d]) {
            offsets *= (size_t)p->window.out[d];
            p->offset += (size_t)p->first[d] * size;
        }
        set_shape(s, taps, offsets, p);
        p->weights = weights;
        weights += s->group * s->group_out * s->group_in * taps;
        p->product = (dq_gemm_f32){.batches = s->batch * s->group,
                                   .m = s->group_out * (f->at_once ? f->count : 1),
                                   .n = offsets,
                                   .k = s->group_in * taps,
                                   .grain = taps ? taps : 1,
                                   .c_workspace = true,
                                   .a = part_weights,
                                   .b = part_windows,
                                   .c = part_result,
                                   .done = part_done};
        DQ_TRY(dq_gemm_f32_prepare(call, &p->product, err));
        workspace = call->worker_scratch_size > workspace ? call->worker_scratch_size : workspace;
    }
    call->worker_scratch_size = workspace;
    return prepare_rows(call, f, err);
}

dq_status dq_conv_transpose_prepare_phases(dq_op_call *call, uint32_t w, const dq_conv_transpose_shape *shape,
                                           dq_conv_transpose_f32 *f, dq_error *err)
{
    size_t bytes = call->in[w]->count * sizeof(float);
    *f = (dq_conv_transpose_f32){.shape = shape, .count = phase_count(shape)};
    f->phases = dq_arena_alloc(call->arena, f->count * sizeof *f->phases, sizeof(int64_t));
    if (!f->phases)
        return dq_no_memory(err, f->count * sizeof *f->phases, "phases of a transposed convolution");
    DQ_TRY(prepare_phases(call, f, err));
    if (f->at_once && !dq_call_reserve(call, f->phases->product.m, 1, sizeof(float), &f->bias_at))
        return dq_no_memory(err, SIZE_MAX, "terms of a transposed convolution");
    if (dq_call_constant(call, w) && bytes) {
        const dq_conv_transpose_shape key = arrangement(shape);
        const void *packed;
        DQ_TRY(dq_call_pack_deferred(call, w, dq_pack_conv_transpose_f32, &key, sizeof key, bytes, &packed,
                                     err));
        f->weights = packed;
        return DQ_OK;
    }
    f->weights_at = call->scratch_size;
    if (!dq_align_size(bytes, DQ_ALIGN, &bytes) ||
        !dq_add_size(call->scratch_size, bytes, &call->scratch_size))
        return dq_no_memory(err, SIZE_MAX, "weights of a transposed convolution");
    return DQ_OK;
}

void dq_conv_transpose_run_phases(const dq_op_call *call, const dq_conv_transpose_f32 *f, const float *x,
                                  const float *w, const float *bias, dq_bounds bounds, float *out)
{
    job j = {.call = call, .f = f, .x = x, .w = f->weights, .bias = bias, .bounds = bounds, .out = out};
    if (!j.w) {
        float *workspace = (float *)(void *)((char *)call->scratch + f->weights_at);
        arrange(f->shape, (elements){w, NULL}, workspace);
        j.w = workspace;
    }
    if (bias && f->at_once) {
        float *workspace = (float *)(void *)((char *)call->scratch + f->bias_at);
        for (size_t i = 0; i < f->count; i++)
            memcpy(workspace + i * f->shape->group_out, bias, f->shape->group_out * sizeof *workspace);
        j.bias = workspace;
    }
    if (f->by_rows) {
        run_rows(&j, f);
        return;
    }
    for (size_t i = 0; i < (f->at_once ? 1 : f->count); i++) {
        j.phase = &f->phases[i];
        dq_gemm_f32_run(call, &j.phase->product, &j);
    }
}
