/* SPDX-License-Identifier: Apache-2.0 */
/* Normalization of one row of floats. Layer normalization: y = (x - mean) / sqrt(variance + epsilon) * gamma
 * + beta. Root-mean-square normalization: the same without the mean. Sums are in double, in the 16 lanes of
 * kernels/elementwise/float_rows.h. The rest is in float; the last product and sum are one fused
 * multiply-add. */
#ifndef DQ_OPS_ROW_NORM_H
#define DQ_OPS_ROW_NORM_H

#include "ops/op.h"

typedef struct dq_row_norm {
    double epsilon;
    bool centre;               /* subtract the mean: layer normalization */
    size_t n;                  /* elements of a row */
    const float *gamma, *beta; /* n elements each, or one if `broadcast`; NULL: none */
    bool broadcast;
} dq_row_norm;

typedef struct dq_row_stats {
    double mean, inverse; /* inverse: 1 / standard deviation, or 1 / root mean square */
} dq_row_stats;

/** Sum of the squared differences from `mean`. */
double dq_row_squares(const dq_op_call *call, double mean, const float *x, size_t n);
/** Measures a row. The mean is that of the row even if it is not subtracted. */
dq_row_stats dq_row_measure(const dq_op_call *call, const dq_row_norm *norm, const float *x);
/** Normalizes norm->n elements, a row or a part of one, by given statistics; y may be x. */
void dq_row_apply(const dq_op_call *call, const dq_row_norm *norm, const dq_row_stats *stats, const float *x,
                  float *y);
/** Measures and normalizes a row; y may be x. */
dq_row_stats dq_row_normalize(const dq_op_call *call, const dq_row_norm *norm, const float *x, float *y);

/** Fills the statistics outputs first … end - 1 with NaN, for rows of no elements, which have no mean. */
void dq_row_stats_fill_nan(const dq_op_call *call, uint32_t first, uint32_t end);

/** Returns a whole input as floats: its own data, or `to` (t->count floats), into which it is converted. */
const float *dq_row_floats(const dq_op_call *call, const dq_tensor *t, float *to);

#endif
