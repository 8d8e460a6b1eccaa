/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearMatMul16 of 8-bit operands as an 8-bit GEMM with int32 accumulators, if they cannot overflow
 * for any data. */
#ifndef DQ_OPS_QMATMUL16_S32_H
#define DQ_OPS_QMATMUL16_S32_H

#include "ops/matmul/int_matmul.h"

typedef struct dq_qmatmul16_s32 {
    dq_int_matmul mm;
} dq_qmatmul16_s32;

/** Whether it is applicable to inputs DQ_Q16_… with k products in each sum. x and w must have 8 bits, y 8
 * bits or float, and the bias must be omitted. */
bool dq_qmatmul16_s32_fits(const dq_op_call *call, size_t k);
/** Prepares a product of shape *s (`transposed`: w is [n, k]). *p must be in zeroed memory. */
dq_status dq_qmatmul16_s32_prepare(dq_op_call *call, const dq_matmul_shape *s, bool transposed,
                                   dq_qmatmul16_s32 *p, dq_error *err);
/** Quantized results are rounded once. Float results are (float)sum * ((float)(alpha * x_scale) * w_scale),
 * each operation rounded to float. */
void dq_qmatmul16_s32_run(const dq_op_call *call, const dq_qmatmul16_s32 *p);

#endif
