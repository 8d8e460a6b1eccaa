/* SPDX-License-Identifier: Apache-2.0 */
/* Shape inference of matrix products by the rules of numpy.matmul, for all operators that multiply matrices.
 * The last two axes are a matrix; the others are batch axes, which broadcast. A vector is a row on the left
 * and a column on the right; the axis of length 1 that this adds is removed from the result. */
#ifndef DQ_OPS_MATMUL_SHAPE_H
#define DQ_OPS_MATMUL_SHAPE_H

#include "ops/op.h"

typedef struct dq_matmul_shape {
    size_t m, k, n;
    size_t batches, a_batches, b_batches; /* matrices of the result and of each operand */
    size_t batch_rank;
    int64_t batch_dims[DQ_MAX_RANK];
    size_t a_strides[DQ_MAX_RANK], b_strides[DQ_MAX_RANK]; /* over batch_dims, in matrices; 0: broadcast */
    bool a_vector, b_vector;
    size_t rank; /* of the result */
    int64_t dims[DQ_MAX_RANK];
} dq_matmul_shape;

/** Infers the shape of the product of inputs number a and b. Error messages name the input at fault. */
dq_status dq_matmul_shape_infer(const dq_op_call *call, uint32_t a, uint32_t b, dq_matmul_shape *out,
                                dq_error *err);
/** The same for operands whose axes are permuted first: `ta` and `tb` have the permuted dims. */
dq_status dq_matmul_shape_of(const dq_op_call *call, uint32_t a, uint32_t b, const dq_tensor *ta,
                             const dq_tensor *tb, dq_matmul_shape *out, dq_error *err);

/** Offset of matrix number `batch` of the result in an operand, from its strides over s->batch_dims. */
size_t dq_matmul_offset(const dq_matmul_shape *s, size_t batch, const size_t strides[DQ_MAX_RANK]);

#endif
