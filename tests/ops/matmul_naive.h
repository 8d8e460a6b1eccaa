/* SPDX-License-Identifier: Apache-2.0 */
/* Random matrix products for tests, and the formula written out: one element at a time, in 64-bit integers.
 */
#ifndef DQ_TESTS_OPS_MATMUL_NAIVE_H
#define DQ_TESTS_OPS_MATMUL_NAIVE_H

#include "harness.h"

/** The next number of a fixed sequence (xorshift), below n. */
uint32_t naive_random(uint64_t *state, uint32_t n);

/** Shapes of a product: batch axes of a and b (0 or 1 to 2), m, k, n; vectors have rank 1. */
typedef struct naive_shape {
    size_t rank_a, rank_b, rank_y;
    int64_t a[DQ_MAX_RANK], b[DQ_MAX_RANK], y[DQ_MAX_RANK];
    int64_t m, k, n;
} naive_shape;

naive_shape naive_random_shape(uint64_t *state);

/** Adds integers of the full range as an input. */
dq_tensor *naive_qvalues(ops_case *c, uint64_t *state, dq_dtype dtype, size_t rank, const int64_t *dims);
/** A shape that scales and zero points of a's rows (or b's columns) may have: one element, a vector, or as
 * many axes as the operand with some of them 1. Returns its rank. */
size_t naive_param_shape(uint64_t *state, const naive_shape *s, bool rows, int64_t dims[DQ_MAX_RANK]);

/** Where the parts of a result element are: its index on each axis of y, the first element of its row of a
 * and of its column of b (whose elements are n apart). */
typedef struct naive_place {
    int64_t at[DQ_MAX_RANK];
    size_t a, b;
} naive_place;

naive_place naive_find(const naive_shape *s, size_t i);
/** The element of such a parameter for the result element at this index. */
size_t naive_param_index(const dq_tensor *param, const naive_shape *s, bool rows, const int64_t *at);
/** sum (a - za)(b - zb) of the result's element number i; zero points may be NULL. */
int64_t naive_sum(const naive_shape *s, const dq_tensor *a, const dq_tensor *za, const dq_tensor *b,
                  const dq_tensor *zb, size_t i);

#endif
