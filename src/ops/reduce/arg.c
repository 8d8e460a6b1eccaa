/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin: index of the extreme along an axis, the first or the last of equal ones. The first NaN
 * counts as the extreme, as in NumPy. */
#include "ops/reduce/arg.h"
#include "ops/reduce/reduce.h"
#include "ops/rows.h"
#include "ops/shape/rank.h"
#include "ops/widened.h"

#include <math.h>

enum {
    ELEMENTS_PER_TASK = 8192, /* approximate elements per task */
    RESULTS_PER_STEP = 4,     /* results of int64 computed at a time */
    BLOCK = 256,
    LANES = 32,          /* columns of a row */
    MAX_SHORT_ROW = 128, /* maximum length of rows that are transposed */
    TILE = 4096          /* elements transposed at a time */
};

static dq_status infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis, rank = 0;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    if (in->dims[axis] == 0)
        return dq_call_fail_input(call, err, 0, "is empty along axis %zu, which has no extreme", axis);
    bool keep = dq_node_int(call->node, "keepdims", 1) != 0;
    int64_t dims[DQ_MAX_RANK];
    for (size_t d = 0; d < in->rank; d++)
        if (d != axis || keep)
            dims[rank++] = d == axis ? 1 : in->dims[d];
    return dq_call_output(call, 0, DQ_INT64, rank, dims, err);
}

static dq_status prepare(dq_op_call *call, bool max, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    size_t axis;
    DQ_TRY(dq_call_axis(call, 0, &axis, err));
    DQ_TRY(dq_call_state(call, sizeof(dq_arg), err));
    *(dq_arg *)call->state = (dq_arg){(size_t)in->dims[axis], dq_dims_product(in->dims, axis + 1, in->rank),
                                      max, dq_node_int(call->node, "select_last_index", 0) != 0};
    return DQ_OK;
}

static size_t find(const dq_arg *s, const dq_tensor *in, size_t base)
{
    const uint64_t bits = in->dtype == DQ_FLOAT ? UINT32_MAX : UINT64_MAX;
    /* For the minimum, wraps the key of NaN from the smallest to the largest. */
    const uint64_t off = !s->max && dq_dtype_is_float(in->dtype) ? ~bits + 1 : 0;
    const bool last = s->last;
    uint64_t keys[DQ_ROW], best = 0;
    size_t where = 0;
    for (size_t i = 0, few; i < s->n; i += few) {
        few = s->n - i < DQ_ROW ? s->n - i : DQ_ROW;
        dq_rank_keys(in, base + i * s->inner, few, s->inner, s->max, keys);
        for (size_t k = 0; k < few; k++) {
            const uint64_t key = keys[k] - off;
            if (key >= best && (key > best || last)) {
                best = key;
                where = i + k;
            }
        }
    }
    return where;
}

/* Computes RESULTS_PER_STEP results of int64, whose elements begin at stride `column_stride`. Their
 * dependency chains of comparisons are interleaved. */
static void find_few(const dq_arg *s, const dq_tensor *in, size_t base, size_t column_stride, int64_t *out)
{
    const uint64_t sign_xor = dq_extreme_sign_xor(in->dtype, s->max);
    const ptrdiff_t step = s->last ? -(ptrdiff_t)s->inner : (ptrdiff_t)s->inner;
    const uint64_t *x = dq_data(in, uint64_t) + base + (s->last ? (s->n - 1) * s->inner : 0);
    int64_t best[RESULTS_PER_STEP];
    size_t where[RESULTS_PER_STEP];
#pragma GCC unroll 4
    for (size_t k = 0; k < RESULTS_PER_STEP; k++) {
        best[k] = (int64_t)(x[k * column_stride] ^ sign_xor);
        where[k] = 0;
    }
    for (size_t i = 1; i < s->n; i++) {
        x += step;
#pragma GCC unroll 4
        for (size_t k = 0; k < RESULTS_PER_STEP; k++) {
            const int64_t e = (int64_t)(x[k * column_stride] ^ sign_xor);
            where[k] = e > best[k] ? i : where[k];
            best[k] = e > best[k] ? e : best[k];
        }
    }
    for (size_t k = 0; k < RESULTS_PER_STEP; k++)
        out[k] = (int64_t)(s->last ? s->n - 1 - where[k] : where[k]);
}

/* ---- Columns ------------------------------------------------------------------------------------------- */

typedef union values {
    int32_t i[BLOCK];
    float f[BLOCK];
} values;

/* Kernel for an element type. */
typedef struct reducer {
    dq_arg_fn *arg;
    size_t width; /* bytes of an element; 0: there is no kernel */
    uint64_t sign_xor;
    bool floats;
} reducer;

static reducer reducer_of(const dq_arg *s, const dq_kernels *k, dq_dtype dtype)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    const uint64_t sign_xor = dq_extreme_sign_xor(dtype, s->max);
    if (s->n > INT32_MAX)
        return (reducer){0};
    if (dtype == DQ_FLOAT)
        return (reducer){k->reduce_axis_mixed->arg_f32, 4, sign_xor, true};
    if (row->cls != DQ_CLASS_FLOAT && row->bits == 8)
        return (reducer){k->reduce_axis_mixed->arg_8, 1, sign_xor, false};
    if (row->cls != DQ_CLASS_FLOAT && row->bits == 32)
        return (reducer){k->reduce_axis_mixed->arg_32, 4, sign_xor, false};
    return (reducer){0};
}

/* Finds the extreme of n <= BLOCK columns of `count` rows. For the last of equal ones, rows are read from the
 * last to the first. */
static void find_columns(const dq_arg *s, const reducer *w, const char *x, size_t step, size_t count,
                         size_t n, values *best, int32_t *where)
{
    const char *last = x + (count - 1) * step * w->width;
    w->arg(s->last ? last : x, s->last ? -(ptrdiff_t)step : (ptrdiff_t)step, count, n, w->sign_xor, best,
           where);
    for (size_t k = 0; k < n && s->last; k++)
        where[k] = (int32_t)count - 1 - where[k];
}

/* Index of the best of n candidates, the first or last of equal ones; SIZE_MAX if one is NaN. */
static size_t best_index(const dq_arg *s, const reducer *w, const values *best, const int32_t *index,
                         size_t n)
{
    double most = 0;
    size_t found = SIZE_MAX;
    for (size_t k = 0; k < n; k++) {
        const double v = w->floats ? (double)best->f[k] : (double)best->i[k];
        const size_t at = (size_t)index[k];
        if (isnan(v))
            return SIZE_MAX;
        bool expected = s->last ? at > found : at < found;
        if (found == SIZE_MAX || v > most || (v == most && expected)) {
            most = v;
            found = at;
        }
    }
    return found;
}

/* Finds the extreme of a contiguous row as LANES columns and a remainder. SIZE_MAX: it has a NaN. */
static size_t find_in_row(const dq_arg *s, const reducer *w, const char *x)
{
    const size_t whole = s->n / LANES, rest = s->n % LANES, lanes = whole ? LANES : 0;
    values best;
    int32_t where[BLOCK];
    if (whole)
        find_columns(s, w, x, LANES, whole, LANES, &best, where);
    for (size_t k = 0; k < lanes; k++)
        where[k] = where[k] * LANES + (int32_t)k;
    if (rest)
        w->arg(x + whole * LANES * w->width, 0, 1, rest, w->sign_xor, best.i + lanes, where + lanes);
    for (size_t k = 0; k < rest; k++)
        where[lanes + k] = (int32_t)(s->n - rest + k);
    return best_index(s, w, &best, where, lanes + rest);
}

void dq_arg_find(const dq_arg *s, const dq_kernels *kernels, const dq_tensor *in, size_t begin, size_t end,
                 int64_t *out)
{
    const reducer w = reducer_of(s, kernels, in->dtype);
    const bool transposed = s->inner == 1 && s->n <= MAX_SHORT_ROW, rows = s->inner == 1 && !transposed;
    const size_t most = transposed ? TILE / s->n : BLOCK;
    uint64_t workspace[TILE / 2];
    values best;
    int32_t where[BLOCK];
    for (size_t i = begin, n = 1; i < end; i += n) {
        const size_t base = i / s->inner * s->n * s->inner + i % s->inner;
        const char *x = (const char *)in->data + base * w.width;
        size_t columns = transposed ? end - i : s->inner - i % s->inner;
        columns = columns < end - i ? columns : end - i;
        if (in->dtype == DQ_INT64 && (rows ? end - i : columns) >= RESULTS_PER_STEP) {
            n = RESULTS_PER_STEP;
            find_few(s, in, base, s->inner == 1 ? s->n : 1, out + (i - begin));
            continue;
        }
        n = rows || w.width == 0 ? 1 : columns < most ? columns : most;
        n = n < BLOCK ? n : BLOCK;
        if (rows && w.width) {
            const size_t at = find_in_row(s, &w, x);
            out[i - begin] = (int64_t)(at == SIZE_MAX ? find(s, in, base) : at);
            continue;
        }
        if (transposed && w.width)
            dq_reduce_transpose(kernels, w.width, x, n, s->n, workspace);
        if (w.width)
            find_columns(s, &w, transposed ? (const char *)workspace : x, transposed ? n : s->inner, s->n, n,
                         &best, where);
        for (size_t k = 0; k < n; k++)
            out[i - begin + k] = w.width == 0 || (w.floats && isnan(best.f[k]))
                                     ? (int64_t)find(s, in, transposed ? base + k * s->n : base + k)
                                     : where[k];
    }
}

typedef struct job {
    const dq_arg *s;
    const dq_op_call *call;
} job;

static void piece(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const job *j = arg;
    dq_arg_find(j->s, j->call->kernels, j->call->in[0], begin, end,
                dq_data(j->call->out[0], int64_t) + begin);
}

static dq_status run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_arg *s = call->state;
    job j = {s, call};
    if (call->out[0]->count)
        dq_parallel(call->threads, call->out[0]->count,
                    dq_column_grain(ELEMENTS_PER_TASK / s->n + 1, s->inner), piece, &j);
    return DQ_OK;
}

static dq_status prepare_max(dq_op_call *call, dq_error *err)
{
    return prepare(call, true, err);
}

static dq_status prepare_min(dq_op_call *call, dq_error *err)
{
    return prepare(call, false, err);
}

DQ_OP_WIDENED(dq_op_arg_max, true, infer, prepare_max, run, 0)
DQ_OP_WIDENED(dq_op_arg_min, true, infer, prepare_min, run, 0)
