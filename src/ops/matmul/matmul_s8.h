/* SPDX-License-Identifier: Apache-2.0 */
/* How 8-bit matrix products are computed: the choice from the algorithm table matmul_s8. */
#ifndef DQ_OPS_MATMUL_S8_H
#define DQ_OPS_MATMUL_S8_H

#include "ops/matmul/gemm_s8_blocks.h"

/** Fills in kernel and b.use of weights whose cols, runs and run are set, by the row of the lowest cost, and
 * records the row as the step's algorithm. The weights are input `b`, the right operand; the left one has
 * `rows` rows of type `a`. DQ_INVALID_ARGUMENT: a row is forced that is not applicable. */
dq_status dq_matmul_s8_choose(dq_op_call *call, dq_qweights *w, uint32_t b, size_t rows, dq_dtype a,
                              dq_error *err);
/** The same for a product that is part of another algorithm: no row can be forced, and none is recorded. */
void dq_matmul_s8_use(const dq_op_call *call, dq_qweights *w, uint32_t b, size_t rows, dq_dtype a);

#endif
