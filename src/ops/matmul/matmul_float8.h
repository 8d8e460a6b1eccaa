/* SPDX-License-Identifier: Apache-2.0 */
/* Batched matrix products with at least one float8 operand, for QLinearMatMul.
 *
 * Each sum is the exact sum of (a - za)(b - zb) in real numbers, rounded once to double (twice above 2^21
 * products). Every float8 value and every 8-bit integer is an integer multiple of 2^-17. So sums are
 * accumulated exactly as integers in that unit. A sum with a NaN or an infinity follows IEEE 754. */
#ifndef DQ_OPS_MATMUL_FLOAT8_H
#define DQ_OPS_MATMUL_FLOAT8_H

#include "ops/qparam.h"

typedef struct dq_matmul_float8 {
    dq_matmul_shape s;
    uint32_t a, b;
    dq_qparam a_zero, b_zero;
    int64_t a_values[256],
        b_values[256]; /* of each quantized value, in units of 2^-17; INT64_MIN: not finite */
    /* Byte offsets in a worker's scratch: */
    size_t sums_offset, row_offset, limbs_offset, zero_offset, flags_offset;
} dq_matmul_float8;

/** Callback: consumes the n sums of row `row` of matrix `batch`. */
typedef void dq_float8_row_fn(const dq_op_call *call, const void *arg, size_t batch, size_t row,
                              double *sums);

/** Sets all fields but s, a, b, a_zero and b_zero, which the caller sets, and the worker scratch size. */
dq_status dq_matmul_float8_prepare(dq_op_call *call, dq_matmul_float8 *mm, dq_error *err);
void dq_matmul_float8_run(const dq_op_call *call, const dq_matmul_float8 *mm, dq_float8_row_fn *store,
                          const void *arg);

#endif
