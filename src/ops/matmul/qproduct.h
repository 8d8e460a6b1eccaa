/* SPDX-License-Identifier: Apache-2.0 */
/* Products of rows of uint8 codes with packed 8-bit weights, for operators that make the codes while they run
 * (a recurrent network quantizes its state at every step). */
#ifndef DQ_OPS_QPRODUCT_H
#define DQ_OPS_QPRODUCT_H

#include "ops/matmul/gemm_s8_blocks.h"

typedef struct dq_qproduct {
    dq_qweights w;
    uint32_t input;     /* the weights: [matrices, k, n] or, of one matrix, [k, n] */
    const void *packed; /* NULL: dq_qweights_ready packs in each run */
    size_t block_rows, chunk, chunks;
    dq_qscratch layout;
} dq_qproduct;

/** Columns col … col + cols - 1 of rows row … row + rows - 1: c[i * c_stride + j]. On any thread. */
typedef void dq_qproduct_store_fn(void *arg, size_t row, size_t rows, size_t col, size_t cols,
                                  const int32_t *c, size_t c_stride);

/** Input `input`: matrices of k rows and n columns, or `transposed`, [n, k]. */
typedef struct dq_qproduct_weights {
    uint32_t input;
    bool transposed;
    size_t matrices, k, n;
    size_t row_multiple; /* so many rows are stored at once, from a multiple of it on; 0: any */
} dq_qproduct_weights;

/** Fills in *p, which stood in zeroed memory, for runs of up to `rows` rows; raises call->worker_scratch_size
 * to what it needs. */
dq_status dq_qproduct_prepare(dq_op_call *call, const dq_qproduct_weights *weights, size_t rows,
                              dq_qproduct *p, dq_error *err);
/** The sums of the columns of constant weights, as the kernel's sign has these. */
static inline const int32_t *dq_qproduct_sums(const dq_qproduct *p)
{
    return (const int32_t *)(const void *)((const char *)p->packed + p->w.sums_offset);
}

/** Makes quantized codes (uint8) as the kernel wants them, in place. */
void dq_qproduct_sign_xor(const dq_qproduct *p, uint8_t *qvalues, size_t count);

/** Rows to be multiplied by a matrix of the weights. */
typedef struct dq_qproduct_rows {
    const void *packed;
    size_t matrix, rows;
    const uint8_t
        *qvalues; /* went through dq_qproduct_sign_xor; DQ_GEMM_S8_SLACK bytes may be read behind them */
    int32_t a_zero;
    const void *b_zero; /* of the weights' type: that of column j is number j * b_zero_step */
    size_t b_zero_step;
    dq_qproduct_store_fn *store;
    void *arg;
} dq_qproduct_rows;

/** Sums of (code - a_zero) * (weight - b_zero[j * b_zero_step]). */
void dq_qproduct_run(const dq_op_call *call, const dq_qproduct *p, const dq_qproduct_rows *rows);

#endif
