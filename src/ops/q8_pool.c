/* Pools of 8-bit tensors in com.microsoft: QLinearAveragePool, QLinearGlobalAveragePool, NhwcMaxPool.
 *
 * QLinearAveragePool adds up the dequantized elements of a window as floats in row-major order, divides by
 * their number (with count_include_pad by the window's size) and takes Y = saturate(round(mean / y_scale +
 * y_zero_point)), quotient and sum rounded to float: the zero point comes before rounding.
 *
 * QLinearGlobalAveragePool adds up integers:
 *     Y = saturate(round(sum(X - x_zero_point) * (x_scale / (y_scale * count))) + y_zero_point),
 * each step rounded to float.
 *
 * A window that holds nothing but padding (or a channel without elements) has the mean 0, and as its greatest
 * element the least one of the type. */
#include "ops/codes.h"
#include "ops/conv_shape.h"
#include "ops/q8.h"
#include "ops/window_walk.h"

#include "base/checked.h"

#include <inttypes.h>
#include <string.h>

/* Multiplications or comparisons of a piece of parallel work, about. */
enum { WORK = 32768 };

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
    size_t work = s->kernel_size < WORK && s->line < WORK ? s->kernel_size * s->line : WORK;
    dq_parallel(call->threads, count / s->line, WORK / work + 1, range, job);
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

/* A worker's sums, and the row that is added. */
static dq_status average_prepare(dq_op_call *call, dq_error *err)
{
    DQ_TRY(pool_prepare(call, dq_node_int(call->node, "channels_last", 0) != 0, sizeof(float), err));
    pool_state *s = call->state;
    size_t row, *size = &call->worker_scratch_size;
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
    pool_run(call, &job, average_range);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_average_pool = {average_infer, average_prepare, average_run, 0};

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

const dq_op_impl dq_op_nhwc_max_pool = {max_infer, max_prepare, max_run, 0};

/* ---- QLinearGlobalAveragePool ------------------------------------------------------------------------- */

typedef struct global_state {
    size_t channels, size; /* size: elements of a channel */
    bool channels_last;
} global_state;

static dq_status global_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    if (x->rank < 3)
        return dq_call_fail_input(call, err, 0,
                                  "has %u axes, wanted batch, channels and 1 or more spatial axes", x->rank);
    size_t channel = dq_node_int(call->node, "channels_last", 0) != 0 ? x->rank - 1 : 1;
    for (size_t i = 0; i < x->rank; i++)
        dims[i] = i == 0 || i == channel ? x->dims[i] : 1;
    return dq_call_output(call, 0, x->dtype, x->rank, dims, err);
}

static dq_status global_prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    DQ_TRY(dq_call_state(call, sizeof(global_state), err));
    global_state *s = call->state;
    s->channels_last = dq_node_int(call->node, "channels_last", 0) != 0;
    s->channels = (size_t)x->dims[s->channels_last ? x->rank - 1 : 1];
    s->size =
        s->channels_last ? dq_dims_product(x->dims, 1, x->rank - 1) : dq_dims_product(x->dims, 2, x->rank);
    return DQ_OK;
}

/* Channels that are added up side by side where they are neighbours, and places until their sums move on to
 * 64 bits. */
enum { SIDE = 64, PLACES = 65536 };

typedef struct global_job {
    const global_state *s;
    const uint8_t *x;
    uint8_t *out;
    dq_q8 qx, qy;
    float ratio;
} global_job;

static void add_places(const uint8_t *x, size_t places, size_t step, size_t channels, bool is_signed,
                       int32_t *sums)
{
    for (size_t k = 0; k < places; k++, x += step)
        if (is_signed)
            for (size_t c = 0; c < channels; c++)
                sums[c] += (int8_t)x[c];
        else
            for (size_t c = 0; c < channels; c++)
                sums[c] += x[c];
}

/* Eight bytes at a time: pairs of them in four sums of 16 bits, which hold those of 128 words. */
static int64_t sum_of_line(const uint8_t *x, size_t n, bool is_signed)
{
    enum { WORD = 8, WORDS = 128 };
    const uint64_t even = 0x00ff00ff00ff00ff, twos = 0x0000ffff0000ffff;
    const uint64_t flip = is_signed ? 0x8080808080808080 : 0; /* adds 128 to each */
    int64_t sum = is_signed ? -128 * (int64_t)n : 0;
    size_t k = 0;
    while (n - k >= WORD) {
        uint64_t pairs = 0;
        for (size_t i = 0; i < WORDS && n - k >= WORD; i++, k += WORD) {
            uint64_t word;
            memcpy(&word, x + k, WORD);
            word ^= flip;
            pairs += (word & even) + (word >> 8 & even);
        }
        pairs = (pairs & twos) + (pairs >> 16 & twos);
        sum += (int64_t)((pairs & UINT32_MAX) + (pairs >> 32));
    }
    for (; k < n; k++)
        sum += x[k] ^ (uint8_t)flip;
    return sum;
}

static uint8_t global_mean(const global_job *job, int64_t sum)
{
    sum -= (int64_t)job->qx.zero * (int64_t)job->s->size;
    return dq_q8_round(&job->qy, (double)((float)sum * job->ratio));
}

/* Results at … at + n - 1, of neighbouring channels, which are last. */
static void global_means(const global_job *job, const uint8_t *x, size_t at, size_t n)
{
    const global_state *s = job->s;
    int64_t sums[SIDE] = {0};
    for (size_t k = 0; k < s->size; k += PLACES) {
        size_t places = s->size - k < PLACES ? s->size - k : PLACES;
        int32_t part[SIDE] = {0};
        add_places(x + k * s->channels, places, s->channels, n, job->qx.min < 0, part);
        for (size_t c = 0; c < n; c++)
            sums[c] += part[c];
    }
    for (size_t c = 0; c < n; c++)
        job->out[at + c] = global_mean(job, sums[c]);
}

static size_t global_pieces(const global_state *s) /* of an image */
{
    return s->channels_last ? (s->channels + SIDE - 1) / SIDE : s->channels;
}

static void global_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const global_job *job = arg;
    const global_state *s = job->s;
    size_t pieces = global_pieces(s);
    for (size_t i = begin; i < end; i++) {
        if (!s->channels_last) {
            job->out[i] = global_mean(job, sum_of_line(job->x + i * s->size, s->size, job->qx.min < 0));
            continue;
        }
        size_t channel = i % pieces * SIDE, n = s->channels - channel < SIDE ? s->channels - channel : SIDE;
        const uint8_t *image = job->x + i / pieces * s->channels * s->size;
        global_means(job, image + channel, i / pieces * s->channels + channel, n);
    }
}

static dq_status global_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0] || call->out[0]->count == 0)
        return DQ_OK;
    dq_dtype dtype = call->in[0]->dtype;
    global_job job = {.s = call->state,
                      .x = call->in[0]->data,
                      .out = call->out[0]->data,
                      .qx = dq_q8_read(call, 1, 2, dtype),
                      .qy = dq_q8_read(call, 3, 4, dtype)};
    job.ratio = job.s->size ? job.qx.scale / (job.qy.scale * (float)job.s->size) : 0;
    size_t pieces = call->out[0]->count / job.s->channels * global_pieces(job.s);
    dq_parallel(call->threads, pieces, WORK / (job.s->size + 1) + 1, global_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_global_average_pool = {global_infer, global_prepare, global_run, 0};
