/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearSoftmax of com.microsoft.
 *
 * The exponentials of a row come from a table of floats. The row is shifted so that its greatest quantized
 * value meets the table's end, and shifted up so that small exponentials do not underflow. They are summed in
 * float in the row's order, and Y = saturate(round(e * k / sum) + y_zero_point),  k = floor(1 / y_scale),
 * with product and quotient rounded to float. The zero point of X cancels out. Before version 13 of Softmax,
 * which attribute `opset` gives, a row comprises all axes from `axis` on.
 *
 * QLinearSoftmax of the domain dqrun is the standard's Softmax between DequantizeLinear and QuantizeLinear: k
 * is 1 / y_scale, and long rows are summed in double. */
#include "base/math.h"
#include "ops/quantize/q8.h"

#include <float.h>
#include <string.h>

typedef struct softmax_state {
    size_t length, inner; /* elements of a row, and from one to the next */
    size_t rows;
    bool exact;       /* the standard's formula */
    bool ready;       /* the table has been made */
    float table[256]; /* entry 255 is for the greatest value */
} softmax_state;

static dq_status infer(dq_op_call *call, dq_error *err)
{
    size_t axis;
    DQ_TRY(dq_call_axis(call, -1, &axis, err));
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static void make_table(const dq_op_call *call, size_t length, float table[256])
{
    double scale = (double)dq_data(call->in[1], float)[0]; /* a zero point cancels out */
    double headroom =
        (double)(float)dq_log((double)(FLT_MAX / (float)length)) - 5; /* keeps a row's sum finite */
    double shift = (headroom > 0 ? headroom : 0) / scale;
    for (int i = 0; i < 256; i++)
        table[i] = (float)dq_exp((i - 255 + shift) * scale);
}

static dq_status prepare(dq_op_call *call, dq_error *err)
{
    const dq_tensor *x = call->in[0];
    size_t axis;
    DQ_TRY(dq_call_axis(call, -1, &axis, err));
    DQ_TRY(dq_call_state(call, sizeof(softmax_state), err));
    softmax_state *state = call->state;
    bool flat = dq_node_int(call->node, "opset", 13) < 13;
    size_t end = flat ? x->rank : axis + 1;
    state->length = dq_dims_product(x->dims, axis, end);
    state->inner = dq_dims_product(x->dims, end, x->rank);
    state->rows = state->length ? x->count / state->length : 0;
    state->exact = strcmp(call->node->domain, "dqrun") == 0;
    state->ready = dq_call_constant(call, 1);
    if (state->ready)
        make_table(call, state->length, state->table);
    return DQ_OK;
}

typedef struct softmax_job {
    const softmax_state *state;
    const dq_kernels *kernels;
    const float *table;
    const uint8_t *x;
    uint8_t *y;
    dq_q8 qx, qy; /* of qx only the type matters */
    float factor;
} softmax_job;

/* Results of at most 256 exponentials with a known maximum. Products that overflow float, as short rows may
 * have, are computed in double. */
static void results_of(const softmax_job *job, const float *e, size_t n, float greatest, float sum,
                       uint8_t *y)
{
    float scaled[256];
    if (!isfinite(greatest * job->factor)) {
        for (size_t i = 0; i < n; i++) {
            double exact = (double)e[i] * (double)job->factor / (double)sum;
            float product = e[i] * job->factor;
            y[i] = dq_q8_round(&job->qy, (double)(isfinite(product) ? product / sum : (float)exact));
        }
        return;
    }
    job->kernels->rows_f32->scale(e, n, job->factor, scaled);
    const int8_t signed_zero = (int8_t)job->qy.zero;
    const uint8_t zero = (uint8_t)job->qy.zero;
    if (job->qy.min < 0)
        job->kernels->quantize_f32_s8(scaled, n, &sum, &signed_zero, 0, (int8_t *)y);
    else
        job->kernels->quantize_f32_u8(scaled, n, &sum, &zero, 0, y);
}

enum { MAX_SHORT_ROW = 256, ROWS = 4 /* rows */, MAX_GROUPED_ROW = 48 };

/* The same for contiguous rows that are too short for a kernel call each. Returns false if a product of one
 * row overflows float. */
static __attribute__((noinline)) bool results_of_rows(const softmax_job *job, float e[ROWS][MAX_SHORT_ROW],
                                                      size_t n, const float greatest[ROWS],
                                                      const float sum[ROWS], uint8_t *y)
{
    float scaled[ROWS * MAX_GROUPED_ROW], sums[ROWS * MAX_GROUPED_ROW];
    uint8_t zeros[ROWS * MAX_GROUPED_ROW];
    for (size_t r = 0; r < ROWS; r++)
        if (!isfinite(greatest[r] * job->factor))
            return false;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < n; i++) {
            scaled[r * n + i] = e[r][i] * job->factor;
            sums[r * n + i] = sum[r];
        }
    memset(zeros, job->qy.zero, sizeof zeros);
    if (job->qy.min < 0)
        job->kernels->quantize_f32_s8(scaled, ROWS * n, sums, (const int8_t *)zeros, 1, (int8_t *)y);
    else
        job->kernels->quantize_f32_u8(scaled, ROWS * n, sums, zeros, 1, y);
    return true;
}

/* The highest value of a row; `sign_xor` maps int8 to unsigned order. */
static uint8_t highest_of(const uint8_t *x, size_t n, size_t step, uint8_t sign_xor)
{
    uint8_t highest = 0;
    if (step == 1) /* the compiler vectorizes this loop */
        for (size_t i = 0; i < n; i++)
            highest = (uint8_t)(x[i] ^ sign_xor) > highest ? (uint8_t)(x[i] ^ sign_xor) : highest;
    else
        for (size_t i = 0; i < n; i++)
            highest =
                (uint8_t)(x[i * step] ^ sign_xor) > highest ? (uint8_t)(x[i * step] ^ sign_xor) : highest;
    return highest;
}

static size_t start_of(const softmax_job *job, size_t row)
{
    size_t inner = job->state->inner;
    return row / inner * inner * job->state->length + row % inner;
}

/* Short rows, of at least one element: results are computed from the exponentials. The sums of several rows
 * alternate, as each sum is a chain of dependent additions. */
static inline __attribute__((always_inline)) void short_rows(const softmax_job *job, size_t first,
                                                             size_t rows, uint8_t sign_xor)
{
    size_t n = job->state->length, step = job->state->inner, at[ROWS];
    const float *table[ROWS];
    float greatest[ROWS], sum[ROWS] = {0}, e[ROWS][MAX_SHORT_ROW];
    uint8_t one[MAX_SHORT_ROW];
    for (size_t r = 0; r < rows; r++) {
        at[r] = start_of(job, first + r);
        uint8_t highest = highest_of(job->x + at[r], n, step, sign_xor);
        table[r] = job->table + (255 - highest);
        greatest[r] = table[r][highest];
    }
    for (size_t i = 0; i < n; i++)
        for (size_t r = 0; r < rows; r++)
            sum[r] += e[r][i] = table[r][job->x[at[r] + i * step] ^ sign_xor];
    if (rows == ROWS && n <= MAX_GROUPED_ROW && step == 1) {
        const float sums[ROWS] = {sum[0], sum[1], sum[2], sum[3]}; /* a copy, whose address does not escape */
        if (results_of_rows(job, e, n, greatest, sums, job->y + at[0]))
            return;
    }
    for (size_t r = 0; r < rows; r++) {
        uint8_t *y = job->y + at[r];
        results_of(job, e[r], n, greatest[r], sum[r], step == 1 ? y : one);
        for (size_t i = 0; step > 1 && i < n; i++)
            y[i * step] = one[i];
    }
}

static float sum_in_float(const float *table, const uint8_t *x, size_t n, size_t step, uint8_t sign_xor)
{
    float sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += table[x[i * step] ^ sign_xor];
    return sum;
}

/* Four independent partial sums. */
static float sum_in_double(const float *table, const uint8_t *x, size_t n, size_t step, uint8_t sign_xor)
{
    enum { SUMS = 4 };
    double sum[SUMS] = {0};
    size_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (size_t k = 0; k < SUMS; k++)
            sum[k] += (double)table[x[(i + k) * step] ^ sign_xor];
    for (; i < n; i++)
        sum[0] += (double)table[x[i * step] ^ sign_xor];
    return (float)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Long rows: results come from a table of all quantized values. */
static void long_row(const softmax_job *job, const uint8_t *x, uint8_t *y, uint8_t highest, uint8_t sign_xor)
{
    size_t n = job->state->length, step = job->state->inner;
    const float *table = job->table + (255 - highest);
    uint8_t by_rank[256], by_qvalue[256];
    const float sum = job->state->exact ? sum_in_double(table, x, n, step, sign_xor)
                                        : sum_in_float(table, x, n, step, sign_xor);
    results_of(job, table, (size_t)highest + 1, table[highest], sum, by_rank);
    for (size_t c = 0; c <= highest; c++)
        by_qvalue[c ^ sign_xor] = by_rank[c];
    for (size_t i = 0; i < n; i++)
        y[i * step] = by_qvalue[x[i * step]];
}

/* `sign_xor` is constant in each call: without it, a lookup takes two instructions less. */
static inline __attribute__((always_inline)) void rows_of_type(const softmax_job *job, size_t begin,
                                                               size_t end, uint8_t sign_xor)
{
    size_t n = job->state->length, i = begin;
    for (; n <= MAX_SHORT_ROW && end - i >= ROWS; i += ROWS)
        short_rows(job, i, ROWS, sign_xor);
    for (; i < end; i++) {
        size_t at = start_of(job, i);
        if (n <= MAX_SHORT_ROW)
            short_rows(job, i, 1, sign_xor);
        else
            long_row(job, job->x + at, job->y + at, highest_of(job->x + at, n, job->state->inner, sign_xor),
                     sign_xor);
    }
}

static void rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const softmax_job *job = arg;
    if (job->qx.min < 0)
        rows_of_type(job, begin, end, 0x80);
    else
        rows_of_type(job, begin, end, 0);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const softmax_state *state = call->state;
    const dq_tensor *x = call->in[0];
    float table[256];
    if (!call->out[0] || state->rows == 0)
        return DQ_OK;
    if (!state->ready)
        make_table(call, state->length, table);
    softmax_job job = {.state = state,
                       .kernels = call->kernels,
                       .table = state->ready ? state->table : table,
                       .x = x->data,
                       .y = call->out[0]->data,
                       .qx = dq_q8_read(call, 1, 2, x->dtype),
                       .qy = dq_q8_read(call, 3, 4, x->dtype)};
    job.factor = state->exact ? 1 / job.qy.scale : floorf(1 / job.qy.scale);
    dq_parallel(call->threads, state->rows, 16384 / state->length + 1, rows, &job);
    return DQ_OK;
}

static dq_status exact_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check_exact(call, 1, 2, err));
    DQ_TRY(dq_q8_check_exact(call, 3, 4, err));
    return infer(call, err);
}

const dq_op_impl dq_op_qlinear_softmax = {infer, prepare, run, 0};
const dq_op_impl dq_op_exact_softmax = {exact_infer, prepare, run, 0};
