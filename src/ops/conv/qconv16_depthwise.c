/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit depthwise convolution. The zero point is subtracted from weights first. 16-bit weights are split
 * into two parts, v = 256 · high + low, so that all parts are within ±256. The sum of (x - x_zero) times one
 * part is then below 2^31. The compensation for x's zero point is in the initial value of the sums. */
#include "ops/conv/qconv16_depthwise.h"

#include "base/checked.h"
#include "base/copy.h"
#include "ops/conv/conv_s16_algorithms.h"
#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/matmul/qgemm16_pack.h"

#include <string.h>

enum {
    BAND = 1 << 13, /* bytes of a band; its sums take twice as many and must stay cached, too */
    MAX_JOINED = 4, /* maximum discarded sums per row of a joined band */
    TAPS = 127      /* maximum kernel elements: int32 holds the sum of 127 · 65535 · 256 */
};

bool dq_conv_s16_depthwise_is_applicable(const void *problem, dq_reason *reason)
{
    const dq_conv_s16_problem *p = problem;
    if (p->shape->group_in != 1)
        return dq_not_applicable(reason, "groups have %zu input channels, expected 1", p->shape->group_in);
    return p->shape->kernel_size <= TAPS ||
           dq_not_applicable(reason, "the kernel has %zu elements, expected at most %d",
                             p->shape->kernel_size, TAPS);
}

dq_algorithm_work dq_conv_s16_depthwise_work(const void *problem)
{
    const dq_conv_s16_problem *p = problem;
    const dq_conv_shape *s = p->shape;
    const double planes = (double)s->batch * (double)s->out_channels;
    return (dq_algorithm_work){.macs = dq_conv_s16_macs(s, 1, 1),
                               .bytes = planes * (double)s->in_size * sizeof(int16_t),
                               .calls = planes};
}

/* Pairs kernel elements whose inputs are neighbors in the same phase. */
static dq_status find_pairs(dq_op_call *call, size_t taps, dq_qconv16_depthwise *d, dq_error *err)
{
    const dq_window *w = &d->b.w;
    bool used[TAPS] = {false};
    uint32_t row = (uint32_t)w->kernel[w->rank - 1];
    int64_t stride = w->stride[w->rank - 1], dilation = w->dilation[w->rank - 1];
    uint32_t row_stride =
        stride % dilation == 0 && stride / dilation < row ? (uint32_t)(stride / dilation) : row;
    d->offsets = DQ_NEW_ARRAY(call->arena, taps, ptrdiff_t);
    d->first = DQ_NEW_ARRAY(call->arena, taps, uint32_t);
    d->second = DQ_NEW_ARRAY(call->arena, taps, uint32_t);
    if (!d->offsets || !d->first || !d->second)
        return dq_no_memory(err, taps, "pairs of a kernel's elements");
    for (uint32_t t = 0; t < taps; t++) {
        if (used[t])
            continue;
        bool two = t % row + row_stride < row;
        d->offsets[d->pairs] = d->b.taps[t];
        d->first[d->pairs] = t;
        d->second[d->pairs++] = two ? t + row_stride : UINT32_MAX;
        if (two)
            used[t + row_stride] = true;
    }
    return DQ_OK;
}

static size_t outputs(const dq_qconv16_depthwise *d)
{
    return dq_input_band_rows(&d->b, d->b.band) * dq_input_band_columns(&d->b, d->b.band);
}

/* True if input rows have the same pitch as output rows would, so that a band can be computed as one row. */
static bool joins(const dq_input_band *b)
{
    return b->w.rank == 2 && b->stride[0] == 1 && b->phases == 1 &&
           b->pitch - dq_input_band_columns(b, b->band) <= MAX_JOINED;
}

/* Stride between rows of sums. */
static size_t sums_stride(const dq_qconv16_depthwise *d, size_t columns)
{
    return d->joined ? d->b.pitch : columns;
}

dq_status dq_qconv16_depthwise_prepare(dq_op_call *call, const dq_conv_shape *s, dq_qconv16_depthwise *d,
                                       dq_error *err)
{
    size_t elements, sums, *used = &call->worker_scratch_size;
    DQ_TRY(dq_input_band_prepare(call, s, 1, true, BAND, &d->b, err));
    DQ_TRY(find_pairs(call, s->kernel_size, d, err));
    d->joined = joins(&d->b);
    sums = dq_input_band_rows(&d->b, d->b.band) * sums_stride(d, dq_input_band_columns(&d->b, d->b.band));
    if (!dq_input_band_size(&d->b, 1, &elements) || !dq_add_size(elements, DQ_GEMM_S8_SLACK, &elements) ||
        !dq_reserve_size(used, elements, sizeof(int16_t), DQ_ALIGN, &d->plane_at) ||
        !dq_reserve_size(used, 2 * d->pairs, sizeof(int16_t), DQ_ALIGN, &d->weights_at) ||
        !dq_reserve_size(used, sums, sizeof(int32_t), DQ_ALIGN, &d->sums_at) ||
        !dq_reserve_size(used, sums, sizeof(double), DQ_ALIGN, &d->extra_at))
        return dq_no_memory(err, SIZE_MAX, "a padded plane");
    return DQ_OK;
}

typedef struct task {
    const dq_op_call *call;
    const dq_conv_shape *s;
    const dq_qconv16_depthwise *d;
    dq_q16_sums sums; /* parameters that all channels share */
    int64_t x_zero;
    int32_t w_zero;   /* zero point of the weights, if all channels share one */
    bool is_w_16_bit; /* weights have 16 bits */
    int16_t *plane, *weights;
    int32_t *workspace;
    double *extra, factor;
    size_t rows, columns; /* of outputs in the band */
} task;

/* Writes the low or high parts of a channel's weights as pairs. Returns their sum. */
static int32_t take_weights(const task *t, size_t channel, bool high)
{
    const dq_tensor *w = t->call->in[DQ_Q16_W], *zeros = t->call->in[DQ_Q16_W_ZERO];
    const int32_t zero = zeros->count == 1 ? t->w_zero : (int32_t)dq_qgemm16_zero(zeros, channel);
    int32_t sum = 0;
    int16_t qvalues[TAPS + 1];
    dq_qgemm16_load(w->dtype, w->data, channel * t->s->kernel_size, t->s->kernel_size, qvalues);
    for (size_t i = 0; i < 2 * t->d->pairs; i++) {
        uint32_t tap = i % 2 ? t->d->second[i / 2] : t->d->first[i / 2];
        int32_t v = tap == UINT32_MAX ? 0 : qvalues[tap] - zero, upper = (v + 128) >> 8;
        v = !t->is_w_16_bit ? v : high ? upper : v - 256 * upper;
        t->weights[i] = (int16_t)v;
        sum += v;
    }
    return sum;
}

static void sum_rows(const task *t, int32_t weights)
{
    const dq_qconv16_depthwise *d = t->d;
    const dq_input_band *b = &d->b;
    int32_t init = (int32_t)(uint32_t)(uint64_t)(-t->x_zero * weights);
    size_t axis = b->w.rank - 1, even = axis > 1 ? (size_t)b->w.out[axis - 1] : t->rows;
    size_t step = axis > 0 ? b->stride[axis - 1] * b->row : 0, columns = t->columns;
    if (d->joined) {
        columns += (t->rows - 1) * b->pitch;
        even = 1;
    }
    for (size_t row = 0; row < (d->joined ? 1 : t->rows); row += even)
        t->call->kernels->dwconv_rows_s16(t->plane + dq_input_band_offset(b, row), step, even, d->offsets,
                                          t->weights, d->pairs, init, columns, t->workspace + row * columns);
}

/* Stores short joined rows: requantizes them together with the discarded sums between them, then copies the
 * outputs. */
static void put_joined(const task *t, dq_q16_sums *s, uint16_t *out)
{
    enum { PIECE = 512 }; /* sums requantized at a time */
    uint16_t qvalues[PIECE];
    const size_t pitch = t->d->b.pitch, each = PIECE / pitch;
    for (size_t row = 0, n; row < t->rows; row += n) {
        n = t->rows - row < each ? t->rows - row : each;
        dq_q16_sums part = dq_q16_rest(s, 0, row * pitch);
        part.cols = (n - 1) * pitch + t->columns;
        t->call->kernels->requantize_s64(&part, qvalues);
        for (size_t i = 0; i < n; i++, out += t->columns)
            dq_copy_row(out, qvalues + i * pitch, t->columns * sizeof *out);
    }
}

/* Computes an output channel of a band, whose outputs begin at element `at` of y. */
static void run_channel(const task *t, size_t channel, size_t at)
{
    enum { MIN_DIRECT_COLUMNS = 8 }; /* output columns below which put_joined is faster */
    dq_tensor *y = t->call->out[0];
    double workspace[3];
    dq_q16_terms terms = dq_q16_terms_in(workspace, 1);
    dq_q16_sums s = t->sums;
    s.rows = t->d->joined ? t->rows : 1;
    s.cols = t->d->joined ? t->columns : t->rows * t->columns;
    s.stride = s.extra_stride = t->d->b.pitch;
    s.out_stride = t->columns;
    if (t->is_w_16_bit) {
        sum_rows(t, take_weights(t, channel, true));
        for (size_t i = 0; i < (s.rows - 1) * s.stride + s.cols; i++)
            t->extra[i] = 256.0 * t->workspace[i];
    }
    sum_rows(t, take_weights(t, channel, false));
    dq_q16_term(t->call, t->factor, channel, 0, 0, &terms);
    dq_q16_sums_by(t->call, t->factor, &terms, 0, channel, &s);
    s.sums = t->workspace;
    s.extra = t->is_w_16_bit ? t->extra : NULL;
    if (t->d->joined && t->columns < MIN_DIRECT_COLUMNS && dq_dtype_get(y->dtype)->bits == 16)
        put_joined(t, &s, dq_data(y, uint16_t) + at);
    else
        dq_qgemm16_put(t->call, &s, at);
}

/* A task item is a band of an input channel, with all its output channels. */
static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const dq_conv_shape *s = t.s;
    const dq_qconv16_depthwise *d = t.d;
    char *scratch = dq_call_worker_scratch(t.call, worker);
    size_t elements = 0, each = s->out_size / (size_t)d->b.w.out[0];
    t.plane = (int16_t *)(void *)(scratch + d->plane_at);
    t.weights = (int16_t *)(void *)(scratch + d->weights_at);
    t.workspace = (int32_t *)(void *)(scratch + d->sums_at);
    t.extra = (double *)(void *)(scratch + d->extra_at);
    (void)dq_input_band_size(&d->b, 1, &elements);
    memset(t.plane + d->b.plane, 0, (elements - d->b.plane) * sizeof *t.plane);
    for (size_t i = begin; i < end; i++) {
        size_t plane = i / d->b.bands, group = plane % s->group, first, count;
        dq_input_band_range(&d->b, i % d->b.bands, &first, &count);
        t.rows = dq_input_band_rows(&d->b, count);
        t.columns = dq_input_band_columns(&d->b, count);
        dq_input_band_fill_single(&d->b, t.call->in[DQ_Q16_X], first, plane * s->in_size, (int16_t)t.x_zero,
                                  t.plane);
        for (size_t j = 0; j < s->group_out; j++) {
            size_t channel = group * s->group_out + j;
            run_channel(&t, channel,
                        (plane / s->group * s->out_channels + channel) * s->out_size + first * each);
        }
    }
}

void dq_qconv16_depthwise_run(const dq_op_call *call, const dq_conv_shape *s, const dq_qconv16_depthwise *d)
{
    task t = {.call = call, .s = s, .d = d, .sums = dq_qgemm16_sums(call), .factor = dq_q16_factor(call)};
    size_t products = outputs(d) * s->kernel_size * s->group_out;
    t.x_zero = dq_qgemm16_zero(call->in[DQ_Q16_X_ZERO], 0);
    t.w_zero = (int32_t)dq_qgemm16_zero(call->in[DQ_Q16_W_ZERO], 0);
    t.is_w_16_bit = dq_dtype_get(call->in[DQ_Q16_W]->dtype)->bits == 16;
    dq_parallel(call->threads, s->batch * s->group * d->b.bands, dq_gemm_s8_grain(products), run_tasks, &t);
}
