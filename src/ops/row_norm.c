#include "ops/row_norm.h"

#include "ops/rows.h"

#include <math.h>

enum { LANES = 8 };

/* Sum of (x[i] - off) to the power of 1 or 2: eight sums side by side, then those in order. */
static double sum_of(const float *x, size_t n, double off, bool squares)
{
    double lanes[LANES] = {0}, sum = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            double d = (double)x[i + l] - off;
            lanes[l] += squares ? d * d : d;
        }
    for (size_t l = 0; i < n; i++, l++) {
        double d = (double)x[i] - off;
        lanes[l] += squares ? d * d : d;
    }
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

dq_row_stats dq_row_normalize(const dq_row_norm *norm, const float *x, float *y)
{
    double n = (double)norm->n;
    dq_row_stats stats = {.mean = sum_of(x, norm->n, 0, false) / n};
    double off = norm->centre ? stats.mean : 0;
    stats.inverse = 1 / sqrt(sum_of(x, norm->n, off, true) / n + norm->epsilon);
    for (size_t i = 0; i < norm->n; i++) {
        double value = ((double)x[i] - off) * stats.inverse * (double)norm->gamma[i];
        y[i] = (float)(norm->beta ? value + (double)norm->beta[i] : value);
    }
    return stats;
}

const float *dq_row_floats(const dq_op_call *call, const dq_tensor *t, float *to)
{
    if (t->dtype == DQ_FLOAT)
        return t->data;
    dq_load_floats(call->kernels, t->dtype, t->data, 0, t->count, to);
    return to;
}
