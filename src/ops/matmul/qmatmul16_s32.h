/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearMatMul16 of 8-bit operands by int32 sums, where int32 holds them whatever the operands' data.
 */
#ifndef DQ_OPS_QMATMUL16_S32_H
#define DQ_OPS_QMATMUL16_S32_H

#include "ops/matmul/int_matmul.h"

typedef struct dq_qmatmul16_s32 {
    dq_int_matmul mm;
} dq_qmatmul16_s32;

/** Whether it takes inputs of DQ_Q16_… with k products a sum: no bias, x, w and y of 8 bits (y: or float).
 */
bool dq_qmatmul16_s32_fits(const dq_op_call *call, size_t k);
/** Of a product of shape *s (`transposed`: w is [n, k]); *p stood in zeroed memory. */
dq_status dq_qmatmul16_s32_prepare(dq_op_call *call, const dq_matmul_shape *s, bool transposed,
                                   dq_qmatmul16_s32 *p, dq_error *err);
/** Quantized results are rounded once; floats are (float)sum * (float)(alpha * x_scale) * w_scale, each step
 * rounded to float, the two scales' product first. */
void dq_qmatmul16_s32_run(const dq_op_call *call, const dq_qmatmul16_s32 *p);

#endif
