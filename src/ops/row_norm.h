/* Normalizing one row of floats, for the operators of com.microsoft that first add rows up: layer
 * normalization y = (x - mean) / sqrt(variance + epsilon) * gamma + beta or, without the mean,
 * root-mean-square normalization. Sums are taken in double, in an order that depends on the length alone. */
#ifndef DQ_OPS_ROW_NORM_H
#define DQ_OPS_ROW_NORM_H

#include "ops/op.h"

typedef struct dq_row_norm {
    double epsilon;
    bool centre;               /* take the mean off */
    size_t n;                  /* elements of a row */
    const float *gamma, *beta; /* n numbers each; beta NULL: none */
} dq_row_norm;

typedef struct dq_row_stats {
    double mean, inverse; /* inverse: of the standard deviation, or of the root mean square */
} dq_row_stats;

/** y[i] from x[i]; y may be x. The mean is that of the row also when it is not taken off. */
dq_row_stats dq_row_normalize(const dq_row_norm *norm, const float *x, float *y);

/** A whole input as floats: its own data, or `to` (as many floats as it has elements) filled from it. */
const float *dq_row_floats(const dq_op_call *call, const dq_tensor *t, float *to);

#endif
