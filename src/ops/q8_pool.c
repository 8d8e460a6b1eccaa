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
 * A window that holds nothing but padding has the mean 0, and as its greatest element the least one of the
 * type. */
#include "ops/conv_shape.h"
#include "ops/q8.h"

#include <inttypes.h>
#include <string.h>

/* Multiplications or comparisons of a piece of parallel work, about. */
enum { WORK = 32768 };

typedef struct pool_state {
    dq_window window;
    bool channels_last, include_pad;
    size_t channels, in_size, out_size;
    size_t kernel_size;
    size_t strides[DQ_MAX_RANK]; /* elements between neighbours along each spatial axis of the input */
} pool_state;

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
    s->channels_last = channels_last;
    s->channels = (size_t)x->dims[channels_last ? x->rank - 1 : 1];
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

static dq_status pool_prepare(dq_op_call *call, bool channels_last, dq_error *err)
{
    int64_t dims[DQ_MAX_RANK];
    DQ_TRY(dq_call_state(call, sizeof(pool_state), err));
    pool_state *s = call->state;
    DQ_TRY(read_shape(call, channels_last, s, dims, err));
    s->include_pad = dq_node_int(call->node, "count_include_pad", 0) != 0;
    s->kernel_size = 1;
    size_t stride = channels_last ? s->channels : 1;
    for (size_t i = s->window.rank; i-- > 0;) {
        s->strides[i] = stride;
        stride *= (size_t)s->window.in[i];
        s->kernel_size *= (size_t)s->window.kernel[i];
    }
    return DQ_OK;
}

/* ---- Windows ------------------------------------------------------------------------------------------ */

/* The elements of a window that are inside the input, relative to its first spatial element. */
typedef struct cells {
    size_t rank, base, total;
    size_t count[DQ_MAX_RANK], step[DQ_MAX_RANK];
} cells;

static cells cells_at(const pool_state *s, size_t position)
{
    const dq_window *w = &s->window;
    cells c = {.rank = w->rank, .total = 1};
    for (size_t i = w->rank; i-- > 0; position /= (size_t)w->out[i]) {
        int64_t start = (int64_t)(position % (size_t)w->out[i]) * w->stride[i] - w->begin[i];
        int64_t step = w->dilation[i], skipped = start < 0 ? (step - 1 - start) / step : 0;
        int64_t first = start + skipped * step;
        int64_t inside = first < w->in[i] ? (w->in[i] - first + step - 1) / step : 0;
        int64_t left = w->kernel[i] - skipped;
        int64_t count = left < inside ? left : inside;
        c.count[i] = count > 0 ? (size_t)count : 0;
        c.step[i] = (size_t)step * s->strides[i];
        c.total *= c.count[i];
        if (count > 0)
            c.base += (size_t)first * s->strides[i];
    }
    return c;
}

/* Lines along the last axis, one after the other: where line `i` begins. */
static size_t line_start(const cells *c, size_t i)
{
    size_t at = c->base;
    for (size_t d = c->rank - 1; d-- > 0; i /= c->count[d])
        at += i % c->count[d] * c->step[d];
    return at;
}

static size_t line_count(const cells *c)
{
    return c->total ? c->total / c->count[c->rank - 1] : 0;
}

typedef struct pool_job pool_job;
/* One result from a window's elements; `x` is where the channel's elements begin. */
typedef uint8_t pool_fn(const pool_job *job, const uint8_t *x, const cells *c);

struct pool_job {
    const pool_state *s;
    const uint8_t *x;
    uint8_t *out;
    pool_fn *fn;
    dq_q8 qx, qy;
    float real[256]; /* what each code of x stands for */
};

/* Results in the order of the output: the position is the slow index with channels last, the fast one else.
 */
static void pool_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const pool_job *job = arg;
    const pool_state *s = job->s;
    size_t known = SIZE_MAX;
    cells c = {0};
    for (size_t i = begin; i < end; i++) {
        size_t image = i / (s->channels * s->out_size), rest = i % (s->channels * s->out_size);
        size_t channel = s->channels_last ? rest % s->channels : rest / s->out_size;
        size_t position = s->channels_last ? rest / s->channels : rest % s->out_size;
        if (position != known) {
            c = cells_at(s, position);
            known = position;
        }
        size_t start = image * s->channels * s->in_size + channel * (s->channels_last ? 1 : s->in_size);
        job->out[i] = job->fn(job, job->x + start, &c);
    }
}

static void pool_run(const dq_op_call *call, pool_job *job)
{
    job->s = call->state;
    job->x = call->in[0]->data;
    job->out = call->out[0]->data;
    dq_parallel(call->threads, call->out[0]->count, WORK / (job->s->kernel_size + 1) + 1, pool_range, job);
}

/* ---- QLinearAveragePool ------------------------------------------------------------------------------- */

static dq_status average_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return pool_infer(call, dq_node_int(call->node, "channels_last", 0) != 0, err);
}

static dq_status average_prepare(dq_op_call *call, dq_error *err)
{
    return pool_prepare(call, dq_node_int(call->node, "channels_last", 0) != 0, err);
}

static uint8_t average(const pool_job *job, const uint8_t *x, const cells *c)
{
    size_t last = c->rank - 1, lines = line_count(c);
    size_t count = job->s->include_pad ? job->s->kernel_size : c->total;
    float sum = 0;
    for (size_t k = 0; k < lines; k++) {
        const uint8_t *line = x + line_start(c, k);
        for (size_t i = 0; i < c->count[last]; i++)
            sum += job->real[line[i * c->step[last]]];
    }
    float mean = count ? sum / (float)count : 0;
    float multiple = mean / job->qy.scale;
    return dq_q8_saturate(&job->qy, multiple + (float)job->qy.zero);
}

static dq_status average_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0])
        return DQ_OK;
    dq_dtype dtype = call->in[0]->dtype;
    pool_job job = {.fn = average, .qx = dq_q8_read(call, 1, 2, dtype), .qy = dq_q8_read(call, 3, 4, dtype)};
    for (int i = 0; i < 256; i++)
        job.real[i] = dq_q8_real(&job.qx, (uint8_t)i);
    pool_run(call, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_average_pool = {average_infer, average_prepare, average_run, 0};

/* ---- NhwcMaxPool -------------------------------------------------------------------------------------- */

static dq_status max_infer(dq_op_call *call, dq_error *err)
{
    return pool_infer(call, true, err);
}

static dq_status max_prepare(dq_op_call *call, dq_error *err)
{
    return pool_prepare(call, true, err);
}

static uint8_t greatest(const pool_job *job, const uint8_t *x, const cells *c)
{
    size_t last = c->rank - 1, lines = line_count(c);
    int best = job->qx.min;
    for (size_t k = 0; k < lines; k++) {
        const uint8_t *line = x + line_start(c, k);
        for (size_t i = 0; i < c->count[last]; i++) {
            int code = dq_q8_code(&job->qx, line[i * c->step[last]]);
            best = code > best ? code : best;
        }
    }
    return (uint8_t)best;
}

static dq_status max_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0])
        return DQ_OK;
    pool_job job = {.fn = greatest, .qx = {.min = call->in[0]->dtype == DQ_INT8 ? INT8_MIN : 0}};
    pool_run(call, &job);
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

typedef struct global_job {
    const global_state *s;
    const uint8_t *x;
    uint8_t *out;
    dq_q8 qx, qy;
} global_job;

static void global_range(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const global_job *job = arg;
    const global_state *s = job->s;
    float ratio = job->qx.scale / (job->qy.scale * (float)s->size);
    size_t step = s->channels_last ? s->channels : 1;
    for (size_t i = begin; i < end; i++) {
        size_t start =
            s->channels_last ? i / s->channels * s->channels * s->size + i % s->channels : i * s->size;
        int64_t sum = -(int64_t)job->qx.zero * (int64_t)s->size;
        for (size_t k = 0; k < s->size; k++)
            sum += dq_q8_code(&job->qx, job->x[start + k * step]);
        job->out[i] = dq_q8_round(&job->qy, (double)((float)sum * ratio));
    }
}

static dq_status global_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    if (!call->out[0])
        return DQ_OK;
    dq_dtype dtype = call->in[0]->dtype;
    global_job job = {.s = call->state,
                      .x = call->in[0]->data,
                      .out = call->out[0]->data,
                      .qx = dq_q8_read(call, 1, 2, dtype),
                      .qy = dq_q8_read(call, 3, 4, dtype)};
    dq_parallel(call->threads, call->out[0]->count, WORK / (job.s->size + 1) + 1, global_range, &job);
    return DQ_OK;
}

const dq_op_impl dq_op_qlinear_global_average_pool = {global_infer, global_prepare, global_run, 0};
