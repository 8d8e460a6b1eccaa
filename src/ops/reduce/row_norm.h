/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizing one row of floats: layer normalization y = (x - mean) / sqrt(variance + epsilon) * gamma + beta
 * or, without the mean, root-mean-square normalization. Sums are taken in double, in lanes (see
 * kernels/elementwise/float_rows.h); the rest is float, the last product and sum fused. */
#ifndef DQ_OPS_ROW_NORM_H
#define DQ_OPS_ROW_NORM_H

#include "ops/op.h"

typedef struct dq_row_norm {
    double epsilon;
    bool centre;               /* take the mean off */
    size_t n;                  /* elements of a row */
    const float *gamma, *beta; /* n numbers each, or one if `broadcast`; NULL: none */
    bool broadcast;
} dq_row_norm;

typedef struct dq_row_stats {
    double mean, inverse; /* inverse: of the standard deviation, or of the root mean square */
} dq_row_stats;

/** The sum of the squares of differences from `mean`. */
double dq_row_squares(const dq_op_call *call, double mean, const float *x, size_t n);
/** The mean is that of the row also when it is not taken off. */
dq_row_stats dq_row_measure(const dq_op_call *call, const dq_row_norm *norm, const float *x);
/** y[i] from x[i] for norm->n elements, a row or a part of one; y may be x. */
void dq_row_apply(const dq_op_call *call, const dq_row_norm *norm, const dq_row_stats *stats, const float *x,
                  float *y);
/** Both. */
dq_row_stats dq_row_normalize(const dq_op_call *call, const dq_row_norm *norm, const float *x, float *y);

/** Of rows of no elements there is no mean: the outputs from `first` up to `end` are filled with NaN. */
void dq_row_stats_of_nothing(const dq_op_call *call, uint32_t first, uint32_t end);

/** A whole input as floats: its own data, or `to` (as many floats as it has elements) filled from it. */
const float *dq_row_floats(const dq_op_call *call, const dq_tensor *t, float *to);

#endif
