/* SPDX-License-Identifier: Apache-2.0 */
/* Products of uint8 rows with packed 8-bit weights, for operators that compute the rows inside run. For
 * example, a recurrent network quantizes its state at each time step. */
#ifndef DQ_OPS_QPRODUCT_H
#define DQ_OPS_QPRODUCT_H

#include "ops/matmul/gemm_s8_blocks.h"

typedef struct dq_qproduct {
    dq_qweights w;
    uint32_t input;                   /* the weights: [matrices, k, n], or [k, n] for one matrix */
    const void *packed;               /* NULL: dq_qweights_ready packs in each run */
    size_t block_rows, chunk, chunks; /* rows of a block; panels of a task; tasks along the columns */
    dq_qscratch layout;
} dq_qproduct;

/** Callback: consumes the sums of rows row … row + rows - 1 and columns col … col + cols - 1. Sum (i, j) of
 * them is c[i * c_stride + j]. Called on any thread. */
typedef void dq_qproduct_store_fn(void *arg, size_t row, size_t rows, size_t col, size_t cols,
                                  const int32_t *c, size_t c_stride);

/** The weights: input `input`, as [k, n] matrices, or [n, k] if `transposed`. */
typedef struct dq_qproduct_weights {
    uint32_t input;
    bool transposed;
    size_t matrices, k, n;
    size_t row_multiple; /* `store` gets rows in multiples of it, from such a multiple on; 0: any */
    /* The weights have 16 bits, are constant, and are split into bytes. DQ_QPRODUCT_SPLIT columns of them
     * become as many columns of low bytes, then as many of high bytes, padded with zeros: `store` gets them
     * together. v, the weight as uint16 minus 32768, is 256 * high + low + 128 in int8. */
    bool split;
} dq_qproduct_weights;

enum { DQ_QPRODUCT_SPLIT = DQ_GEMM_S8_NR_MAX / 2 };

/** Sets *p, which must be in zeroed memory, for runs of up to `rows` rows. Raises call->worker_scratch_size
 * to the size that it needs. */
dq_status dq_qproduct_prepare(dq_op_call *call, const dq_qproduct_weights *weights, size_t rows,
                              dq_qproduct *p, dq_error *err);
/** Column sums of constant weights, as int8 (uint8 ones: after sign inversion; 16-bit ones: by byte). */
static inline const int32_t *dq_qproduct_sums(const dq_qproduct *p)
{
    return (const int32_t *)(const void *)((const char *)p->packed + p->w.sums_offset);
}

/** Gives uint8 rows the signedness that the kernel requires, in place. */
void dq_qproduct_sign_xor(const dq_qproduct *p, uint8_t *qvalues, size_t count);

/** The left operand of a product, and the matrix of weights that it is multiplied by. */
typedef struct dq_qproduct_rows {
    const void *packed;
    size_t matrix, rows;
    const uint8_t *qvalues; /* after dq_qproduct_sign_xor; DQ_GEMM_S8_SLACK bytes past them may be read */
    int32_t a_zero;
    const void *b_zero; /* in the type of the weights; element j * b_zero_step is that of column j */
    size_t b_zero_step;
    dq_qproduct_store_fn *store;
    void *arg;
} dq_qproduct_rows;

/** Computes the sums of (a - a_zero) * (weight - b_zero[j * b_zero_step]), with a the uint8 values before
 * dq_qproduct_sign_xor, and calls rows->store for each block of them. */
void dq_qproduct_run(const dq_op_call *call, const dq_qproduct *p, const dq_qproduct_rows *rows);

#endif
