/* LpNormalization: each line along an axis divided by its norm; zeros stay zeros. MeanVarianceNormalization:
 * each set of elements over some axes brought to mean 0 and deviation 1. Sums are in double, in order. */
#include "ops/lists.h"

#include <inttypes.h>
#include <math.h>

/* ---- LpNormalization ------------------------------------------------------------------------------------
 */

static dq_status lp_infer(dq_op_call *call, dq_error *err)
{
    const dq_tensor *in = call->in[0];
    int64_t given = dq_node_int(call->node, "axis", -1), p = dq_node_int(call->node, "p", 2);
    size_t axis;
    if (!dq_axis(given, in->rank, &axis))
        return dq_call_fail(call, err, DQ_BAD_MODEL,
                            "attribute 'axis' is %" PRId64 ", outside an input of rank %u", given, in->rank);
    if (p != 1 && p != 2)
        return dq_call_fail(call, err, DQ_BAD_MODEL, "attribute 'p' is %" PRId64 ", wanted 1 or 2", p);
    return dq_call_output_like(call, 0, in->dtype, in, err);
}

static dq_status lp_run(const dq_op_call *call, dq_error *err)
{
    (void)err;
    const dq_tensor *in = call->in[0];
    size_t axis = 0;
    dq_axis(dq_node_int(call->node, "axis", -1), in->rank, &axis);
    bool squares = dq_node_int(call->node, "p", 2) == 2;
    size_t n = (size_t)in->dims[axis], inner = dq_dims_product(in->dims, axis + 1, in->rank);
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

const dq_op_impl dq_op_lp_normalization = {lp_infer, NULL, lp_run, 0};

/* ---- MeanVarianceNormalization --------------------------------------------------------------------------
 */

/* The axes in order, those that are normalized over last. */
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
    if (!axes.given)
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

static size_t place(const order *o, size_t from, size_t to, size_t i)
{
    size_t at = 0;
    for (size_t d = to; d-- > from; i /= o->dims[d])
        at += i % o->dims[d] * o->strides[d];
    return at;
}

static dq_status mean_variance_infer(dq_op_call *call, dq_error *err)
{
    order o;
    DQ_TRY(read_order(call, &o, err));
    return dq_call_output_like(call, 0, call->in[0]->dtype, call->in[0], err);
}

static dq_status mean_variance_run(const dq_op_call *call, dq_error *err)
{
    static const double epsilon = 1e-9; /* added to the deviation */
    const dq_tensor *in = call->in[0];
    order o;
    DQ_TRY(read_order(call, &o, err));
    size_t n = 1;
    for (size_t d = o.kept; d < o.rank; d++)
        n *= o.dims[d];
    for (size_t set = 0; in->count && set < in->count / n; set++) {
        size_t base = place(&o, 0, o.kept, set);
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; i++)
            mean += dq_tensor_get_double(in, base + place(&o, o.kept, o.rank, i));
        mean /= (double)n;
        for (size_t i = 0; i < n; i++) {
            double d = dq_tensor_get_double(in, base + place(&o, o.kept, o.rank, i)) - mean;
            variance += d * d;
        }
        double deviation = sqrt(variance / (double)n) + epsilon;
        for (size_t i = 0; i < n; i++) {
            size_t at = base + place(&o, o.kept, o.rank, i);
            dq_tensor_put_double(call->out[0], at, (dq_tensor_get_double(in, at) - mean) / deviation);
        }
    }
    return DQ_OK;
}

const dq_op_impl dq_op_mean_variance_normalization = {mean_variance_infer, NULL, mean_variance_run, 0};
