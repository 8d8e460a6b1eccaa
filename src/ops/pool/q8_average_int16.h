/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAveragePool over two spatial axes in NCHW, with sums of quantized values in int16.
 *
 *   input rows  --sum_rows-->  sums over the window's rows  --means-->  quantized means  -->  output rows
 *
 * An integer sum s of `count` elements has the mean s * x_scale / (count * y_scale). com.microsoft's operator
 * adds floats instead, and each operation rounds; `margin` is a bound of these errors. Where mean - margin
 * and mean + margin round to the same integer, the operator gives that integer, too. Outputs near a tie,
 * where they do not, are computed again in float. */
#ifndef DQ_OPS_Q8_AVERAGE_INT16_H
#define DQ_OPS_Q8_AVERAGE_INT16_H

#include "ops/pool/exact_mean.h"
#include "ops/pool/q8_window.h"

/** Elements of an axis inside the input, for one output position. */
typedef struct dq_window_range {
    size_t first, count;
} dq_window_range;

typedef struct dq_average_int16 {
    const dq_q8_window *shape;
    const dq_kernels *kernels;
    dq_q8 x, y;
    const dq_window_range *rows, *columns; /* by output position */
    size_t left, shown; /* padding in front of a row of sums, and elements of an input row after it */
    size_t pitch;       /* elements of a row of sums */
    size_t band;        /* output rows computed at a time, so that their sums stay in L1 */
    size_t sums, means; /* elements of a band's buffers, rounded up to DQ_AVERAGE_STEP */
    const float
        *multipliers;  /* of the output in row r and column c at r * pitch + c * stride; others are 0 */
    float margin;      /* 0: the multipliers are exact */
    const float *real; /* for a margin: a quantized byte's real value */
} dq_average_int16;

/** Prepares *a and reserves worker scratch if sums in int16 apply, and at most a share `max_share` of the
 * outputs is expected near a tie; else sets *applies to false. `exact` has the multipliers of
 * dqrun's operator, whose results are exact; NULL: com.microsoft's. */
dq_status dq_average_int16_prepare(dq_op_call *call, const dq_q8_window *shape, const dq_exact_mean *exact,
                                   double max_share, dq_average_int16 *a, bool *applies, dq_error *err);
/** Computes planes begin … end - 1 of x. `scratch` is a worker's. */
void dq_average_int16_planes(const dq_average_int16 *a, const uint8_t *x, size_t begin, size_t end,
                             void *scratch, uint8_t *out);

#endif
