/* SPDX-License-Identifier: Apache-2.0 */
/* Batched products of 8-bit integer matrices into int32 sums, shared by MatMulInteger, QLinearMatMul and
 * their variants. */
#ifndef DQ_OPS_INT_MATMUL_H
#define DQ_OPS_INT_MATMUL_H

#include "ops/matmul/gemm_s8_blocks.h"
#include "ops/qparam.h"

typedef struct dq_int_matmul {
    dq_matmul_shape s;
    size_t m, batches; /* as computed: a batch of `a` with a single `b` may become one matrix of all rows */
    uint32_t a, b;     /* input numbers */
    bool a_transposed, b_transposed; /* stored as [K, M] and [N, K]; only for one matrix each */
    dq_qparam a_zero, b_zero;
    /* The sum of column j begins with int32 element j * start_step of input `start`, if has_start. */
    bool has_start;
    uint32_t start;
    size_t start_step;
    dq_qweights w;
    const void *packed; /* NULL: b is packed in each run, at the start of call->scratch */
    /* Rows of a block, blocks of a matrix; panels of a task, tasks along the columns. */
    size_t block_rows, row_blocks, chunk, chunks;
    dq_qscratch layout;
} dq_int_matmul;

/** A block of finished sums: rows row … row + rows - 1 and columns col … col + cols - 1 of matrix `batch`.
 * Sum (i, j) of the block is c[i * c_stride + j]. */
typedef struct dq_int_sums {
    const dq_int_matmul *mm;
    const dq_op_call *call;
    size_t batch, row, rows, col, cols, c_stride;
    const int32_t *c;
} dq_int_sums;
typedef void dq_int_sums_fn(const dq_int_sums *sums);

/** Infers the shapes of the product and of the zero points (inputs a_zero and b_zero), and checks them. For
 * infer, and first in prepare. */
dq_status dq_int_matmul_infer(const dq_op_call *call, uint32_t a, uint32_t b, uint32_t a_zero,
                              uint32_t b_zero, dq_int_matmul *mm, dq_error *err);
/** Sets the rest of *mm, which must be in zeroed memory, and the scratch sizes of the call. `same_rows`: the
 * operator's epilogue does not depend on the row of a sum. */
dq_status dq_int_matmul_prepare(dq_op_call *call, bool same_rows, dq_int_matmul *mm, dq_error *err);
/** Computes all sums and calls `store` for each block of them, on the thread that computed it. */
void dq_int_matmul_run(const dq_op_call *call, const dq_int_matmul *mm, dq_int_sums_fn *store);
/** The same for a result of sums: most of them are written to y directly, and `store` gets the others. */
void dq_int_matmul_run_s32(const dq_op_call *call, const dq_int_matmul *mm, int32_t *y,
                           dq_int_sums_fn *store);

#endif
