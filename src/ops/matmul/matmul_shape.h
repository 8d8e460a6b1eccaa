/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of matrix products as numpy.matmul has them, for all operators that multiply matrices: the last two
 * axes are a matrix, the others a batch that broadcasts; a vector on the left is a row, on the right a
 * column, and the axis it lent is taken from the result. */
#ifndef DQ_OPS_MATMUL_SHAPE_H
#define DQ_OPS_MATMUL_SHAPE_H

#include "ops/op.h"

typedef struct dq_matmul_shape {
    size_t m, k, n;
    size_t batches, a_batches, b_batches; /* matrices of the result and of each operand */
    size_t batch_rank;
    int64_t batch_dims[DQ_MAX_RANK];
    size_t a_strides[DQ_MAX_RANK], b_strides[DQ_MAX_RANK]; /* over batch_dims, in matrices; 0 where spread */
    bool a_vector, b_vector;
    size_t rank; /* of the result */
    int64_t dims[DQ_MAX_RANK];
} dq_matmul_shape;

/** The product's shape from the inputs' number a and b; sentences name the input at fault. */
dq_status dq_matmul_shape_infer(const dq_op_call *call, uint32_t a, uint32_t b, dq_matmul_shape *out,
                                dq_error *err);
/** The same where the operands stand in other orders of axes: `ta` and `tb` have the dims that count. */
dq_status dq_matmul_shape_of(const dq_op_call *call, uint32_t a, uint32_t b, const dq_tensor *ta,
                             const dq_tensor *tb, dq_matmul_shape *out, dq_error *err);

/** Offset of batch number `batch` under strides over s->batch_dims. */
size_t dq_matmul_offset(const dq_matmul_shape *s, size_t batch, const size_t strides[DQ_MAX_RANK]);

#endif
