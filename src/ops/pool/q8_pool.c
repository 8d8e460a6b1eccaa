/* Pools of 8-bit tensors in com.microsoft: QLinearAveragePool, NhwcMaxPool.
 *
 * QLinearAveragePool adds up the dequantized elements of a window as floats in row-major order, divides by
 * their number (with count_include_pad by the window's size) and takes Y = saturate(round(mean / y_scale +
 * y_zero_point)), quotient and sum rounded to float: the zero point comes before rounding.
 *
 * A window that holds nothing but padding has the mean 0, and as its greatest element the least one of the
 * type. */
#include "ops/codes.h"
#include "ops/quantize/q8.h"
#include "ops/window.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* Multiplications or comparisons of a piece of parallel work, about. */
enum { WORK = 32768 };
enum {
    TOGETHER = 8, /* planes with one window */
    BAND = 2048,  /* floats, about */
    STRIP = 32    /* of which kernels take whole ones at once */
};

typedef struct pool_state {
    dq_window window;
    bool include_pad;
    size_t in_size, out_size; /* places of the input and the result */
    size_t inner;             /* channels where they are last, else 1 */
    size_t kernel_size;
    size_t line;                     /* results that are worked out together, see pool_job */
    size_t strides[DQ_MAX_RANK];     /* elements between neighbours along each spatial axis of the input */
    const struct tap *taps;          /* averages: of windows along the last axis … */
    const struct stretch *stretches; /* … and the results of a line */
    size_t tap_count, stretch_count;
    /* averages of whole planes at once, see plane_fits: */
    bool whole;          /* the only window is all of a plane */
    size_t pitch, plane; /* elements of a padded row, of all those under results */
    size_t band;         /* rows of results at a time, whose sums stay in the first cache … */
    size_t band_floats;  /* … with columns between them, in whole strips */
    const float *counts; /* elements under each result, results a pitch apart; NULL: line by line */
} pool_state;

/* An element of the windows of a line, for all those results at once whose windows have it inside: so each
 * result sees its elements in row-major order. Counted in elements. */
typedef struct tap {
    size_t first, count; /* results */
    size_t at;           /* of the row: what result `first` sees */
} tap;

/* Neighbouring results of a line, up to `end`, whose windows have `along` elements along the line. */
typedef struct stretch {
    size_t end, along;
} stretch;

/* ---- Shapes ------------------------------------------------------------------------------------------- */

static dq_status read_shape(const dq_op_call *call, bool channels_last, pool_state *s,
                            int64_t dims[DQ_MAX_RANK], dq_error *err)
{
    const dq_tensor *x = call->in[0];
    memset(s, 0, sizeof *s);
    if (x->rank < 3)
        return dq_call_fail_input(call, err, 0,
                                  "has %u axes, wanted batch, channels and 1 or more spatial axes", x->rank);
    size_t given, first = channels_last ? 1 : 2;
    dq_window *w = &s->window;
    w->rank = x->rank - 2;
    const int64_t *kernel = dq_node_ints(call->node, "kernel_shape", &given);
    if (given != w->rank)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'kernel_shape' has %zu values, wanted %zu",
                            given, w->rank);
    for (size_t i = 0; i < w->rank; i++) {
        w->in[i] = x->dims[first + i];
        w->kernel[i] = kernel[i];
        if (kernel[i] < 1)
            return dq_call_fail(call, err, DQ_BAD_MODEL,
                                "attribute 'kernel_shape' has %" PRId64 " at place %zu, wanted 1 or more",
                                kernel[i], i);
    }
    DQ_TRY(dq_window_infer(call, 0, dq_node_int(call->node, "ceil_mode", 0) != 0, w, err));
    memcpy(dims, x->dims, sizeof x->dims);
    memcpy(dims + first, w->out, w->rank * sizeof *dims);
    s->inner = channels_last ? (size_t)x->dims[x->rank - 1] : 1;
    s->in_size = dq_dims_product(x->dims, first, first + w->rank);
    s->out_size = dq_dims_product(dims, first, first + w->rank);
    return DQ_OK;
}

static dq_status pool_infer(dq_op_call *call, bool channels_last, dq_error *err)
{
    pool_state state;
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(read_shape(call, channels_last, &state, dims, err));
    return dq_call_output(call, 0, call->in[0]->dtype, call->in[0]->rank, dims, err);
}

/* A worker sums up a line of results, `width` bytes each. */
static dq_status pool_prepare(dq_op_call *call, bool channels_last, size_t width, dq_error *err)
{
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(dq_call_state(call, sizeof(pool_state), err));
    pool_state *s = call->state;
    DQ_TRY(read_shape(call, channels_last, s, dims, err));
    s->include_pad = dq_node_int(call->node, "count_include_pad", 0) != 0;
    s->kernel_size = 1;
    size_t stride = s->inner;
    for (size_t i = s->window.rank; i-- > 0;) {
        s->strides[i] = stride;
        stride *= (size_t)s->window.in[i];
        if (!dq_mul_size(s->kernel_size, (size_t)s->window.kernel[i], &s->kernel_size))
            return dq_call_fail(call, err, DQ_OUT_OF_MEMORY,
                                "the window has more elements than can be counted");
    }
    if (!dq_mul_size((size_t)s->window.out[s->window.rank - 1], s->inner, &s->line) ||
        !dq_mul_size(s->line, width, &call->worker_scratch_size))
        return dq_no_memory(err, SIZE_MAX, "a line of results");
    return DQ_OK;
}

/* ---- Windows ------------------------------------------------------------------------------------------ */

/* Elements of a window along one axis that are inside the input: the first one's place and their number. */
static size_t axis_cells(const dq_window *w, size_t axis, size_t position, size_t *first)
{
    int64_t start = (int64_t)position * w->stride[axis] - w->begin[axis];
    int64_t step = w->dilation[axis], skipped = start < 0 ? (-start - 1) / step + 1 : 0;
    int64_t at = start + skipped * step;
    int64_t inside = at < w->in[axis] ? (w->in[axis] - at - 1) / step + 1 : 0;
    int64_t left = w->kernel[axis] - skipped;
    int64_t count = left < inside ? left : inside;
    *first = count > 0 ? (size_t)at : 0;
    return count > 0 ? (size_t)count : 0;
}

/* The elements of a window over the first `rank` axes. */
typedef struct cells {
    size_t rank, base, total;
    size_t count[DQ_MAX_RANK], step[DQ_MAX_RANK];
} cells;

static cells cells_at(const pool_state *s, size_t rank, size_t position)
{
    const dq_window *w = &s->window;
    cells c = {.rank = rank, .total = 1};
    for (size_t i = rank; i-- > 0; position /= (size_t)w->out[i]) {
        size_t first;
        c.count[i] = axis_cells(w, i, position % (size_t)w->out[i], &first);
        c.step[i] = (size_t)w->dilation[i] * s->strides[i];
        c.base += first * s->strides[i];
        c.total *= c.count[i];
    }
    return c;
}

/* From one element of the window to the next, in row-major order. */
static void next_cell(const cells *c, size_t index[DQ_MAX_RANK], size_t *at)
{
    for (size_t d = c->rank; d-- > 0;) {
        *at += c->step[d];
        if (++index[d] < c->count[d])
            return;
        *at -= c->count[d] * c->step[d];
        index[d] = 0;
    }
}

/* Results come in lines along the last axis, with channels last all channels of each place. */
typedef struct pool_job {
    const dq_op_call *call;
    const pool_state *s;
    const uint8_t *x;
    uint8_t *out;
    bool is_signed;       /* maxima … */
    dq_q8 qy;             /* … and averages: the result's codes, … */
    dq_codes from, as_is; /* … the input's, and whole numbers' */
} pool_job;

static void pool_run(const dq_op_call *call, pool_job *job, dq_range_fn range)
{
    const pool_state *s = call->state;
    size_t count = call->out[0] ? call->out[0]->count : 0;
    if (count == 0)
        return;
    job->call = call;
    job->s = s;
    job->x = call->in[0]->data;
    job->out = call->out[0]->data;
    size_t items = s->counts ? s->out_size : s->line; /* planes or lines */
    size_t work = s->kernel_size < WORK && items < WORK ? s->kernel_size * items : WORK;
    dq_parallel(call->threads, count / items, WORK / work + 1, range, job);
}

/* ---- QLinearAveragePool ------------------------------------------------------------------------------- */

static dq_status average_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return pool_infer(call, dq_node_int(call->node, "channels_last", 0) != 0, err);
}

static dq_status list_taps(const dq_op_call *call, pool_state *s, dq_error *err)
{
    const dq_window *w = &s->window;
    size_t last = w->rank - 1;
    int64_t begin, end, stride = w->stride[last];
    dq_window_taps(w, last, &begin, &end);
    tap *taps = DQ_NEW_ARRAY(call->arena, end > begin ? (size_t)(end - begin) : 0, tap);
    if (!taps)
        return dq_no_memory(err, SIZE_MAX, "the elements of a window");
    s->taps = taps;
    for (int64_t k = begin; k < end; k++) {
        int64_t shift = k * w->dilation[last] - w->begin[last]; /* of result 0 */
        int64_t first =
            shift < 0 ? (-shift - 1) / stride + 1 : 0; /* strides may be as large as int64 holds */
        int64_t past = shift < w->in[last] ? (w->in[last] - shift - 1) / stride + 1 : 0;
        past = past < w->out[last] ? past : w->out[last];
        if (first < past)
            taps[s->tap_count++] = (tap){.first = (size_t)first * s->inner,
                                         .count = (size_t)(past - first) * s->inner,
                                         .at = (size_t)(first * stride + shift) * s->inner};
    }
    return DQ_OK;
}

static dq_status list_stretches(const dq_op_call *call, pool_state *s, dq_error *err)
{
    size_t last = s->window.rank - 1, places = (size_t)s->window.out[last], first;
    stretch *list = DQ_NEW_ARRAY(call->arena, places, stretch);
    if (!list)
        return dq_no_memory(err, places * sizeof *list, "the lengths of windows");
    s->stretches = list;
    for (size_t i = 0; i < places; i++) {
        size_t along = axis_cells(&s->window, last, i, &first);
        if (s->stretch_count == 0 || list[s->stretch_count - 1].along != along)
            list[s->stretch_count++].along = along;
        list[s->stretch_count - 1].end = (i + 1) * s->inner;
    }
    return DQ_OK;
}

/* Whether planes of results are worked out at once: rows with zeros around them, as floats, so that an
 * element of the windows is added to all results of a plane by one long addition. What is added to the
 * results' sums are the same numbers in the same order, and zeros, which change nothing: a sum that begins
 * with +0 is never -0. Columns between a row's last result and the next row's first are worked out in vain.
 */
static bool plane_fits(const pool_state *s)
{
    enum { MOST_FLOATS = 1 << 15 /* of a plane */, MOST_TAPS = 16 };
    const dq_window *w = &s->window;
    if (w->rank != 2 || s->inner != 1 || s->out_size == 0 || w->kernel[1] > MOST_TAPS)
        return false;
    for (size_t d = 0; d < 2; d++)
        if (w->begin[d] < 0 || (w->stride[d] != 1 && w->out[d] != 1) || w->in[d] > MOST_FLOATS ||
            w->out[d] > MOST_FLOATS || w->kernel[d] > MOST_FLOATS || w->dilation[d] > MOST_FLOATS ||
            dq_window_span(w, d) > MOST_FLOATS)
            return false;
    return (w->out[0] + dq_window_span(w, 0)) * (w->out[1] + dq_window_span(w, 1)) <= MOST_FLOATS;
}

static size_t strips(size_t n)
{
    return (n + STRIP - 1) / STRIP * STRIP;
}

/* Room for the plane and the sums of a band, and how many elements each result has. */
static dq_status prepare_planes(dq_op_call *call, pool_state *s, dq_error *err)
{
    const dq_window *w = &s->window;
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
                           ? axis_cells(w, 0, i / s->pitch, &first) * axis_cells(w, 1, i % s->pitch, &first)
                           : 1;
        under = s->include_pad ? s->kernel_size : under;
        counts[i] = (float)(under ? under : 1);
    }
    s->counts = counts;
    /* behind the last row lies what the last of the columns worked out in vain reads */
    call->worker_scratch_size =
        (s->plane + s->pitch + STRIP) * sizeof(float) + s->band_floats * (sizeof(float) + 1);
    s->whole = s->out_size == 1;
    for (size_t d = 0; d < 2; d++)
        s->whole = s->whole && w->kernel[d] == w->in[d] && w->begin[d] == 0 && w->dilation[d] == 1;
    if (s->whole) /* average_wholes */
        call->worker_scratch_size += TOGETHER * s->plane * sizeof(float);
    return DQ_OK;
}

/* A worker's sums, and the row that is added. */
static dq_status average_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(pool_prepare(call, dq_node_int(call->node, "channels_last", 0) != 0, sizeof(float), err));
    pool_state *s = call->state;
    size_t row, *size = &call->worker_scratch_size;
    if (plane_fits(s))
        return prepare_planes(call, s, err);
    DQ_TRY(list_taps(call, s, err));
    DQ_TRY(list_stretches(call, s, err));
    return dq_mul_size((size_t)s->window.in[s->window.rank - 1], s->inner * sizeof(float), &row) &&
                   dq_add_size(*size, row, size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "a line of the input");
}

/* n sums take x[i * step]. */
static inline void average_take(float *restrict sums, const float *restrict x, size_t step, size_t n)
{
    if (step == 1) /* which a compiler makes vectors of */
        for (size_t i = 0; i < n; i++)
            sums[i] += x[i];
    else
        for (size_t i = 0; i < n; i++)
            sums[i] += x[i * step];
}

/* The elements of a row, to the results of a line. */
static void average_row(const pool_state *s, const float *row, float *sums)
{
    size_t stride = (size_t)s->window.stride[s->window.rank - 1], inner = s->inner;
    for (const tap *t = s->taps; t < s->taps + s->tap_count; t++)
        if (inner == 1 || stride == 1)
            average_take(sums + t->first, row + t->at, inner == 1 ? stride : 1, t->count);
        else
            for (size_t i = 0; i < t->count; i += inner)
                average_take(sums + t->first + i, row + t->at + i * stride, 1, inner);
}

/* The codes of a line with `total` elements a result, times those along the last axis: numbers that are
 * rounded with their zero point are quantized by a scale of 1. */
static void average_finish(const pool_job *job, float *sums, size_t total, uint8_t *out)
{
    const pool_state *s = job->s;
    const float scale = job->qy.scale, zero = (float)job->qy.zero;
    size_t i = 0;
    for (const stretch *t = s->stretches; t < s->stretches + s->stretch_count; t++) {
        /* what holds nothing has a sum of 0, and as its mean */
        const size_t elements = s->include_pad ? s->kernel_size : total * t->along;
        const float count = (float)(elements ? elements : 1);
        const size_t end = t->end;
        for (; i < end; i++)
            sums[i] = sums[i] / count / scale + zero;
    }
    dq_codes_write(job->call->kernels, &job->as_is, sums, s->line, out, 0);
}

static void average_line(const pool_job *job, size_t line, float *sums)
{
    const pool_state *s = job->s;
    size_t last = s->window.rank - 1, lines = s->out_size * s->inner / s->line;
    const size_t image = line / lines * s->in_size * s->inner, width = (size_t)s->window.in[last] * s->inner;
    float *row = sums + s->line;
    cells c = cells_at(s, last, line % lines);
    size_t index[DQ_MAX_RANK] = {0}, at = c.base;
    memset(sums, 0, s->line * sizeof *sums);
    for (size_t i = 0; i < c.total; i++) {
        dq_codes_read(job->call->kernels, &job->from, job->x, image + at, width, row);
        average_row(s, row, sums);
        next_cell(&c, index, &at);
    }
    average_finish(job, sums, c.total, job->out + line * s->line);
}

/* Neither products of input codes, nor their sums and means, are near the ends of float's range, so that
 * means are divided as `divide` does. */
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
    const dq_window *w = &s->window;
    const dq_float_rows *rows = job->call->kernels->float_rows;
    const float scale = job->qy.scale, zero = (float)job->qy.zero;
    const size_t left = (size_t)w->out[0] - first, high = left < s->band ? left : s->band;
    const size_t wide = (size_t)w->out[1], n = strips(high * s->pitch);
    uint8_t *codes = (uint8_t *)(sums + s->band_floats), *out = job->out + plane * s->out_size + first * wide;
    memset(sums, 0, n * sizeof *sums);
    for (size_t k = 0; k < (size_t)w->kernel[0]; k++)
        rows->mix(ones, (size_t)w->kernel[1], padded + (first + k * (size_t)w->dilation[0]) * s->pitch,
                  (size_t)w->dilation[1], n, sums);
    rows->div(sums, 1, s->counts + first * s->pitch, 1, n, sums);
    if (divides(job))
        rows->divide(sums, n, scale, sums);
    else
        rows->div(sums, 1, &scale, 0, n, sums);
    rows->add(sums, 1, &zero, 0, n, sums);
    dq_codes_write(job->call->kernels, &job->as_is, sums, n, codes, 0);
    for (size_t row = 0; row < high; row++)
        memcpy(out + row * wide, codes + row * s->pitch, wide);
}

static void average_plane(const pool_job *job, size_t plane, float *padded, float *sums)
{
    const pool_state *s = job->s;
    const dq_window *w = &s->window;
    size_t left = (size_t)w->begin[1], top = (size_t)w->begin[0], in_wide = (size_t)w->in[1];
    size_t shown = left < s->pitch ? s->pitch - left : 0;
    shown = shown < in_wide ? shown : in_wide;
    for (size_t row = 0; row < (size_t)w->in[0] && (top + row) * s->pitch < s->plane && shown; row++)
        dq_codes_read(job->call->kernels, &job->from, job->x, plane * s->in_size + row * in_wide, shown,
                      padded + (top + row) * s->pitch + left);
    for (size_t row = 0; row < (size_t)w->out[0]; row += s->band)
        average_band(job, plane, row, padded, sums);
}

/* Planes that have one window: some side by side, since each is one chain of additions. */
static void average_wholes(const pool_job *job, size_t begin, size_t end, float *room)
{
    const size_t n = job->s->in_size;
    const float count = job->s->counts[0];
    for (size_t planes; begin < end; begin += planes) {
        float sums[TOGETHER] = {0};
        planes = end - begin < TOGETHER ? end - begin : TOGETHER;
        memset(room, 0, TOGETHER * n * sizeof *room);
        dq_codes_read(job->call->kernels, &job->from, job->x, begin * n, planes * n, room);
        for (size_t i = 0; i < n; i++)
            for (size_t p = 0; p < TOGETHER; p++)
                sums[p] += room[p * n + i];
        for (size_t p = 0; p < TOGETHER; p++)
            sums[p] = sums[p] / count / job->qy.scale + (float)job->qy.zero;
        dq_codes_write(job->call->kernels, &job->as_is, sums, planes, job->out, begin);
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

static void average_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const pool_job *job = arg;
    float *sums = dq_call_worker_scratch(job->call, worker);
    for (size_t i = begin; i < end; i++)
        average_line(job, i, sums);
}

static dq_status average_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_dtype dtype = call->in[0]->dtype;
    const dq_q8 from = dq_q8_read(call, 1, 2, dtype);
    pool_job job = {.qy = dq_q8_read(call, 3, 4, dtype),
                    .from = dq_codes_make(dtype, from.scale, from.zero),
                    .as_is = dq_codes_make(dtype, 1, 0)};
    pool_run(call, &job, ((const pool_state *)call->state)->counts ? planes_range : average_range);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_average_pool = {average_infer, average_prepare, average_run,
                                               DQ_OP_SLICED_FIRST};

/* ---- NhwcMaxPool -------------------------------------------------------------------------------------- */

static dq_status max_infer(dq_op_call *call, dq_error *err)
{
    return pool_infer(call, true, err);
}

/* A worker's line: the rows under a line of results as one. */
static dq_status max_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(pool_prepare(call, true, 0, err));
    const pool_state *s = call->state;
    size_t *size = &call->worker_scratch_size;
    return dq_mul_size((size_t)s->window.in[s->window.rank - 1], s->inner, size) &&
                   dq_add_size(*size, DQ_MAX_SLACK, size)
               ? DQ_OK
               : dq_no_memory(err, SIZE_MAX, "a line of the input");
}

/* line[i] becomes the larger of itself and x[i], where `flip` brings codes to the order of uint8. */
static void join(uint8_t *restrict line, const uint8_t *restrict x, size_t n, uint8_t flip)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t a = line[i] ^ flip, b = x[i] ^ flip;
        line[i] = (a > b ? a : b) ^ flip;
    }
}

/* The rows of cells as one. Those of a plane are evenly apart. */
static void join_rows(const pool_job *job, const uint8_t *x, const cells *c, dq_max_windows *w)
{
    size_t index[DQ_MAX_RANK] = {0}, at = c->base;
    if (c->rank == 1) {
        w->x = x + at;
        w->x_step = c->step[0];
        w->under = c->total;
        w->width = 0;
        job->call->kernels->max_windows(w);
        w->under = 0;
        return;
    }
    memcpy(w->line, x + at, w->n);
    for (size_t i = 1; i < c->total; i++) {
        next_cell(c, index, &at);
        join(w->line, x + at, w->n, w->is_signed ? 0x80 : 0);
    }
}

/* Windows that lie on the input side by side are taken together. */
static void max_line(const pool_job *job, size_t line, uint8_t *joined)
{
    const pool_state *s = job->s;
    size_t last = s->window.rank - 1, lines = s->out_size * s->inner / s->line, first = 0, next;
    size_t width = (size_t)s->window.out[last];
    cells c = cells_at(s, last, line % lines);
    dq_max_windows w = {.line = joined,
                        .n = (size_t)s->window.in[last] * s->inner,
                        .rows = 1,
                        .kernel = 1,
                        .stride = 1,
                        .dilation = (size_t)s->window.dilation[last] * s->inner,
                        .is_signed = job->is_signed,
                        .out = job->out + line * s->line};
    if (c.total)
        join_rows(job, job->x + line / lines * s->in_size * s->inner, &c, &w);
    for (size_t i = 0, together; i < width; i += together, w.out += w.width) {
        w.kernel = c.total ? axis_cells(&s->window, last, i, &first) : 0;
        together = 1;
        while (s->window.stride[last] == 1 && w.kernel == (size_t)s->window.kernel[last] &&
               i + together < width && axis_cells(&s->window, last, i + together, &next) == w.kernel)
            together++;
        w.width = together * s->inner;
        w.line = joined + first * s->inner;
        if (w.kernel)
            job->call->kernels->max_windows(&w);
        else
            memset(w.out, w.is_signed ? 0x80 : 0, w.width);
    }
}

static void max_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    const pool_job *job = arg;
    for (size_t i = begin; i < end; i++)
        max_line(job, i, dq_call_worker_scratch(job->call, worker));
}

static dq_status max_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    pool_job job = {.is_signed = call->in[0]->dtype == DQ_INT8};
    pool_run(call, &job, max_range);
    return DQ_OK;
}

const dq_op_impl dq_op_nhwc_max_pool = {max_infer, max_prepare, max_run, DQ_OP_SLICED_FIRST};
