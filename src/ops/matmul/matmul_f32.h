/* SPDX-License-Identifier: Apache-2.0 */
/* Products of plain float matrices, for MatMul and Gemm: C = clamp(alpha · A · B + z). */
#ifndef DQ_OPS_MATMUL_F32_H
#define DQ_OPS_MATMUL_F32_H

#include "ops/algorithm.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_matmul_f32 {
    size_t batches, m, n, k;
    size_t a_row, a_step, b_col, b_step; /* strides in elements: row i, step p; column j, step p */
    float alpha;
    dq_bounds bounds;
    bool z_stride; /* z_row will not be 0 */
    /* by dq_matmul_f32_prepare */
    uint32_t b; /* the input */
    dq_gemm_f32 product;
    const float *panels; /* B, when it is constant and serves several rows */
    const dq_algorithm *algorithm;
    bool swapped; /* A and B have changed places, and sizes and strides with them */
} dq_matmul_f32;

typedef struct dq_matmul_f32_operands {
    const float *a, *b;
    float *c; /* matrices of m by n, one after the other */
    const float *z;
    size_t z_row; /* z[i * z_row + j], the same for all batches; of one column 0 or 1 */
    /* Where the matrices of a batch begin; NULL: there is only one. */
    void (*offsets)(const void *arg, size_t batch, size_t *a, size_t *b);
    const void *arg;
} dq_matmul_f32_operands;

/** `b`: the number of input B. */
dq_status dq_matmul_f32_prepare(dq_op_call *call, uint32_t b, dq_matmul_f32 *f, dq_error *err);
void dq_matmul_f32_run(const dq_op_call *call, const dq_matmul_f32 *f, const dq_matmul_f32_operands *o);

#endif
