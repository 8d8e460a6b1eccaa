/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce/row_norm.h"

#include "kernels/kernels.h"
#include "ops/rows.h"

#include <math.h>

/* A double as an unevaluated sum of two floats. */
typedef struct split {
    float high, low;
} split;

static split split_of(double x)
{
    float high = (float)x;
    return (split){high, isfinite(high) ? (float)(x - (double)high) : 0};
}

double dq_row_squares(const dq_op_call *call, double mean, const float *x, size_t n)
{
    split off = split_of(mean);
    return call->kernels->rows_f32->squares(x, n, off.high, off.low);
}

dq_row_stats dq_row_measure(const dq_op_call *call, const dq_row_norm *norm, const float *x)
{
    dq_row_stats stats = {.mean = call->kernels->rows_f32->sum(x, norm->n) / (double)norm->n};
    double squares = dq_row_squares(call, norm->centre ? stats.mean : 0, x, norm->n);
    stats.inverse = 1 / sqrt(squares / (double)norm->n + norm->epsilon);
    return stats;
}

void dq_row_apply(const dq_op_call *call, const dq_row_norm *norm, const dq_row_stats *stats, const float *x,
                  float *y)
{
    split off = split_of(norm->centre ? stats->mean : 0);
    call->kernels->rows_f32->normalize(x, norm->n, off.high, off.low, (float)stats->inverse, norm->gamma,
                                       norm->beta, norm->broadcast ? 0 : 1, y);
}

dq_row_stats dq_row_normalize(const dq_op_call *call, const dq_row_norm *norm, const float *x, float *y)
{
    dq_row_stats stats = dq_row_measure(call, norm, x);
    dq_row_apply(call, norm, &stats, x, y);
    return stats;
}

void dq_row_stats_fill_nan(const dq_op_call *call, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end && i < call->out_count; i++)
        for (size_t row = 0; call->out[i] && row < call->out[i]->count; row++)
            dq_tensor_put_double(call->out[i], row, (double)NAN);
}

const float *dq_row_floats(const dq_op_call *call, const dq_tensor *t, float *to)
{
    if (t->dtype == DQ_FLOAT)
        return t->data;
    dq_load_floats(call->kernels, t->dtype, t->data, 0, t->count, to);
    return to;
}
