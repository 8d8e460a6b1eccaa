/* SPDX-License-Identifier: Apache-2.0 */
/* How 8-bit matrix products are computed: the choice from the algorithm table matmul_s8. */
#ifndef DQ_OPS_MATMUL_S8_H
#define DQ_OPS_MATMUL_S8_H

#include "ops/matmul/gemm_s8_blocks.h"

/** A of `rows` by k, of type `a`, times B of k by n. */
typedef struct dq_matmul_s8_problem {
    const dq_kernels *kernels;
    size_t rows, k, n;
    bool constant_b;
    dq_dtype a;
} dq_matmul_s8_problem;

/** Fills in kernel and b.use of weights whose cols, runs and run are set, by the row of the lowest cost, and
 * records the row as the step's algorithm. DQ_INVALID_ARGUMENT: a row is forced that is not applicable. */
dq_status dq_matmul_s8_choose(dq_op_call *call, const dq_matmul_s8_problem *problem, dq_qweights *w,
                              dq_error *err);
/** The same for a product that is part of another algorithm: no row can be forced, and none is recorded. */
void dq_matmul_s8_use(const dq_matmul_s8_problem *problem, dq_qweights *w);

#endif
