#include "ops/reduce/row_norm.h"

#include "kernels/kernels.h"
#include "ops/rows.h"

#include <math.h>

/* A number as two floats whose sum is closer to it than one can be. */
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
    return call->kernels->float_rows->squares(x, n, off.high, off.low);
}

dq_row_stats dq_row_measure(const dq_op_call *call, const float *x, size_t n, bool centre, double epsilon)
{
    dq_row_stats stats = {.mean = call->kernels->float_rows->sum(x, n) / (double)n};
    double squares = dq_row_squares(call, centre ? stats.mean : 0, x, n);
    stats.inverse = 1 / sqrt(squares / (double)n + epsilon);
    return stats;
}

void dq_row_apply(const dq_op_call *call, const dq_row_stats *stats, bool centre, const float *x, size_t n,
                  const float *gamma, const float *beta, size_t step, float *y)
{
    split off = split_of(centre ? stats->mean : 0);
    call->kernels->float_rows->normalize(x, n, off.high, off.low, (float)stats->inverse, gamma, beta, step,
                                         y);
}

dq_row_stats dq_row_normalize(const dq_op_call *call, const dq_row_norm *norm, const float *x, float *y)
{
    dq_row_stats stats = dq_row_measure(call, x, norm->n, norm->centre, norm->epsilon);
    dq_row_apply(call, &stats, norm->centre, x, norm->n, norm->gamma, norm->beta, 1, y);
    return stats;
}

void dq_row_stats_of_nothing(const dq_op_call *call, uint32_t first, uint32_t end)
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
