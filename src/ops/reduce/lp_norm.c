/* SPDX-License-Identifier: Apache-2.0 */
/* LpNormalization divides each line along an axis by its norm; lines of zeros stay zero.
 * MeanVarianceNormalization gives each set of elements over some axes mean 0 and standard deviation 1. Sums
 * are in double, in row-major order; those of contiguous floats are in the lanes of
 * kernels/elementwise/float_rows.h. */
#include "kernels/kernels.h"
#include "ops/lists.h"
#include "ops/reduce/row_norm.h"
#include "ops/widened.h"

#include <inttypes.h>
#include <math.h>

/* ---- LpNormalization ----------------------------------------------------------------------------------- */

static dq_status lp_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t p = dq_node_int(call->node, "p", 2);
    size_t axis;
    DQ_TRY(dq_call_axis(call, -1, &axis, err));
    if (p != 1 && p != 2)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'p' is %" PRId64 ", expected 1 or 2", p);
    return dq_call_output_like(call, 0, in->dtype, in, err);
}

enum { BLOCK = 256, ELEMENTS_PER_TASK = 8192 /* approximate elements per task */ };

typedef struct lines {
    const dq_op_call *call;
    size_t n, inner;
    bool squares;
} lines;

static float divisor(const lines *l, double sum)
{
    return sum == 0 ? 1 : (float)(l->squares ? sqrt(sum) : sum);
}

/* Normalizes contiguous lines of float. */
static void float_rows(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const lines *l = arg;
    const dq_rows_f32 *rows = l->call->kernels->rows_f32;
    float workspace[BLOCK];
    for (size_t i = begin; i < end; i++) {
        const float *x = dq_data(l->call->in[0], float) + i * l->n;
        double sum = l->squares ? rows->squares(x, l->n, 0, 0) : 0;
        for (size_t at = 0; at < l->n && !l->squares; at += BLOCK) {
            size_t few = l->n - at < BLOCK ? l->n - at : BLOCK;
            for (size_t k = 0; k < few; k++)
                workspace[k] = fabsf(x[at + k]);
            sum += rows->sum(workspace, few);
        }
        const float norm = divisor(l, sum);
        rows->div(x, 1, &norm, 0, l->n, dq_data(l->call->out[0], float) + i * l->n);
    }
}

/* Normalizes neighboring lines of float, up to BLOCK at a time. */
static void float_columns(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const lines *l = arg;
    size_t blocks = (l->inner + BLOCK - 1) / BLOCK;
    for (size_t i = begin; i < end; i++) {
        size_t column = i % blocks * BLOCK, base = i / blocks * l->n * l->inner + column;
        size_t count = l->inner - column < BLOCK ? l->inner - column : BLOCK;
        const float *x = dq_data(l->call->in[0], float) + base;
        float *y = dq_data(l->call->out[0], float) + base, norm[BLOCK];
        double sum[BLOCK] = {0};
        for (size_t t = 0; t < l->n; t++)
            for (size_t k = 0; k < count; k++) {
                double v = (double)x[t * l->inner + k];
                sum[k] += l->squares ? v * v : fabs(v);
            }
        for (size_t k = 0; k < count; k++)
            norm[k] = divisor(l, sum[k]);
        for (size_t t = 0; t < l->n; t++)
            l->call->kernels->rows_f32->div(x + t * l->inner, 1, norm, 1, count, y + t * l->inner);
    }
}

static dq_status lp_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    size_t axis = 0;
    dq_axis(dq_node_int(call->node, "axis", -1), in->rank, &axis);
    bool squares = dq_node_int(call->node, "p", 2) == 2;
    size_t n = (size_t)in->dims[axis], inner = dq_dims_product(in->dims, axis + 1, in->rank);
    if (in->count && in->dtype == DQ_FLOAT) {
        lines l = {call, n, inner, squares};
        size_t blocks = (inner + BLOCK - 1) / BLOCK, items = in->count / n / inner * blocks;
        dq_parallel(call->threads, items, ELEMENTS_PER_TASK / (in->count / items) + 1,
                    inner == 1 ? float_rows : float_columns, &l);
        return DQ_OK;
    }
    for (size_t line = 0; in->count && line < in->count / n; line++) {
        size_t base = line / inner * n * inner + line % inner;
        double norm = 0;
        for (size_t i = 0; i < n; i++) {
            double x = dq_tensor_get_double(in, base + i * inner);
            norm += squares ? x * x : fabs(x);
        }
        norm = squares ? sqrt(norm) : norm;
        for (size_t i = 0; i < n; i++)
            dq_tensor_put_double(call->out[0], base + i * inner,
                                 norm == 0 ? 0 : dq_tensor_get_double(in, base + i * inner) / norm);
    }
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_lp_normalization, true, lp_infer, NULL, lp_run, 0)

/* ---- MeanVarianceNormalization ------------------------------------------------------------------------- */

static const double epsilon = 1e-9; /* added to the standard deviation */

/* Dimensions and strides of the input: first the `kept` axes, then those that are normalized over. */
typedef struct order {
    size_t kept, rank;
    size_t dims[DQ_MAX_RANK], strides[DQ_MAX_RANK];
} order;

static dq_status read_order(const dq_op_call *call, order *o, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    dq_list axes;
    size_t strides[DQ_MAX_RANK];
    bool over[DQ_MAX_RANK] = {false};
    DQ_TRY(dq_list_from_attr(call, "axes", &axes, err));
    if (!axes.present)
        axes = (dq_list){true, 3, {0, 2, 3}};
    DQ_TRY(dq_list_axes(call, &axes, in->rank, err));
    for (size_t k = 0; k < axes.count; k++)
        over[axes.at[k]] = true;
    dq_strides(in->rank, in->dims, strides);
    *o = (order){.kept = in->rank - axes.count};
    for (int last = 0; last < 2; last++)
        for (size_t d = 0; d < in->rank; d++)
            if (over[d] == (last == 1)) {
                o->dims[o->rank] = (size_t)in->dims[d];
                o->strides[o->rank++] = strides[d];
            }
    return DQ_OK;
}

static size_t element_offset(const order *o, size_t from, size_t to, size_t i)
{
    size_t at = 0;
    for (size_t d = to; d-- > from; i /= o->dims[d])
        at += i % o->dims[d] * o->strides[d];
    return at;
}

/* Length of a contiguous segment of a set. */
static size_t run_of(const order *o)
{
    size_t n = 1;
    for (size_t d = o->rank; d-- > o->kept && o->strides[d] == n;)
        n *= o->dims[d];
    return n;
}

typedef struct sets {
    const dq_op_call *call;
    order o;
    size_t n, run;
} sets;

/* Normalizes sets of floats, one contiguous segment at a time. */
static void float_sets(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const sets *s = arg;
    const dq_op_call *call = s->call;
    const dq_row_norm norm = {.centre = true, .n = s->run};
    for (size_t set = begin; set < end; set++) {
        const size_t base = element_offset(&s->o, 0, s->o.kept, set);
        const float *x = dq_data(call->in[0], float) + base;
        float *y = dq_data(call->out[0], float) + base;
        double sum = 0, squares = 0;
        for (size_t i = 0; i < s->n; i += s->run)
            sum += call->kernels->rows_f32->sum(x + element_offset(&s->o, s->o.kept, s->o.rank, i), s->run);
        dq_row_stats stats = {.mean = sum / (double)s->n};
        for (size_t i = 0; i < s->n; i += s->run)
            squares +=
                dq_row_squares(call, stats.mean, x + element_offset(&s->o, s->o.kept, s->o.rank, i), s->run);
        stats.inverse = 1 / (sqrt(squares / (double)s->n) + epsilon);
        for (size_t i = 0; i < s->n; i += s->run) {
            size_t at = element_offset(&s->o, s->o.kept, s->o.rank, i);
            dq_row_apply(call, &norm, &stats, x + at, y + at);
        }
    }
}

static dq_status mean_variance_infer(dq_op_call *call, dq_error *err)
{
    order o;
    DQ_TRY(read_order(call, &o, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status mean_variance_run(const dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    order o;
    DQ_TRY(read_order(call, &o, err));
    size_t n = 1;
    for (size_t d = o.kept; d < o.rank; d++)
        n *= o.dims[d];
    if (in->count && in->dtype == DQ_FLOAT && run_of(&o) > 1) {
        sets s = {call, o, n, run_of(&o)};
        dq_parallel(call->threads, in->count / n, ELEMENTS_PER_TASK / n + 1, float_sets, &s);
        return DQ_OK;
    }
    for (size_t set = 0; in->count && set < in->count / n; set++) {
        size_t base = element_offset(&o, 0, o.kept, set);
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; i++)
            mean += dq_tensor_get_double(in, base + element_offset(&o, o.kept, o.rank, i));
        mean /= (double)n;
        for (size_t i = 0; i < n; i++) {
            double d = dq_tensor_get_double(in, base + element_offset(&o, o.kept, o.rank, i)) - mean;
            variance += d * d;
        }
        double deviation = sqrt(variance / (double)n) + epsilon;
        for (size_t i = 0; i < n; i++) {
            size_t at = base + element_offset(&o, o.kept, o.rank, i);
            dq_tensor_put_double(call->out[0], at, (dq_tensor_get_double(in, at) - mean) / deviation);
        }
    }
    return DQ_OK;
}

DQ_OP_WIDENED(dq_op_mean_variance_normalization, true, mean_variance_infer, NULL, mean_variance_run, 0)
