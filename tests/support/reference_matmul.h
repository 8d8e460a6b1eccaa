/* SPDX-License-Identifier: Apache-2.0 */
/* The reference matrix product of all C tests: one result at a time, one product after the other. */
#ifndef DQ_TESTS_REFERENCE_MATMUL_H
#define DQ_TESTS_REFERENCE_MATMUL_H

#include "tensor/tensor.h"

/** A product a [batch…, m, k] by b [batch…, k, n] to y [batch…, m, n], as MatMul has it: batch axes
 * broadcast, and an operand of rank 1 is a vector. */
typedef struct ref_matmul {
    size_t rank_a, rank_b, rank_y;
    int64_t a[DQ_MAX_RANK], b[DQ_MAX_RANK], y[DQ_MAX_RANK];
    int64_t m, k, n;
    bool trans_a, trans_b; /* the matrices of a are stored as [k, m], those of b as [n, k] */
} ref_matmul;

/** The product of two matrices. */
ref_matmul ref_matmul_2d(int64_t m, int64_t k, int64_t n);
/** Returns a random product, of up to two batch axes. */
ref_matmul ref_matmul_random(uint64_t *state);
/** Writes a shape that scales and zero points of a's rows (or b's columns) may have: one element, a vector,
 * or as many axes as the operand with some of them 1. Returns its rank. */
size_t ref_matmul_param_dims(uint64_t *state, const ref_matmul *s, bool rows, int64_t dims[DQ_MAX_RANK]);

/** The operands of y[i]: the sum over k of a[a + k * a_step] * b[b + k * b_step]. */
typedef struct ref_matmul_terms {
    int64_t at[DQ_MAX_RANK]; /* the index of y[i] on each axis */
    size_t a, a_step, b, b_step;
} ref_matmul_terms;

ref_matmul_terms ref_matmul_find(const ref_matmul *s, size_t i);
/** The element of such a parameter for the result at this index. */
size_t ref_matmul_param_index(const dq_tensor *param, const ref_matmul *s, bool rows, const int64_t *at);

/** y[i] = sum (a - a_zero)(b - b_zero); zero points may be NULL. */
int64_t ref_matmul_integer(const ref_matmul *s, const dq_tensor *a, const dq_tensor *a_zero,
                           const dq_tensor *b, const dq_tensor *b_zero, size_t i);
/** y[i] as one chain of fused multiply-adds of floats, and as a sum of doubles. */
float ref_matmul_f32(const ref_matmul *s, const double *a, const double *b, size_t i);
double ref_matmul_f64(const ref_matmul *s, const double *a, const double *b, size_t i);

#endif
