/* Weights are taken with their zero point away, 16-bit ones in two planes, v = 256 · first + second, so that
 * all lie within ±256. The sum of a plane's (x - x_zero) v is below 2^31 then, and the term of x's zero point
 * stands in the sums' initial value. */
#include "ops/conv/wide_depthwise.h"

#include "base/checked.h"
#include "ops/matmul/qgemm.h"
#include "ops/matmul/wide_codes.h"

#include <string.h>

enum {
    ALIGN = 64,
    BAND = 1 << 13, /* bytes of a band: its sums, twice as many, are read soon after */
    TAPS = 127      /* of which 32 bits hold the sum: 65535 · 256 each */
};

bool dq_wide_depthwise_suits(const dq_conv_shape *s)
{
    return s->group_in == 1 && s->kernel_size <= TAPS;
}

/* Kernel elements that meet neighbours of a phase are a pair. */
static dq_status find_pairs(dq_op_call *call, size_t taps, dq_wdepth *d, dq_error *err)
{
    const dq_window *w = &d->b.w;
    bool used[TAPS] = {false};
    uint32_t row = (uint32_t)w->kernel[w->rank - 1];
    int64_t stride = w->stride[w->rank - 1], dilation = w->dilation[w->rank - 1];
    uint32_t apart = stride % dilation == 0 && stride / dilation < row ? (uint32_t)(stride / dilation) : row;
    d->offsets = DQ_NEW_ARRAY(call->arena, taps, ptrdiff_t);
    d->first = DQ_NEW_ARRAY(call->arena, taps, uint32_t);
    d->second = DQ_NEW_ARRAY(call->arena, taps, uint32_t);
    if (!d->offsets || !d->first || !d->second)
        return dq_no_memory(err, taps, "pairs of a kernel's elements");
    for (uint32_t t = 0; t < taps; t++) {
        if (used[t])
            continue;
        bool two = t % row + apart < row;
        d->offsets[d->pairs] = d->b.taps[t];
        d->first[d->pairs] = t;
        d->second[d->pairs++] = two ? t + apart : UINT32_MAX;
        if (two)
            used[t + apart] = true;
    }
    return DQ_OK;
}

static size_t outputs(const dq_wdepth *d)
{
    return dq_wband_rows(&d->b, d->b.band) * dq_wband_columns(&d->b, d->b.band);
}

dq_status dq_wide_depthwise_prepare(dq_op_call *call, const dq_conv_shape *s, dq_wdepth *d, dq_error *err)
{
    size_t elements, *used = &call->worker_scratch_size;
    DQ_TRY(dq_wband_prepare(call, s, 1, true, BAND, &d->b, err));
    DQ_TRY(find_pairs(call, s->kernel_size, d, err));
    if (!dq_wband_size(&d->b, 1, &elements) || !dq_add_size(elements, DQ_QGEMM_SLACK, &elements) ||
        !dq_place_size(used, elements, sizeof(int16_t), ALIGN, &d->plane_at) ||
        !dq_place_size(used, 2 * d->pairs, sizeof(int16_t), ALIGN, &d->weights_at) ||
        !dq_place_size(used, outputs(d), sizeof(int32_t), ALIGN, &d->sums_at) ||
        !dq_place_size(used, outputs(d), sizeof(double), ALIGN, &d->extra_at))
        return dq_no_memory(err, SIZE_MAX, "a padded plane");
    return DQ_OK;
}

typedef struct task {
    const dq_op_call *call;
    const dq_conv_shape *s;
    const dq_wdepth *d;
    int16_t *plane, *weights;
    int32_t *sums;
    double *extra, factor;
    size_t rows, columns; /* of outputs in the band */
} task;

/* The weights of a plane as pairs; returns their sum. */
static int32_t take_weights(const task *t, size_t channel, bool wide, bool high)
{
    const dq_tensor *w = t->call->in[DQ_WIDE_W];
    int32_t zero = (int32_t)dq_wcodes_zero(t->call->in[DQ_WIDE_W_ZERO], channel), sum = 0;
    int16_t codes[TAPS];
    dq_wcodes_load(w->dtype, w->data, channel * t->s->kernel_size, t->s->kernel_size, codes);
    for (size_t i = 0; i < 2 * t->d->pairs; i++) {
        uint32_t tap = i % 2 ? t->d->second[i / 2] : t->d->first[i / 2];
        int32_t v = tap == UINT32_MAX ? 0 : codes[tap] - zero, upper = (v + 128) >> 8;
        v = !wide ? v : high ? upper : v - 256 * upper;
        t->weights[i] = (int16_t)v;
        sum += v;
    }
    return sum;
}

static void sum_rows(const task *t, int32_t weights)
{
    const dq_wband *b = &t->d->b;
    int64_t zero = dq_wcodes_zero(t->call->in[DQ_WIDE_X_ZERO], 0);
    int32_t init = (int32_t)(uint32_t)(uint64_t)(-zero * weights);
    size_t axis = b->w.rank - 1, even = axis > 1 ? (size_t)b->w.out[axis - 1] : t->rows;
    size_t step = axis > 0 ? b->stride[axis - 1] * b->row : 0;
    for (size_t row = 0; row < t->rows; row += even)
        t->call->kernels->wconv_rows(t->plane + dq_wband_place(b, row), step, even, t->d->offsets, t->weights,
                                     t->d->pairs, init, t->columns, t->sums + row * t->columns);
}

/* An output channel's band, whose outputs begin at element `at` of y. */
static void run_channel(const task *t, size_t channel, size_t at)
{
    bool wide = dq_dtype_get(t->call->in[DQ_WIDE_W]->dtype)->bits == 16;
    size_t n = t->rows * t->columns;
    double offset, scale;
    dq_wide_sums s = dq_wcodes_sums(t->call);
    if (wide) {
        sum_rows(t, take_weights(t, channel, true, true));
        for (size_t i = 0; i < n; i++)
            t->extra[i] = 256.0 * t->sums[i];
    }
    sum_rows(t, take_weights(t, channel, wide, false));
    dq_wide_terms(t->call, t->factor, channel, 0, &offset, &scale);
    s.rows = 1; /* so that strides do not count */
    s.cols = n;
    s.sums = t->sums;
    s.extra = wide ? t->extra : NULL;
    s.offset = &offset;
    s.scale = &scale;
    dq_wcodes_put(t->call, &s, at);
}

/* Bands of input channels, with all output channels that one makes. */
static void run_tasks(void *arg, size_t begin, size_t end, unsigned worker)
{
    task t = *(const task *)arg;
    const dq_conv_shape *s = t.s;
    const dq_wdepth *d = t.d;
    char *scratch = dq_call_worker_scratch(t.call, worker);
    size_t elements = 0, each = s->out_size / (size_t)d->b.w.out[0];
    int16_t pad = (int16_t)dq_wcodes_zero(t.call->in[DQ_WIDE_X_ZERO], 0);
    t.plane = (int16_t *)(void *)(scratch + d->plane_at);
    t.weights = (int16_t *)(void *)(scratch + d->weights_at);
    t.sums = (int32_t *)(void *)(scratch + d->sums_at);
    t.extra = (double *)(void *)(scratch + d->extra_at);
    (void)dq_wband_size(&d->b, 1, &elements);
    memset(t.plane + d->b.plane, 0, (elements - d->b.plane) * sizeof *t.plane);
    for (size_t i = begin; i < end; i++) {
        size_t plane = i / d->b.bands, group = plane % s->group, first, count;
        dq_wband_range(&d->b, i % d->b.bands, &first, &count);
        t.rows = dq_wband_rows(&d->b, count);
        t.columns = dq_wband_columns(&d->b, count);
        dq_wband_fill_single(&d->b, t.call->in[DQ_WIDE_X], first, plane * s->in_size, pad, t.plane);
        for (size_t j = 0; j < s->group_out; j++) {
            size_t channel = group * s->group_out + j;
            run_channel(&t, channel,
                        (plane / s->group * s->out_channels + channel) * s->out_size + first * each);
        }
    }
}

void dq_wide_depthwise_run(const dq_op_call *call, const dq_conv_shape *s, const dq_wdepth *d)
{
    task t = {.call = call, .s = s, .d = d, .factor = dq_wide_factor(call)};
    size_t products = outputs(d) * s->kernel_size * s->group_out;
    dq_parallel(call->threads, s->batch * s->group * d->b.bands, dq_qgemm_grain(products), run_tasks, &t);
}
