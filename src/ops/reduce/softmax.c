/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax and Hardmax: over one axis (since version 13), or over all axes from one on (before).
 * Types up to float use the kernels' exponentials and sums; the quotient adds one rounding. float16 and
 * bfloat16 results are rounded once, at the end. Double is summed in row-major order. */
#include "base/checked.h"
#include "base/math.h"
#include "ops/reduce/arg.h"
#include "ops/reduce/reduce.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

typedef enum kind { SOFT, LOG_SOFT, HARD } kind;

enum {
    ELEMENTS_PER_TASK = 4096,     /* approximate elements per task */
    ROWS_AT_ONCE = 8,             /* rows whose steps are interleaved */
    MAX_SHORT_ROW = 64,           /* maximum length of rows that are transposed to columns */
    COLUMNS = DQ_SOFTMAX_COLUMNS, /* columns computed at a time */
    GROUP = 16,                   /* the same for long columns that are copied; also the minimum of columns */
    HARD_LINES = 256,             /* lines of Hardmax at a time */
    ALIASING_STRIDE = 1024        /* stride from which elements of a line share cache sets */
};

typedef struct state {
    kind kind;
    size_t n, inner; /* elements that sum to one, and their stride */
    size_t blocks;   /* blocks of columns of an inner axis */
    bool in_place;   /* columns are floats that need no copy */
} state;

static dq_status read_axis(const dq_op_call *call, size_t *axis, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    bool flatten = call->version < 13;
    int64_t absent = flatten ? 1 : -1;
    *axis = in->rank;
    if (flatten && dq_node_int(call->node, "axis", absent) == in->rank)
        return DQ_OK; /* no axis after it: each element is a row */
    return dq_call_axis(call, absent, axis, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static __attribute__((noinline)) dq_status prepare(dq_op_call *call, kind what, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis;
    DQ_TRY(read_axis(call, &axis, err));
    DQ_TRY(dq_call_state(call, sizeof(state), err));
    state *s = call->state;
    s->kind = what;
    bool flatten = call->version < 13;
    s->n = flatten ? dq_dims_product(in->dims, axis, in->rank) : (size_t)in->dims[axis];
    s->inner = flatten ? 1 : dq_dims_product(in->dims, axis + 1, in->rank);
    s->in_place = in->dtype == DQ_FLOAT && s->inner >= GROUP && s->inner < ALIASING_STRIDE;
    size_t columns = s->in_place || s->n <= MAX_SHORT_ROW ? COLUMNS : GROUP;
    s->blocks = s->inner / columns + (s->inner % columns != 0);
    bool single = s->inner == 1 && s->n > MAX_SHORT_ROW;
    if (!dq_mul_size(s->n, (single ? 1 : columns) * 2 * sizeof(float), &call->worker_scratch_size))
        return dq_no_memory(err, s->n, "rows");
    return DQ_OK;
}

typedef struct job {
    const dq_op_call *call;
    const state *s;
    const dq_tensor *in;
    dq_tensor *out;
} job;

/* ---- In double, and Hardmax ---------------------------------------------------------------------------- */

static void one_line(const job *j, size_t base)
{
    const state *s = j->s;
    size_t step = s->inner;
    double highest = -(double)INFINITY, total = 0;
    for (size_t i = 0; i < s->n; i++) {
        double x = dq_tensor_get_double(j->in, base + i * step);
        highest = x > highest ? x : highest; /* a NaN propagates through the total */
    }
    for (size_t i = 0; i < s->n; i++)
        total += dq_exp(dq_tensor_get_double(j->in, base + i * step) - highest);
    double log_total = s->kind == LOG_SOFT ? dq_log(total) : 0;
    for (size_t i = 0; i < s->n; i++) {
        size_t at = base + i * step;
        double x = dq_tensor_get_double(j->in, at) - highest;
        dq_tensor_put_double(j->out, at, s->kind == SOFT ? dq_exp(x) / total : x - log_total);
    }
}

static void lines(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        one_line(j, i / j->s->inner * j->s->n * j->s->inner + i % j->s->inner);
}

/* Computes Hardmax of several neighboring lines at a time. All indices are found first, since the output may
 * alias the input. */
static void hard_lines(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    const state *s = j->s;
    const dq_arg largest = {s->n, s->inner, true, false};
    const size_t width = dq_dtype_get(j->out->dtype)->bits / 8u,
                 most = s->inner > 1 || s->n < ELEMENTS_PER_TASK / HARD_LINES ? HARD_LINES
                        : s->n < ELEMENTS_PER_TASK                            ? ELEMENTS_PER_TASK / s->n
                                                                              : 1;
    int64_t where[HARD_LINES];
    for (size_t i = begin, n; i < end; i += n) {
        const size_t first = i / s->inner * s->n * s->inner + i % s->inner;
        const size_t columns = s->inner > 1 ? s->inner - i % s->inner : most;
        n = columns < end - i ? columns : end - i;
        n = n < most ? n : most;
        dq_arg_find(&largest, j->call->kernels, j->in, i, i + n, where);
        char *y = (char *)j->out->data + first * width;
        const bool dense = s->inner == 1 || n == s->inner;
        if (dense)
            memset(y, 0, n * s->n * width);
        for (size_t t = 0; t < s->n && !dense; t++)
            memset(y + t * s->inner * width, 0, n * width);
        for (size_t k = 0; k < n; k++) {
            const size_t at = first + (s->inner > 1 ? k : k * s->n) + (size_t)where[k] * s->inner;
            if (width == sizeof(float))
                dq_data(j->out, float)[at] = 1;
            else
                dq_tensor_put_double(j->out, at, 1);
        }
    }
}

/* ---- Rows of floats ------------------------------------------------------------------------------------ */

/* Computes up to ROWS_AT_ONCE contiguous rows; y may be x; `workspace` holds a row. Each step runs for all
 * rows before the next step, so that dependent steps of one row overlap with other rows. */
static void few_rows(const job *j, const float *x, size_t count, float *y, float *workspace)
{
    const dq_rows_f32 *rows = j->call->kernels->rows_f32;
    size_t n = j->s->n;
    float most[ROWS_AT_ONCE];
    double total[ROWS_AT_ONCE];
    for (size_t i = 0; i < count; i++)
        most[i] = rows->peak(x + i * n, n);
    if (j->s->kind == SOFT) {
        for (size_t i = 0; i < count; i++)
            total[i] = rows->exp_sum(x + i * n, n, most[i], y + i * n);
        for (size_t i = 0; i < count; i++)
            rows->scale(y + i * n, n, (float)(1 / total[i]), y + i * n);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        total[i] = rows->exp_sum(x + i * n, n, most[i], workspace);
        rows->normalize(x + i * n, n, most[i], (float)dq_log(total[i]), 1.0f, NULL, NULL, 0, y + i * n);
    }
}

/* Computes long rows of the last axis: float in place, as many as L1 holds; other types as floats. */
static void rows_of_last_axis(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    size_t n = j->s->n,
           step = j->in->dtype == DQ_FLOAT && n < ELEMENTS_PER_TASK / ROWS_AT_ONCE ? ROWS_AT_ONCE : 1;
    float *row = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i += step) {
        if (j->in->dtype == DQ_FLOAT) {
            few_rows(j, dq_data(j->in, float) + i * n, end - i < step ? end - i : step,
                     dq_data(j->out, float) + i * n, row);
            continue;
        }
        dq_load_floats(j->call->kernels, j->in->dtype, j->in->data, i * n, n, row);
        few_rows(j, row, 1, row, row + n);
        dq_store_from_floats(j->call->kernels, j->out->dtype, j->out->data, i * n, n, row, false);
    }
}

static const uint32_t *words(const float *x)
{
    return (const uint32_t *)(const void *)x;
}

/* Computes short rows as columns: transposes, applies the kernel, transposes back. Excess columns of a group
 * are discarded. */
static void short_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const state *s = j->s;
    const dq_kernels *k = j->call->kernels;
    float *columns = dq_call_worker_scratch(j->call, worker), *workspace = columns + s->n * COLUMNS;
    bool plain = j->in->dtype == DQ_FLOAT;
    for (size_t i = begin; i < end; i += COLUMNS) {
        size_t count = end - i < COLUMNS ? end - i : COLUMNS, at = i * s->n,
               n = (count + GROUP - 1) & ~(size_t)(GROUP - 1);
        const float *from = plain ? dq_data(j->in, float) + at : workspace;
        float *to = plain ? dq_data(j->out, float) + at : workspace;
        if (!plain)
            dq_load_floats(k, j->in->dtype, j->in->data, at, count * s->n, workspace);
        if (count < n)
            memset(columns, 0, s->n * COLUMNS * sizeof *columns);
        k->transpose_x32(words(from), s->n, count, s->n, (uint32_t *)(void *)columns, COLUMNS);
        k->rows_f32->softmax_columns(columns, COLUMNS, s->n, n, s->kind == LOG_SOFT, columns, COLUMNS);
        k->transpose_x32(words(columns), COLUMNS, s->n, count, (uint32_t *)(void *)to, s->n);
        if (!plain)
            dq_store_from_floats(k, j->out->dtype, j->out->data, at, count * s->n, workspace, false);
    }
}

/* Computes neighboring lines of an inner axis, in place or in a contiguous copy. The copy is for large
 * strides, for fewer lines than kernels take, and for other types than float. */
static void lines_of_inner_axis(void *arg, size_t begin, size_t end, unsigned worker)
{
    const job *j = arg;
    const state *s = j->s;
    const dq_kernels *k = j->call->kernels;
    float *workspace = dq_call_worker_scratch(j->call, worker);
    for (size_t i = begin; i < end; i++) {
        size_t block = i % s->blocks, column = s->inner * block / s->blocks;
        size_t count = s->inner * (block + 1) / s->blocks - column, padded = count < GROUP ? GROUP : count;
        size_t base = i / s->blocks * s->n * s->inner + column;
        if (s->in_place) {
            k->rows_f32->softmax_columns(dq_data(j->in, float) + base, s->inner, s->n, count,
                                         s->kind == LOG_SOFT, dq_data(j->out, float) + base, s->inner);
            continue;
        }
        if (count < padded)
            memset(workspace, 0, s->n * padded * sizeof *workspace);
        for (size_t t = 0; t < s->n; t++)
            dq_load_floats(k, j->in->dtype, j->in->data, base + t * s->inner, count, workspace + t * padded);
        k->rows_f32->softmax_columns(workspace, padded, s->n, padded, s->kind == LOG_SOFT, workspace, padded);
        for (size_t t = 0; t < s->n; t++)
            dq_store_from_floats(k, j->out->dtype, j->out->data, base + t * s->inner, count,
                                 workspace + t * padded, false);
    }
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const state *s = call->state;
    job j = {call, s, call->in[0], call->out[0]};
    if (j.out->count == 0)
        return DQ_OK;
    size_t count = j.out->count / s->n, grain = ELEMENTS_PER_TASK / s->n + 1;
    if (s->kind == HARD)
        dq_parallel(call->threads, count, dq_column_grain(grain, s->inner), hard_lines, &j);
    else if (j.in->dtype == DQ_DOUBLE)
        dq_parallel(call->threads, count, grain, lines, &j);
    else if (s->inner == 1 && s->n > MAX_SHORT_ROW)
        dq_parallel(call->threads, count, grain, rows_of_last_axis, &j);
    else if (s->inner == 1)
        dq_parallel(call->threads, count, (grain + COLUMNS - 1) / COLUMNS * COLUMNS, short_rows, &j);
    else
        dq_parallel(call->threads, count / s->inner * s->blocks,
                    ELEMENTS_PER_TASK / (s->n * (s->inner / s->blocks)) + 1, lines_of_inner_axis, &j);
    return DQ_OK;
}

#define OVER_AXIS(symbol, what)                                                                              \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, what, err);                                                                     \
    }                                                                                                        \
    const dq_op_impl symbol = {infer, symbol##_prepare, run, DQ_OP_IN_PLACE | DQ_OP_BATCH_SEPARABLE_FIRST};

OVER_AXIS(dq_op_softmax, SOFT)
OVER_AXIS(dq_op_log_softmax, LOG_SOFT)
OVER_AXIS(dq_op_hardmax, HARD)
