/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the algorithm for 8-bit matrix products, from the table matmul_s8. */
#ifndef DQ_OPS_MATMUL_S8_H
#define DQ_OPS_MATMUL_S8_H

#include "ops/matmul/gemm_s8_blocks.h"

/** Sets kernel and b.use of `w` from the table row of the lowest cost, and records that row as the algorithm
 * of the step. b.cols, b.runs and b.run must be set. The weights are input `b`, the right operand; the left
 * operand has `rows` rows of type `a`. DQ_INVALID_ARGUMENT if the user forces a row that is not applicable.
 */
dq_status dq_matmul_s8_choose(dq_op_call *call, dq_qweights *w, uint32_t b, size_t rows, dq_dtype a,
                              dq_error *err);
/** The same for a product inside another algorithm: no row can be forced, and none is recorded. */
void dq_matmul_s8_use(const dq_op_call *call, dq_qweights *w, uint32_t b, size_t rows, dq_dtype a);

#endif
