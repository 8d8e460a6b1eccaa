/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAveragePool of 8-bit tensors.
 *
 * com.microsoft: sums the dequantized elements of a window in float, in row-major order. It divides by their
 * number (with count_include_pad by the window's size). Then Y = saturate(round(mean / y_scale +
 * y_zero_point)), with quotient and sum rounded to float: the zero point is added before rounding. The mean
 * of a window of padding only is 0.
 *
 * dqrun: sums integers and gives the result of the real-number formula, rounded once (exact_mean.h). The mean
 * of a window of padding only is NaN, which gives the type's minimum.
 *
 * Small windows over two axes are summed in int16 where that gives the same results (q8_average_int16.h); the
 * rest is computed here, in float. */
#include "ops/pool/q8_average_int16.h"
#include "ops/pool/q8_window.h"
#include "ops/row_quantizer.h"

#include "base/checked.h"

#include <string.h>

enum {
    PLANES = 8,  /* planes computed at a time, if each has one window */
    BAND = 2048, /* approximate floats of a band's sums */
    STRIP = 32   /* floats per kernel step: buffers are multiples of it */
};

typedef struct pool_state {
    dq_q8_window shape;
    const struct tap *taps;   /* kernel elements along the last axis */
    const struct span *spans; /* segments of a line by window length */
    size_t tap_count, span_count;
    bool in_int16; /* `int16` is prepared, else what follows */
    dq_average_int16 int16;
    /* Plane by plane in float (see plane_fits): */
    bool whole;          /* the only window is the whole plane */
    size_t pitch, plane; /* elements of a padded row, and of a padded plane */
    size_t band;         /* output rows computed at a time, so that their sums stay in L1 */
    size_t band_floats;  /* floats of a band's sums at `pitch`, rounded up to STRIP */
    const float *counts; /* elements of each output's window, at `pitch`; NULL: line by line */
    bool exact;          /* dqrun's operator */
    dq_exact_mean mean;
    const float *multipliers; /* exact: multiplier of each output, laid out as `counts` */
} pool_state;

/* A kernel element along the last axis, for all outputs of a line whose windows have it inside the input.
 * Adding one such element after the other keeps the row-major order of each sum. Fields count elements. */
typedef struct tap {
    size_t first, count; /* range of outputs */
    size_t at;           /* offset in the input row of what output `first` reads */
} tap;

/* A segment of consecutive outputs of a line, up to `end`, whose windows have `along` elements along the
 * line. */
typedef struct span {
    size_t end, along;
} span;

/* The output is computed in lines along the last spatial axis; in NHWC with all channels of each position. */
typedef struct pool_job {
    const dq_op_call *call;
    const pool_state *s;
    const uint8_t *x;
    uint8_t *out;
    dq_q8 qy;
    dq_row_quantizer from, to; /* quantization of the input; and of sums in multiples of y_scale */
} pool_job;

static void pool_run(const dq_op_call *call, pool_job *job, dq_range_fn range)
{
    const pool_state *s = call->state;
    job->call = call;
    job->s = s;
    job->x = call->in[0]->data;
    job->out = call->out[0] ? call->out[0]->data : NULL;
    dq_q8_window_run(call, &s->shape, s->counts || s->in_int16 ? s->shape.out_size : s->shape.line, range,
                     job);
}

/* ---- QLinearAveragePool ------------------------------------------------------------------------------- */

static dq_status average_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return dq_q8_window_infer(call, dq_node_int(call->node, "channels_last", 0) != 0, err);
}

static dq_status list_taps(const dq_op_call *call, pool_state *s, dq_error *err)
{
    const dq_window *w = &s->shape.window;
    size_t last = w->rank - 1;
    int64_t begin, end, stride = w->stride[last];
    dq_window_taps(w, last, &begin, &end);
    tap *taps = DQ_NEW_ARRAY(call->arena, end > begin ? (size_t)(end - begin) : 0, tap);
    if (!taps)
        return dq_no_memory(err, SIZE_MAX, "the elements of a window");
    s->taps = taps;
    for (int64_t k = begin; k < end; k++) {
        int64_t shift = k * w->dilation[last] - w->begin[last]; /* for output 0 */
        int64_t first =
            shift < 0 ? (-shift - 1) / stride + 1 : 0; /* strides may be as large as int64 holds */
        int64_t past = shift < w->in[last] ? (w->in[last] - shift - 1) / stride + 1 : 0;
        past = past < w->out[last] ? past : w->out[last];
        if (first < past)
            taps[s->tap_count++] = (tap){.first = (size_t)first * s->shape.inner,
                                         .count = (size_t)(past - first) * s->shape.inner,
                                         .at = (size_t)(first * stride + shift) * s->shape.inner};
    }
    return DQ_OK;
}

static dq_status list_spans(const dq_op_call *call, pool_state *s, dq_error *err)
{
    size_t last = s->shape.window.rank - 1, positions = (size_t)s->shape.window.out[last], first;
    span *list = DQ_NEW_ARRAY(call->arena, positions, span);
    if (!list)
        return dq_no_memory(err, positions * sizeof *list, "the lengths of windows");
    s->spans = list;
    for (size_t i = 0; i < positions; i++) {
        size_t along = dq_window_elements_along(&s->shape.window, last, i, &first);
        if (s->span_count == 0 || list[s->span_count - 1].along != along)
            list[s->span_count++].along = along;
        list[s->span_count - 1].end = (i + 1) * s->shape.inner;
    }
    return DQ_OK;
}

/* True if outputs are computed plane by plane. The plane is converted to floats with zero padding, so that
 * one long vector addition adds a kernel element to all outputs of a band.
 *
 * Each output's sum has the same terms in the same order as line by line. Added zeros change nothing, because
 * a sum that begins with +0 is never -0. Sums in the columns between the output rows are discarded. */
static bool plane_fits(const pool_state *s)
{
    enum { MAX_FLOATS = 1 << 15 /* of a plane */, MAX_TAPS = 16 };
    const dq_window *w = &s->shape.window;
    if (w->rank != 2 || s->shape.inner != 1 || s->shape.out_size == 0 || w->kernel[1] > MAX_TAPS)
        return false;
    for (size_t d = 0; d < 2; d++)
        if (w->begin[d] < 0 || (w->stride[d] != 1 && w->out[d] != 1) || w->in[d] > MAX_FLOATS ||
            w->out[d] > MAX_FLOATS || w->kernel[d] > MAX_FLOATS || w->dilation[d] > MAX_FLOATS ||
            dq_window_span(w, d) > MAX_FLOATS)
            return false;
    return (w->out[0] + dq_window_span(w, 0)) * (w->out[1] + dq_window_span(w, 1)) <= MAX_FLOATS;
}

static size_t strips(size_t n)
{
    return (n + STRIP - 1) / STRIP * STRIP;
}

/* Reserves the workspace for a padded plane and a band's sums, and counts the elements of each output's
 * window. */
static dq_status prepare_planes(dq_op_call *call, pool_state *s, dq_error *err)
{
    const dq_window *w = &s->shape.window;
    size_t high = (size_t)w->out[0], wide = (size_t)w->out[1], first;
    s->pitch = wide + (size_t)dq_window_span(w, 1) - 1;
    s->plane = (high + (size_t)dq_window_span(w, 0) - 1) * s->pitch;
    s->band = s->pitch < BAND ? BAND / s->pitch : 1;
    s->band = s->band < high ? s->band : high;
    s->band_floats = strips(s->band * s->pitch);
    float *counts = DQ_NEW_ARRAY(call->arena, high * s->pitch + STRIP, float);
    if (!counts)
        return dq_no_memory(err, high * s->pitch * sizeof *counts, "the sizes of windows");
    for (size_t i = 0; i < high * s->pitch + STRIP; i++) {
        size_t under = i % s->pitch < wide && i / s->pitch < high
                           ? dq_window_elements_along(w, 0, i / s->pitch, &first) *
                                 dq_window_elements_along(w, 1, i % s->pitch, &first)
                           : 1;
        under = s->shape.include_pad ? s->shape.kernel_size : under;
        counts[i] = (float)(under || s->exact ? under : 1);
    }
    s->counts = counts;
    if (s->exact) {
        float *multipliers = DQ_NEW_ARRAY(call->arena, high * s->pitch + STRIP, float);
        if (!multipliers)
            return dq_no_memory(err, high * s->pitch * sizeof *counts, "the ratios of means");
        for (size_t i = 0; i < high * s->pitch + STRIP; i++)
            multipliers[i] = s->mean.multipliers[(size_t)counts[i]];
        s->multipliers = multipliers;
    }
    /* Slack after the last row: the discarded columns read it. */
    call->worker_scratch_size =
        (s->plane + s->pitch + STRIP) * sizeof(float) + s->band_floats * (sizeof(float) + 1);
    s->whole = s->shape.out_size == 1;
    for (size_t d = 0; d < 2; d++)
        s->whole = s->whole && w->kernel[d] == w->in[d] && w->begin[d] == 0 && w->dilation[d] == 1;
    if (s->whole) /* for average_wholes */
        call->worker_scratch_size += PLANES * s->plane * sizeof(float);
    return DQ_OK;
}

/* Prepares exact means for all window sizes that occur: products of the lengths along the axes, and 1 for the
 * discarded columns. */
static dq_status prepare_exact(dq_op_call *call, pool_state *s, dq_error *err)
{
    const dq_window *w = &s->shape.window;
    const dq_q8 x = dq_q8_read(call, 1, 2, call->in[0]->dtype),
                y = dq_q8_read(call, 3, 4, call->in[0]->dtype);
    const size_t most = s->shape.kernel_size;
    size_t first;
    if (most > DQ_EXACT_MEAN_ELEMENTS)
        return dq_call_fail(call, err, DQ_UNSUPPORTED, "the window has %zu elements, expected %d or fewer",
                            most, DQ_EXACT_MEAN_ELEMENTS);
    bool *occurs = DQ_NEW_ARRAY(call->arena, 2 * (most + 1), bool);
    if (!occurs)
        return dq_no_memory(err, 2 * most, "the sizes of windows");
    bool *next = occurs + most + 1;
    occurs[1] = true;
    for (size_t axis = 0; axis < w->rank; axis++) {
        memset(next, 0, most + 1);
        size_t last = SIZE_MAX;
        for (size_t i = 0; i < (size_t)w->out[axis]; i++) {
            const size_t along = dq_window_elements_along(w, axis, i, &first);
            for (size_t count = 0; along != last && count <= most / (along ? along : 1); count++)
                next[count * along] = next[count * along] || occurs[count];
            last = along;
        }
        memcpy(occurs, next, most + 1);
    }
    occurs[1] = true;
    occurs[most] = occurs[most] || s->shape.include_pad;
    return dq_exact_mean_prepare(call, &x, &y, occurs, most, &s->mean, err);
}

/* Reserves worker scratch: sums of a line and one input row; or as prepare_planes needs. */
static dq_status average_prepare(dq_op_call *call, dq_error *err)
{
    const bool channels_last = dq_node_int(call->node, "channels_last", 0) != 0;
    DQ_TRY(dq_call_state(call, sizeof(pool_state), err));
    pool_state *s = call->state;
    DQ_TRY(dq_q8_window_prepare(call, channels_last, sizeof(float), &s->shape, err));
    s->exact = strcmp(call->node->domain, "dqrun") == 0;
    size_t row, *size = &call->worker_scratch_size;
    if (s->exact)
        DQ_TRY(prepare_exact(call, s, err));
    /* An output near a tie takes 7 ns, one of the others 0.2 ns; in float 0.6 ns in planes, 5 ns in lines. */
    const bool planes = plane_fits(s);
    DQ_TRY(dq_average_int16_prepare(call, &s->shape, s->exact ? &s->mean : NULL, planes ? 1 / 24.0 : 0.5,
                                    &s->int16, &s->in_int16, err));
    if (s->in_int16)
        return DQ_OK;
    if (planes)
        return prepare_planes(call, s, err);
    DQ_TRY(list_taps(call, s, err));
    DQ_TRY(list_spans(call, s, err));
    return dq_mul_size((size_t)s->shape.window.in[s->shape.window.rank - 1], s->shape.inner * sizeof(float),
                       &row) &&
                   dq_add_size(*size, row, size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "a line of the input");
}

/* sums[i] += x[i * step] for i < n. */
static inline void average_take(float *restrict sums, const float *restrict x, size_t step, size_t n)
{
    if (step == 1) /* a constant, for the compiler's vectorizer */
        for (size_t i = 0; i < n; i++)
            sums[i] += x[i];
    else
        for (size_t i = 0; i < n; i++)
            sums[i] += x[i * step];
}

/* Adds the elements of an input row to the sums of a line. */
static void average_row(const pool_state *s, const float *row, float *sums)
{
    size_t stride = (size_t)s->shape.window.stride[s->shape.window.rank - 1], inner = s->shape.inner;
    for (const tap *t = s->taps; t < s->taps + s->tap_count; t++)
        if (inner == 1 || stride == 1)
            average_take(sums + t->first, row + t->at, inner == 1 ? stride : 1, t->count);
        else
            for (size_t i = 0; i < t->count; i += inner)
                average_take(sums + t->first + i, row + t->at + i * stride, 1, inner);
}

/* Quantizes the sums of a line. `total` is the number of input rows of its windows. com.microsoft's means
 * include the zero point before rounding, so that dq_row_quantizer_quantize has a scale of 1. */
static void average_finish(const pool_job *job, float *sums, size_t total, uint8_t *out)
{
    const pool_state *s = job->s;
    const float scale = job->qy.scale, zero = (float)job->qy.zero;
    size_t i = 0;
    for (const span *t = s->spans; t < s->spans + s->span_count; t++) {
        /* The sum of an empty window is 0, and so is its mean. */
        const size_t elements = s->shape.include_pad ? s->shape.kernel_size : total * t->along;
        const float count = (float)(elements ? elements : 1);
        const size_t end = t->end;
        if (s->exact)
            dq_exact_mean_apply(&s->mean, elements, sums + i, end - i);
        if (s->exact)
            i = end;
        for (; i < end; i++)
            sums[i] = sums[i] / count / scale + zero;
    }
    dq_row_quantizer_quantize(job->call->kernels, &job->to, sums, s->shape.line, out, 0);
}

static void average_line(const pool_job *job, size_t line, float *sums)
{
    const pool_state *s = job->s;
    size_t last = s->shape.window.rank - 1, lines = s->shape.out_size * s->shape.inner / s->shape.line;
    const size_t image = line / lines * s->shape.in_size * s->shape.inner,
                 width = (size_t)s->shape.window.in[last] * s->shape.inner;
    float *row = sums + s->shape.line;
    dq_window_elements c = dq_window_elements_at(&s->shape, last, line % lines);
    size_t index[DQ_MAX_RANK] = {0}, at = c.base;
    memset(sums, 0, s->shape.line * sizeof *sums);
    for (size_t i = 0; i < c.total; i++) {
        dq_row_quantizer_dequantize(job->call->kernels, &job->from, job->x, image + at, width, row);
        average_row(s, row, sums);
        dq_window_next_element(&c, index, &at);
    }
    average_finish(job, sums, c.total, job->out + line * s->shape.line);
}

/* True if dequantized inputs, sums and means are far from the limits of float's range, as the kernel `divide`
 * requires. */
static bool divides(const pool_job *job)
{
    const float least = 0x1p-16f, most = 0x1p16f;
    return job->from.scale >= least && job->from.scale <= most && job->qy.scale >= least &&
           job->qy.scale <= most;
}

static void average_band(const pool_job *job, size_t plane, size_t first, const float *padded, float *sums)
{
    static const float ones[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const pool_state *s = job->s;
    const dq_window *w = &s->shape.window;
    const dq_rows_f32 *rows = job->call->kernels->rows_f32;
    const float scale = job->qy.scale, zero = (float)job->qy.zero;
    const size_t left = (size_t)w->out[0] - first, high = left < s->band ? left : s->band;
    const size_t wide = (size_t)w->out[1], n = strips(high * s->pitch);
    uint8_t *qvalues = (uint8_t *)(sums + s->band_floats),
            *out = job->out + plane * s->shape.out_size + first * wide;
    memset(sums, 0, n * sizeof *sums);
    for (size_t k = 0; k < (size_t)w->kernel[0]; k++)
        rows->mix(ones, (size_t)w->kernel[1], padded + (first + k * (size_t)w->dilation[0]) * s->pitch,
                  (size_t)w->dilation[1], n, sums);
    if (s->exact && s->mean.all_floats) {
        rows->mul(sums, 1, s->multipliers + first * s->pitch, 1, n, sums);
    } else if (s->exact) {
        for (size_t i = 0; i < n; i++)
            dq_exact_mean_apply(&s->mean, (size_t)s->counts[first * s->pitch + i], sums + i, 1);
    } else {
        rows->div(sums, 1, s->counts + first * s->pitch, 1, n, sums);
        if (divides(job))
            rows->divide(sums, n, scale, sums);
        else
            rows->div(sums, 1, &scale, 0, n, sums);
        rows->add(sums, 1, &zero, 0, n, sums);
    }
    dq_row_quantizer_quantize(job->call->kernels, &job->to, sums, n, qvalues, 0);
    for (size_t row = 0; row < high; row++)
        memcpy(out + row * wide, qvalues + row * s->pitch, wide);
}

static void average_plane(const pool_job *job, size_t plane, float *padded, float *sums)
{
    const pool_state *s = job->s;
    const dq_window *w = &s->shape.window;
    size_t left = (size_t)w->begin[1], top = (size_t)w->begin[0], in_wide = (size_t)w->in[1];
    size_t shown = left < s->pitch ? s->pitch - left : 0;
    shown = shown < in_wide ? shown : in_wide;
    for (size_t row = 0; row < (size_t)w->in[0] && (top + row) * s->pitch < s->plane && shown; row++)
        dq_row_quantizer_dequantize(job->call->kernels, &job->from, job->x,
                                    plane * s->shape.in_size + row * in_wide, shown,
                                    padded + (top + row) * s->pitch + left);
    for (size_t row = 0; row < (size_t)w->out[0]; row += s->band)
        average_band(job, plane, row, padded, sums);
}

/* Computes planes with one window. A sum is one dependency chain of additions, so PLANES are interleaved. */
static void average_wholes(const pool_job *job, size_t begin, size_t end, float *workspace)
{
    const size_t n = job->s->shape.in_size;
    const float count = job->s->counts[0];
    for (size_t planes; begin < end; begin += planes) {
        float sums[PLANES] = {0};
        planes = end - begin < PLANES ? end - begin : PLANES;
        memset(workspace, 0, PLANES * n * sizeof *workspace);
        dq_row_quantizer_dequantize(job->call->kernels, &job->from, job->x, begin * n, planes * n, workspace);
        for (size_t i = 0; i < n; i++)
            for (size_t p = 0; p < PLANES; p++)
                sums[p] += workspace[p * n + i];
        if (job->s->exact)
            dq_exact_mean_apply(&job->s->mean, (size_t)count, sums, PLANES);
        for (size_t p = 0; p < PLANES && !job->s->exact; p++)
            sums[p] = sums[p] / count / job->qy.scale + (float)job->qy.zero;
        dq_row_quantizer_quantize(job->call->kernels, &job->to, sums, planes, job->out, begin);
    }
}

static void planes_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const pool_job *job = arg;
    const pool_state *s = job->s;
    float *padded = dq_call_worker_scratch(job->call, worker);
    if (s->whole) {
        average_wholes(job, begin, end, padded);
        return;
    }
    const size_t all = s->plane + s->pitch + STRIP;
    memset(padded, 0, all * sizeof *padded);
    for (size_t plane = begin; plane < end; plane++)
        average_plane(job, plane, padded, padded + all);
}

static void int16_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const pool_job *job = arg;
    dq_average_int16_planes(&job->s->int16, job->x, begin, end, dq_call_worker_scratch(job->call, worker),
                            job->out);
}

static void average_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const pool_job *job = arg;
    float *sums = dq_call_worker_scratch(job->call, worker);
    for (size_t i = begin; i < end; i++)
        average_line(job, i, sums);
}

/* com.microsoft's means include scale and zero point before rounding, hence scale 1 and zero 0 in job.to. */
static dq_status average_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_dtype dtype = call->in[0]->dtype;
    const pool_state *s = call->state;
    const dq_q8 from = dq_q8_read(call, 1, 2, dtype), to = dq_q8_read(call, 3, 4, dtype);
    pool_job job = {.qy = to,
                    .from = dq_row_quantizer_make(dtype, s->exact ? 1 : from.scale, from.zero),
                    .to = dq_row_quantizer_make(dtype, 1, s->exact ? to.zero : 0)};
    pool_run(call, &job, s->in_int16 ? int16_range : s->counts ? planes_range : average_range);
    return DQ_OK;
}

static dq_status exact_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check_exact(call, 1, 2, err));
    DQ_TRY(dq_q8_check_exact(call, 3, 4, err));
    return average_infer(call, err);
}

const dq_op_impl dq_op_qlinear_average_pool = {average_infer, average_prepare, average_run,
                                               DQ_OP_BATCH_SEPARABLE_FIRST};
const dq_op_impl dq_op_exact_average_pool = {exact_infer, average_prepare, average_run,
                                             DQ_OP_BATCH_SEPARABLE_FIRST};
