/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products of matrices where an operand is float8: QLinearMatMul's arithmetic on values.
 *
 * A sum is the real-number sum of (a - za)(b - zb), rounded once to double: every float8 value, and every
 * 8-bit integer, is a whole multiple of 2^-17, so that the sum is carried as an integer. (Rounded once up to
 * 2^21 products; beyond that twice.) A sum with a NaN or an infinity in it is what IEEE arithmetic makes of
 * it. */
#ifndef DQ_OPS_MATMUL_FLOAT8_H
#define DQ_OPS_MATMUL_FLOAT8_H

#include "ops/qparam.h"

typedef struct dq_matmul_float8 {
    dq_matmul_shape s;
    uint32_t a, b;
    dq_qparam a_zero, b_zero;
    int64_t a_values[256], b_values[256]; /* of each code, in 2^-17; INT64_MIN: not finite */
    /* of a worker's scratch: */
    size_t sums_offset, row_offset, limbs_offset, zero_offset, flags_offset;
} dq_matmul_float8;

/** One row of the result: n sums. */
typedef void dq_float8_row_fn(const dq_op_call *call, const void *arg, size_t batch, size_t row,
                              double *sums);

/** Fills in all but s, a, b, a_zero and b_zero, and asks for scratch. */
dq_status dq_matmul_float8_prepare(dq_op_call *call, dq_matmul_float8 *mm, dq_error *err);
void dq_matmul_float8_run(const dq_op_call *call, const dq_matmul_float8 *mm, dq_float8_row_fn *store,
                          const void *arg);

#endif
