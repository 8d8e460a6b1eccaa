/* SPDX-License-Identifier: Apache-2.0 */
/* Products of strided float matrices, for MatMul and Gemm: C = clamp(alpha · A · B + z). */
#ifndef DQ_OPS_MATMUL_F32_H
#define DQ_OPS_MATMUL_F32_H

#include "ops/algorithm.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_matmul_f32 {
    size_t batches, m, n, k;
    /* Strides in elements: A(i, p) is a[i * a_row + p * a_step], B(p, j) is b[j * b_col + p * b_step]. */
    size_t a_row, a_step, b_col, b_step;
    float alpha;
    dq_bounds bounds;
    bool z_stride; /* dq_matmul_f32_operands.z_row will not be 0 */
    /* Set by dq_matmul_f32_prepare: */
    uint32_t b; /* input number of B */
    dq_gemm_f32 product;
    const float *panels; /* constant B, packed; else NULL */
    const dq_algorithm *algorithm;
    bool swapped; /* computes the transpose, Bᵀ · Aᵀ: sizes and strides of A and B are exchanged */
} dq_matmul_f32;

typedef struct dq_matmul_f32_operands {
    const float *a, *b;
    float *c;       /* contiguous m × n matrices */
    const float *z; /* NULL: no z */
    size_t z_row;   /* z(i, j) is z[i * z_row + j], the same in all batches; if n is 1, z_row is 0 or 1 */
    /* Sets the offsets in elements of matrix `batch` of A and of B; NULL: there is only one. */
    void (*offsets)(const void *arg, size_t batch, size_t *a, size_t *b);
    const void *arg;
} dq_matmul_f32_operands;

/** Chooses the algorithm, packs a constant B and reserves scratch. `b` is the input number of B. */
dq_status dq_matmul_f32_prepare(dq_op_call *call, uint32_t b, dq_matmul_f32 *f, dq_error *err);
void dq_matmul_f32_run(const dq_op_call *call, const dq_matmul_f32 *f, const dq_matmul_f32_operands *o);

#endif
