/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes. Double is accumulated in double, integers in 64 bits modulo 2^64, in row-major order.
 * Floats up to 32 bits, and many reductions of integers, are vectorized (reduce_rows.c, reduce_integers.c). A
 * mean of integers is truncated toward zero. Logarithms and roots of integers are computed in double and
 * truncated. */
#include "ops/reduce/reduce.h"
#include "base/math.h"
#include "ops/lists.h"
#include "ops/quantize/exact_ratio.h"
#include "ops/rows.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 }; /* elements converted at a time */

/* ---- Shapes ------------------------------------------------------------------------------------------- */

/* Marks the axes of input 0 that are reduced. */
static dq_status reduced_axes(const dq_op_call *call, bool reduced[DQ_MAX_RANK], dq_error *err)
{
    size_t rank = call->in[0]->rank;
    dq_list axes;
    if (call->node->domain[0]) /* com.microsoft: input 1 is a scale, not axes */
        DQ_TRY(dq_list_from_attr(call, "axes", &axes, err));
    else
        DQ_TRY(dq_list_from_either(call, "axes", 1, &axes, err));
    DQ_TRY(dq_list_axes(call, &axes, rank, err));
    bool all = axes.count == 0 && dq_node_int(call->node, "noop_with_empty_axes", 0) == 0;
    for (size_t d = 0; d < DQ_MAX_RANK; d++)
        reduced[d] = all && d < rank;
    for (size_t k = 0; k < axes.count; k++)
        reduced[axes.at[k]] = true;
    return DQ_OK;
}

static dq_status infer_as(dq_op_call *call, dq_dtype dtype, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    bool reduced[DQ_MAX_RANK];
    DQ_TRY(reduced_axes(call, reduced, err));
    bool keep = dq_node_int(call->node, "keepdims", 1) != 0;
    int64_t dims[DQ_MAX_RANK];
    size_t rank = 0;
    for (size_t d = 0; d < in->rank; d++)
        if (!reduced[d] || keep)
            dims[rank++] = reduced[d] ? 1 : in->dims[d];
    return dq_call_output(call, 0, dtype, rank, dims, err);
}

static dq_status infer(dq_op_call *call, dq_error *err)
{
    return infer_as(call, call->in[0]->dtype, err);
}

static void add_dim(dq_walk *w, size_t dim, size_t stride)
{
    w->count *= dim;
    if (dim == 1)
        return;
    if (w->rank && w->strides[w->rank - 1] == dim * stride) {
        w->dims[w->rank - 1] *= dim;
        w->strides[w->rank - 1] = stride;
        return;
    }
    w->dims[w->rank] = dim;
    w->strides[w->rank++] = stride;
}

static dq_status prepare(dq_op_call *call, dq_reduce_kind what, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    bool reduced[DQ_MAX_RANK];
    size_t strides[DQ_MAX_RANK];
    DQ_TRY(reduced_axes(call, reduced, err));
    DQ_TRY(dq_call_state(call, sizeof(dq_reduction), err));
    dq_reduction *s = call->state;
    s->kind = what;
    s->kept.count = s->reduced.count = 1;
    dq_strides(in->rank, in->dims, strides);
    for (size_t d = 0; d < in->rank; d++)
        add_dim(reduced[d] ? &s->reduced : &s->kept, (size_t)in->dims[d], strides[d]);
    return DQ_OK;
}

/* ---- Accumulation ------------------------------------------------------------------------------------- */

typedef union number {
    double d;
    uint64_t u; /* signed integers too, in two's complement */
} number;

typedef struct accumulator {
    dq_reduce_kind kind;
    dq_dtype dtype;
    bool is_float, is_signed;
    double shift; /* DQ_REDUCE_LOG_SUM_EXP: subtracted before the exponential */
    number value;
} accumulator;

static void start(accumulator *a)
{
    const dq_dtype_row *row = dq_dtype_get(a->dtype);
    bool one = a->kind == DQ_REDUCE_PROD;
    if (a->is_float)
        a->value.d = a->kind == DQ_REDUCE_MIN ? HUGE_VAL : a->kind == DQ_REDUCE_MAX ? -HUGE_VAL : one ? 1 : 0;
    else if (a->kind == DQ_REDUCE_MIN)
        a->value.u = a->dtype == DQ_UINT64 ? UINT64_MAX : a->dtype == DQ_BOOL ? 1 : (uint64_t)row->max;
    else
        a->value.u = a->kind == DQ_REDUCE_MAX ? (uint64_t)row->min : one ? 1 : 0;
}

static void fold_doubles(accumulator *a, const double *x, size_t n)
{
    double v = a->value.d;
    switch (a->kind) {
    case DQ_REDUCE_MIN: /* NaN propagates */
        for (size_t i = 0; i < n; i++)
            v = x[i] < v || isnan(x[i]) ? x[i] : v;
        break;
    case DQ_REDUCE_MAX:
        for (size_t i = 0; i < n; i++)
            v = x[i] > v || isnan(x[i]) ? x[i] : v;
        break;
    case DQ_REDUCE_PROD:
        for (size_t i = 0; i < n; i++)
            v *= x[i];
        break;
    case DQ_REDUCE_L1:
        for (size_t i = 0; i < n; i++)
            v += fabs(x[i]);
        break;
    case DQ_REDUCE_L2:
    case DQ_REDUCE_SUM_SQUARE:
        for (size_t i = 0; i < n; i++)
            v += x[i] * x[i];
        break;
    case DQ_REDUCE_LOG_SUM_EXP:
        for (size_t i = 0; i < n; i++)
            v += dq_exp(x[i] - a->shift);
        break;
    case DQ_REDUCE_SUM:
    case DQ_REDUCE_MEAN:
    case DQ_REDUCE_LOG_SUM:
        for (size_t i = 0; i < n; i++)
            v += x[i];
        break;
    }
    a->value.d = v;
}

static void fold_integers(accumulator *a, const uint64_t *x, size_t n)
{
    uint64_t v = a->value.u, sign = a->is_signed ? (uint64_t)1 << 63 : 0;
    switch (a->kind) {
    case DQ_REDUCE_MIN: /* inverting the sign bit orders signed numbers as unsigned ones */
        for (size_t i = 0; i < n; i++)
            v = (x[i] ^ sign) < (v ^ sign) ? x[i] : v;
        break;
    case DQ_REDUCE_MAX:
        for (size_t i = 0; i < n; i++)
            v = (x[i] ^ sign) > (v ^ sign) ? x[i] : v;
        break;
    case DQ_REDUCE_PROD:
        for (size_t i = 0; i < n; i++)
            v *= x[i];
        break;
    case DQ_REDUCE_L1:
        for (size_t i = 0; i < n; i++)
            v += x[i] & sign ? 0 - x[i] : x[i];
        break;
    case DQ_REDUCE_SUM_SQUARE:
        for (size_t i = 0; i < n; i++)
            v += x[i] * x[i];
        break;
    default:
        for (size_t i = 0; i < n; i++)
            v += x[i];
        break;
    }
    a->value.u = v;
}

/* Accumulates n <= BLOCK elements of the input from `at` on at `stride`. */
static void fold(accumulator *a, const dq_tensor *in, size_t at, size_t stride, size_t n)
{
    double d[BLOCK];
    uint64_t u[BLOCK];
    if (!a->is_float) {
        if (stride == 1)
            dq_load_ints(in->dtype, in->data, at, n, (int64_t *)u);
        for (size_t i = 0; i < n && stride != 1; i++)
            u[i] = (uint64_t)dq_tensor_get_int(in, at + i * stride);
        fold_integers(a, u, n);
        return;
    }
    if (in->dtype == DQ_DOUBLE && stride == 1) {
        fold_doubles(a, dq_data(in, double) + at, n);
        return;
    }
    if (in->dtype == DQ_FLOAT)
        for (size_t i = 0; i < n; i++)
            d[i] = (double)dq_data(in, float)[at + i * stride];
    else if (in->dtype == DQ_DOUBLE)
        for (size_t i = 0; i < n; i++)
            d[i] = dq_data(in, double)[at + i * stride];
    else
        for (size_t i = 0; i < n; i++)
            d[i] = dq_tensor_get_double(in, at + i * stride);
    fold_doubles(a, d, n);
}

static void fold_all(accumulator *a, const dq_tensor *in, const dq_walk *w, size_t base)
{
    size_t coord[DQ_MAX_RANK] = {0};
    size_t last = w->rank ? w->rank - 1 : 0;
    size_t run = w->rank ? w->dims[last] : 1, step = w->rank ? w->strides[last] : 1;
    start(a);
    for (size_t done = 0; done < w->count; done += run) {
        size_t at = base;
        for (size_t d = 0; d < last; d++)
            at += coord[d] * w->strides[d];
        for (size_t i = 0; i < run; i += BLOCK)
            fold(a, in, at + i * step, step, run - i < BLOCK ? run - i : BLOCK);
        for (size_t d = last; d-- > 0;) {
            if (++coord[d] < w->dims[d])
                break;
            coord[d] = 0;
        }
    }
}

/* ---- Results ------------------------------------------------------------------------------------------ */

static void put_integer(dq_tensor *out, size_t i, const accumulator *a, size_t count)
{
    uint64_t value = a->value.u;
    if (a->kind == DQ_REDUCE_MEAN && count == 0)
        value = 0;
    else if (a->kind == DQ_REDUCE_MEAN)
        value = a->is_signed ? (uint64_t)((int64_t)value / (int64_t)count) : value / count;
    dq_tensor_put_int(out, i, (int64_t)value);
}

typedef struct job {
    const dq_reduction *s;
    const dq_tensor *in;
    dq_tensor *out;
    const dq_q8 *q_in, *q_out; /* of a quantized mean; else NULL */
    const dq_ratio *by;        /* exact ratio of dqrun's quantized mean; NULL: com.microsoft's */
} job;

/* Stores the quantized mean of (q - zero point) * scale. It is computed in double, so that it is rounded
 * once. A mean of no elements is NaN in the standard, and 0 in com.microsoft. */
static void put_quantized_mean(const job *j, size_t i, const accumulator *a, size_t count)
{
    double sum = (double)((int64_t)a->value.u - (int64_t)count * j->q_in->zero);
    if (j->by) {
        const int v = count ? dq_ratio_quantize(j->by, j->q_out, sum) : j->q_out->min;
        dq_data(j->out, uint8_t)[i] = (uint8_t)v;
        return;
    }
    double multiple = count ? sum * (double)j->q_in->scale / ((double)j->q_out->scale * (double)count) : 0;
    dq_data(j->out, uint8_t)[i] = dq_q8_round(j->q_out, multiple);
}

static void reduce_one(const job *j, size_t i, size_t base)
{
    const dq_reduction *s = j->s;
    dq_dtype dtype = j->in->dtype;
    unsigned cls = dq_dtype_get(dtype)->cls;
    bool in_double = cls == DQ_CLASS_FLOAT || s->kind == DQ_REDUCE_L2 || s->kind == DQ_REDUCE_LOG_SUM ||
                     s->kind == DQ_REDUCE_LOG_SUM_EXP;
    accumulator a = {
        .kind = s->kind, .dtype = dtype, .is_float = in_double, .is_signed = cls == DQ_CLASS_INT, .shift = 0};
    if (s->kind == DQ_REDUCE_LOG_SUM_EXP) {
        accumulator highest = a;
        highest.kind = DQ_REDUCE_MAX;
        fold_all(&highest, j->in, &s->reduced, base);
        a.shift = isfinite(highest.value.d) ? highest.value.d : 0;
    }
    fold_all(&a, j->in, &s->reduced, base);
    if (j->q_in)
        put_quantized_mean(j, i, &a, s->reduced.count);
    else if (in_double)
        dq_tensor_put_double(j->out, i, dq_reduce_finish(s->kind, a.shift, a.value.d, s->reduced.count));
    else
        put_integer(j->out, i, &a, s->reduced.count);
}

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    for (size_t i = begin; i < end; i++)
        reduce_one(j, i, dq_walk_at(&j->s->kept, i));
}

static dq_status run_job(const dq_op_call *call, job *j)
{
    const dq_reduction *s = call->state;
    j->s = s;
    j->in = call->in[0];
    j->out = call->out[0];
    if (!j->out || j->out->count == 0)
        return DQ_OK;
    if (j->q_in || j->in->dtype != j->out->dtype ||
        !dq_reduce_by_vectors(call->threads, call->kernels, s, j->in, j->out))
        dq_parallel(call->threads, j->out->count, dq_reduce_grain(s), piece, j);
    return DQ_OK;
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    return run_job(call, &(job){0});
}

#define REDUCTION(symbol, what)                                                                              \
    static dq_status symbol##_prepare(dq_op_call *call, dq_error *err)                                       \
    {                                                                                                        \
        return prepare(call, what, err);                                                                     \
    }                                                                                                        \
    const dq_op_impl symbol = {infer, symbol##_prepare, run, DQ_OP_BATCH_SEPARABLE_FIRST};

REDUCTION(dq_op_reduce_min, DQ_REDUCE_MIN)
REDUCTION(dq_op_reduce_max, DQ_REDUCE_MAX)
REDUCTION(dq_op_reduce_sum, DQ_REDUCE_SUM)
REDUCTION(dq_op_reduce_mean, DQ_REDUCE_MEAN)
REDUCTION(dq_op_reduce_prod, DQ_REDUCE_PROD)
REDUCTION(dq_op_reduce_l1, DQ_REDUCE_L1)
REDUCTION(dq_op_reduce_l2, DQ_REDUCE_L2)
REDUCTION(dq_op_reduce_sum_square, DQ_REDUCE_SUM_SQUARE)
REDUCTION(dq_op_reduce_log_sum, DQ_REDUCE_LOG_SUM)
REDUCTION(dq_op_reduce_log_sum_exp, DQ_REDUCE_LOG_SUM_EXP)

/* ---- com.microsoft ------------------------------------------------------------------------------------ */

/* ReduceSumInteger: 32-bit sums modulo 2^32. The declared type of the output, if any, selects int32 or
 * uint32. */
static dq_status sum_integer_infer(dq_op_call *call, dq_error *err)
{
    const dq_value *out = call->node->out ? call->node->out[0] : NULL;
    dq_dtype declared = out ? out->type.dtype : DQ_UNDEFINED;
    dq_dtype natural = call->in[0]->dtype == DQ_UINT8 ? DQ_UINT32 : DQ_INT32;
    return infer_as(call, declared == DQ_UINT32 || declared == DQ_INT32 ? declared : natural, err);
}

const dq_op_impl dq_op_reduce_sum_integer = {sum_integer_infer, dq_op_reduce_sum_prepare, run, 0};

static dq_status qlinear_mean_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check(call, 1, 2, err));
    DQ_TRY(dq_q8_check(call, 3, 4, err));
    return infer(call, err);
}

static dq_status qlinear_mean_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    dq_dtype dtype = call->in[0]->dtype;
    dq_q8 in = dq_q8_read(call, 1, 2, dtype), out = dq_q8_read(call, 3, 4, dtype);
    return run_job(call, &(job){.q_in = &in, .q_out = &out});
}

static dq_status exact_mean_infer(dq_op_call *call, dq_error *err)
{
    DQ_TRY(dq_q8_check_exact(call, 1, 2, err));
    DQ_TRY(dq_q8_check_exact(call, 3, 4, err));
    return infer(call, err);
}

static dq_status exact_mean_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_reduction *s = call->state;
    dq_dtype dtype = call->in[0]->dtype;
    dq_q8 in = dq_q8_read(call, 1, 2, dtype), out = dq_q8_read(call, 3, 4, dtype);
    const double count = (double)(s->reduced.count ? s->reduced.count : 1);
    const dq_ratio by = dq_ratio_make((double)in.scale, (double)out.scale * count);
    return run_job(call, &(job){.q_in = &in, .q_out = &out, .by = &by});
}

const dq_op_impl dq_op_exact_reduce_mean = {exact_mean_infer, dq_op_reduce_sum_prepare, exact_mean_run, 0};
const dq_op_impl dq_op_qlinear_reduce_mean = {qlinear_mean_infer, dq_op_reduce_sum_prepare, qlinear_mean_run,
                                              0};
