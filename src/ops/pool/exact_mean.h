/* SPDX-License-Identifier: Apache-2.0 */
/* Exact means of quantized values over windows: the real-number formula sum * x_scale / (count * y_scale),
 * rounded once. Sums are integers held in floats. */
#ifndef DQ_OPS_EXACT_MEAN_H
#define DQ_OPS_EXACT_MEAN_H

#include "ops/quantize/exact_ratio.h"

/** Maximum elements of a window. A sum of more elements could exceed the integers that float represents. */
enum { DQ_EXACT_MEAN_ELEMENTS = 1 << 16 };

typedef struct dq_exact_mean {
    const dq_ratio *ratios;   /* exact ratio x_scale / (count * y_scale), by count of elements */
    const float *multipliers; /* by count: float that rounds as the ratio does; NaN for count 0 */
    const bool *has_float;    /* by count: such a float exists */
    bool all_floats;          /* has_float is true for all counts that occur */
} dq_exact_mean;

/** Prepares means for each count up to `most` for which `occurs` is true. Allocates in call->arena. */
dq_status dq_exact_mean_prepare(const dq_op_call *call, const dq_q8 *x, const dq_q8 *y, const bool *occurs,
                                size_t most, dq_exact_mean *mean, dq_error *err);
/** Converts n sums of `count` elements each to multiples of y_scale, in place. They round to the quantized
 * results before the zero point is added. */
void dq_exact_mean_apply(const dq_exact_mean *mean, size_t count, float *sums, size_t n);

#endif
