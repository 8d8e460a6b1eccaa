/* SPDX-License-Identifier: Apache-2.0 */
/* Means of quantized values under windows, as the real-number formula has them: sum * x_scale / (count *
 * y_scale), rounded once. Sums are integers in floats. */
#ifndef DQ_OPS_EXACT_MEAN_H
#define DQ_OPS_EXACT_MEAN_H

#include "ops/quantize/exact_ratio.h"

/** More elements could make a sum that float does not hold. */
enum { DQ_EXACT_MEAN_ELEMENTS = 1 << 16 };

typedef struct dq_exact_mean {
    const dq_ratio *ratios;   /* by number of elements */
    const float *multipliers; /* that round as the ratios do; of 0 elements NaN, as their mean is */
    const bool *has_float;    /* whether there is such a multiplier */
    bool all_floats;          /* of the numbers of elements that occur */
} dq_exact_mean;

/** Prepares means of `occurs` (by number of elements, up to `most`) elements, in the call's arena. */
dq_status dq_exact_mean_prepare(const dq_op_call *call, const dq_q8 *x, const dq_q8 *y, const bool *occurs,
                                size_t most, dq_exact_mean *mean, dq_error *err);
/** Makes n sums of `count` elements each multiples of y_scale, which round to the results without the zero
 * point. */
void dq_exact_mean_apply(const dq_exact_mean *mean, size_t count, float *sums, size_t n);

#endif
