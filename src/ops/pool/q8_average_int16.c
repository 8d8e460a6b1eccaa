/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool/q8_average_int16.h"

#include "base/copy.h"
#include "ops/row_quantizer.h"

#include <string.h>

enum {
    BAND = 2048,         /* approximate elements of a band's sums */
    BATCH = 64,          /* outputs */
    MAX_WINDOW = 128,    /* elements: sums of 128 * 255 fit int16 */
    MAX_SIDE = 1 << 15,  /* of all sizes along an axis */
    MAX_PLANE = 1 << 15, /* multipliers */
    MAX_STRIDE = 8,      /* along rows: results between outputs are computed, too */
    MAX_MULTIPLIER = 1 << 14
};

/* ---- Prepare ------------------------------------------------------------------------------------------ */

static bool shape_applies(const dq_q8_window *s)
{
    const dq_window *w = &s->window;
    if (w->rank != 2 || s->inner != 1 || s->out_size < 2 || s->kernel_size > MAX_WINDOW ||
        w->stride[1] > MAX_STRIDE)
        return false;
    for (size_t d = 0; d < 2; d++)
        if (w->begin[d] < 0 || w->in[d] > MAX_SIDE || w->out[d] > MAX_SIDE || w->dilation[d] > MAX_SIDE ||
            w->stride[d] > MAX_SIDE || dq_window_span(w, d) > MAX_SIDE)
            return false;
    return true;
}

/* The bound of com.microsoft's rounding errors and the kernel's, in multiples of y_scale. u is 2^-24.
 *
 * Dequantized elements are at most m in magnitude, each with an error of u m. Partial sum j of a window of
 * `count` elements adds u j m, so that the sum's error is below u m (count (count + 1) / 2 + count). Division
 * by count leaves u m ((count + 1) / 2 + 1). The two quotients add u m each, and the sum with the zero point
 * adds 257 u where it is in range of the type. The kernel's multiplier, product and sum add u m each; 1.01
 * covers products of errors. */
static double error_bound(const dq_q8 *x, const dq_q8 *y, size_t count)
{
    const int above = x->max - x->zero, below = x->zero - x->min;
    const double most = (above > below ? above : below) * (double)x->scale / (double)y->scale;
    return 1.01 * 0x1p-24 * (most * (((double)count + 1) / 2 + 6) + 257);
}

/* The share of a window's possible sums whose means are within `margin` of a tie, or a little more. */
static double near_tie_share(const dq_q8 *x, const dq_q8 *y, size_t count, double margin)
{
    const double n = (double)count, ratio = (double)x->scale / ((double)y->scale * n);
    const double least = n * (x->min - x->zero), most = n * (x->max - x->zero);
    double near_ties = 0;
    for (int k = y->min - y->zero; k < y->max - y->zero; k++) {
        const double low = ceil((k + 0.5 - 2 * margin) / ratio), high = floor((k + 0.5 + 2 * margin) / ratio);
        const double first = low > least ? low : least, last = high < most ? high : most;
        near_ties += last >= first ? last - first + 1 : 0;
    }
    return near_ties / (most - least + 1);
}

static const dq_window_range *list_ranges(const dq_op_call *call, const dq_window *w, size_t axis)
{
    dq_window_range *ranges = DQ_NEW_ARRAY(call->arena, (size_t)w->out[axis], dq_window_range);
    for (size_t i = 0; ranges && i < (size_t)w->out[axis]; i++)
        ranges[i].count = dq_window_elements_along(w, axis, i, &ranges[i].first);
    return ranges;
}

static size_t count_of(const dq_average_int16 *a, size_t row, size_t column)
{
    return a->shape->include_pad ? a->shape->kernel_size : a->rows[row].count * a->columns[column].count;
}

/* Fills in the multipliers. Returns the share of outputs that are expected to be near a tie; 1 if a
 * multiplier is out of range. */
static double fill_multipliers(const dq_average_int16 *a, const dq_exact_mean *exact, float *multipliers)
{
    const dq_window *w = &a->shape->window;
    double shares[MAX_WINDOW + 1], near_ties = 0;
    for (size_t i = 0; i <= MAX_WINDOW; i++)
        shares[i] = -1;
    for (size_t row = 0; row < (size_t)w->out[0]; row++)
        for (size_t column = 0; column < (size_t)w->out[1]; column++) {
            const size_t count = count_of(a, row, column), divisor = count ? count : 1;
            const double ratio = (double)a->x.scale / ((double)a->y.scale * (double)divisor);
            const float m = exact ? exact->multipliers[count] : (float)ratio;
            if (m > MAX_MULTIPLIER)
                return 1;
            multipliers[row * a->pitch + column * (size_t)w->stride[1]] = m;
            if (!exact && shares[count] < 0)
                shares[count] = near_tie_share(&a->x, &a->y, divisor, (double)a->margin);
            near_ties += exact ? 0 : shares[count];
        }
    return near_ties / (double)a->shape->out_size;
}

static size_t steps(size_t n)
{
    return (n + DQ_AVERAGE_STEP - 1) / DQ_AVERAGE_STEP * DQ_AVERAGE_STEP;
}

/* Sizes of buffers. Windows of the columns between two rows, whose results are discarded, read the next row.
 */
static void find_sizes(dq_average_int16 *a)
{
    const dq_window *w = &a->shape->window;
    const size_t rows = (size_t)w->out[0], in = (size_t)w->in[1];
    a->left = (size_t)w->begin[1];
    a->pitch = (size_t)((w->out[1] - 1) * w->stride[1] + dq_window_span(w, 1));
    a->shown = a->left < a->pitch ? a->pitch - a->left : 0;
    a->shown = a->shown < in ? a->shown : in;
    a->band = a->pitch < BAND ? BAND / a->pitch : 1;
    a->band = a->band < rows ? a->band : rows;
    a->means = steps(a->band * a->pitch);
    a->sums = steps(a->means + (size_t)dq_window_span(w, 1));
}

static bool scales_apply(const dq_average_int16 *a)
{
    const float least = 0x1p-16f, most = 0x1p16f; /* nothing overflows or underflows */
    return a->x.scale >= least && a->x.scale <= most && a->y.scale >= least && a->y.scale <= most;
}

dq_status dq_average_int16_prepare(dq_op_call *call, const dq_q8_window *shape, const dq_exact_mean *exact,
                                   double max_share, dq_average_int16 *a, bool *applies, dq_error *err)
{
    const dq_dtype dtype = call->in[0]->dtype;
    *applies = false;
    if (!shape_applies(shape) || !dq_q8_constant(call, 1, 2) || !dq_q8_constant(call, 3, 4) ||
        (exact && !exact->all_floats))
        return DQ_OK;
    *a = (dq_average_int16){.shape = shape, .kernels = call->kernels};
    a->x = dq_q8_read(call, 1, 2, dtype);
    a->y = dq_q8_read(call, 3, 4, dtype);
    find_sizes(a);
    const size_t rows = (size_t)shape->window.out[0];
    if (!exact && !scales_apply(a))
        return DQ_OK;
    if (rows * a->pitch > MAX_PLANE)
        return DQ_OK;
    a->margin = exact ? 0 : (float)error_bound(&a->x, &a->y, shape->kernel_size);
    a->rows = list_ranges(call, &shape->window, 0);
    a->columns = list_ranges(call, &shape->window, 1);
    float *multipliers = DQ_NEW_ARRAY(call->arena, rows * a->pitch + DQ_AVERAGE_STEP, float);
    float *real = DQ_NEW_ARRAY(call->arena, 256, float);
    if (!a->rows || !a->columns || !multipliers || !real)
        return dq_no_memory(err, rows * a->pitch * sizeof *multipliers, "the multipliers of means");
    for (int i = 0; i < 256; i++)
        real[i] = dq_q8_real(&a->x, (uint8_t)i);
    a->real = real;
    a->multipliers = multipliers;
    *applies = fill_multipliers(a, exact, multipliers) <= max_share;
    if (*applies)
        call->worker_scratch_size = a->sums * sizeof(int16_t) + a->means + a->means / 8;
    return DQ_OK;
}

/* ---- Run ---------------------------------------------------------------------------------------------- */

/* Outputs of a plane that are near a tie. Their means are computed together. */
typedef struct batch {
    const dq_average_int16 *a;
    const uint8_t *plane;
    uint8_t *out;
    size_t n;
    float sums[BATCH], counts[BATCH];
    uint32_t at[BATCH]; /* in `out` */
} batch;

/* Adds the real values of a window in row-major order. */
static float sum_in_float(const dq_average_int16 *a, const uint8_t *plane, size_t row, size_t column)
{
    const dq_window *w = &a->shape->window;
    const dq_window_range down = a->rows[row], along = a->columns[column];
    const size_t in = (size_t)w->in[1], step = (size_t)w->dilation[1];
    const uint8_t *x = plane + down.first * in + along.first;
    float sum = 0;
    for (size_t r = 0; r < down.count; r++, x += (size_t)w->dilation[0] * in)
        for (size_t k = 0; k < along.count; k++)
            sum += a->real[x[k * step]];
    return sum;
}

/* Writes the outputs as com.microsoft's operator computes them: means include the zero point before rounding.
 */
static void finish_batch(batch *b)
{
    const dq_q8 *y = &b->a->y;
    const dq_row_quantizer to = dq_row_quantizer_make(y->min < 0 ? DQ_INT8 : DQ_UINT8, 1, 0);
    uint8_t qvalues[BATCH];
    for (size_t i = 0; i < b->n; i++)
        b->sums[i] = b->sums[i] / b->counts[i] / y->scale + (float)y->zero;
    dq_row_quantizer_quantize(b->a->kernels, &to, b->sums, b->n, qvalues, 0);
    for (size_t i = 0; i < b->n; i++)
        b->out[b->at[i]] = qvalues[i];
    b->n = 0;
}

/* Adds the outputs whose bits are set to the batch. `row` is the first row of the band. */
static void add_near_ties(batch *b, const uint64_t *bits, size_t words, size_t row)
{
    const dq_average_int16 *a = b->a;
    const size_t width = (size_t)a->shape->window.out[1], stride = (size_t)a->shape->window.stride[1];
    size_t start = 0; /* of the row */
    for (size_t i = 0; i < words; i++)
        for (uint64_t left = bits[i]; left; left &= left - 1) {
            const size_t at = i * DQ_AVERAGE_STEP + (size_t)__builtin_ctzll(left);
            for (; at - start >= a->pitch; row++)
                start += a->pitch;
            const size_t column = stride == 1 ? at - start : (at - start) / stride;
            const size_t count = count_of(a, row, column);
            b->sums[b->n] = sum_in_float(a, b->plane, row, column);
            b->counts[b->n] = (float)(count ? count : 1);
            b->at[b->n++] = (uint32_t)(row * width + column);
            if (b->n == BATCH)
                finish_batch(b);
        }
}

/* Sums rows `first` … end - 1 of the output: one call for consecutive rows with equally many input rows. */
static void sum_rows(const dq_average_int16 *a, const uint8_t *plane, size_t first, size_t end, int16_t *sums)
{
    const dq_window *w = &a->shape->window;
    const size_t in = (size_t)w->in[1], stride = (size_t)w->stride[0];
    for (size_t row = first, run; row < end; row += run, sums += run * a->pitch) {
        const dq_window_range here = a->rows[row];
        for (run = 1; row + run < end && a->rows[row + run].count == here.count &&
                      a->rows[row + run].first == here.first + run * stride;)
            run++;
        for (size_t i = 0; i < run && !here.count; i++)
            memset(sums + i * a->pitch + a->left, 0, a->shown * sizeof *sums);
        const dq_average_sums r = {.x = plane + here.first * in,
                                   .x_step = (size_t)w->dilation[0] * in,
                                   .under = here.count,
                                   .row_step = stride * in,
                                   .rows = run,
                                   .n = a->shown,
                                   .is_signed = a->x.min < 0,
                                   .bias = (int16_t)((int)here.count * a->x.zero),
                                   .sums = sums + a->left,
                                   .sums_step = a->pitch};
        if (here.count)
            a->kernels->average_pool_x8->sum_rows(&r);
    }
}

static void copy_row(const dq_average_int16 *a, const uint8_t *from, uint8_t *out)
{
    const size_t width = (size_t)a->shape->window.out[1], stride = (size_t)a->shape->window.stride[1];
    if (stride == 1)
        dq_copy_row(out, from, width);
    for (size_t c = 0; c < width && stride != 1; c++)
        out[c] = from[c * stride];
}

static void one_plane(const dq_average_int16 *a, const uint8_t *plane, int16_t *sums, uint8_t *out)
{
    const dq_window *w = &a->shape->window;
    const size_t rows = (size_t)w->out[0], width = (size_t)w->out[1];
    uint64_t *near_ties = (uint64_t *)(void *)(sums + a->sums);
    uint8_t *means = (uint8_t *)(near_ties + a->means / DQ_AVERAGE_STEP);
    batch b = {.a = a, .plane = plane, .out = out};
    for (size_t first = 0, end; first < rows; first = end) {
        end = rows - first < a->band ? rows : first + a->band;
        sum_rows(a, plane, first, end, sums);
        const dq_average_means m = {.sums = sums,
                                    .kernel = (size_t)w->kernel[1],
                                    .dilation = (size_t)w->dilation[1],
                                    .n = steps((end - first) * a->pitch),
                                    .multiplier = a->multipliers + first * a->pitch,
                                    .margin = a->margin,
                                    .zero = a->y.zero,
                                    .is_signed = a->y.min < 0,
                                    .out = means,
                                    .near_ties = a->margin == 0 ? NULL : near_ties};
        a->kernels->average_pool_x8->means(&m);
        for (size_t row = first; row < end; row++)
            copy_row(a, means + (row - first) * a->pitch, out + row * width);
        if (m.near_ties)
            add_near_ties(&b, near_ties, m.n / DQ_AVERAGE_STEP, first);
    }
    finish_batch(&b);
}

void dq_average_int16_planes(const dq_average_int16 *a, const uint8_t *x, size_t begin, size_t end,
                             void *scratch, uint8_t *out)
{
    memset(scratch, 0, a->sums * sizeof(int16_t)); /* also the padding of all rows */
    for (size_t plane = begin; plane < end; plane++)
        one_plane(a, x + plane * a->shape->in_size, scratch, out + plane * a->shape->out_size);
}
