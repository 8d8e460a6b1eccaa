/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products of 8-bit integer matrices into int32 sums: the part that MatMulInteger and QLinearMatMul
 * share. */
#ifndef DQ_OPS_INT_MATMUL_H
#define DQ_OPS_INT_MATMUL_H

#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/qparam.h"

typedef struct dq_int_matmul {
    dq_matmul_shape s;
    size_t m, batches; /* as computed: a batch of `a` on one `b` may be taken as one tall matrix */
    uint32_t a, b;     /* inputs */
    bool a_transposed, b_transposed; /* stand as [K, M] and [N, K]; for one matrix each */
    dq_qparam a_zero, b_zero;
    bool
        has_start; /* sums begin from int32 values, one a column: number column * start_step of input start */
    uint32_t start;
    size_t start_step;
    dq_qweights w;
    const void *packed; /* NULL: b is packed in each run, at the start of call->scratch */
    size_t block_rows, row_blocks, chunk, chunks;
    dq_qscratch layout;
} dq_int_matmul;

/** Rows row … row + rows - 1 and columns col … col + cols - 1 of a batch's sums: c[i * c_stride + j]. */
typedef struct dq_int_sums {
    const dq_int_matmul *mm;
    const dq_op_call *call;
    size_t batch, row, rows, col, cols, c_stride;
    const int32_t *c;
} dq_int_sums;
typedef void dq_int_sums_fn(const dq_int_sums *sums);

/** Shapes, and the zero points' (inputs a_zero and b_zero): for infer, and first thing in prepare. */
dq_status dq_int_matmul_infer(const dq_op_call *call, uint32_t a, uint32_t b, uint32_t a_zero,
                              uint32_t b_zero, dq_int_matmul *mm, dq_error *err);
/** The rest of *mm, which stood in zeroed memory. `same_rows`: what the operator does with a sum does not
 * depend on its row. Asks for scratch. */
dq_status dq_int_matmul_prepare(dq_op_call *call, bool same_rows, dq_int_matmul *mm, dq_error *err);
/** Computes all sums, in pieces on any thread, each handed to `store`. */
void dq_int_matmul_run(const dq_op_call *call, const dq_int_matmul *mm, dq_int_sums_fn *store);

#endif
