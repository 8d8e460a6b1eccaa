/* SPDX-License-Identifier: Apache-2.0 */
/* Shape arithmetic: axes, broadcasting, strides. */
#ifndef DQ_TENSOR_SHAPE_H
#define DQ_TENSOR_SHAPE_H

#include "tensor/tensor.h"

/** Brings an axis of [-rank, rank-1] into [0, rank-1]; false when it is outside. */
bool dq_axis(int64_t axis, size_t rank, size_t *out);

/** Product of dims[from … to-1]; 1 for an empty range. The caller's tensor has proven that it fits. */
size_t dq_dims_product(const int64_t *dims, size_t from, size_t to);

/** Row-major strides in elements. */
void dq_strides(size_t rank, const int64_t *dims, size_t strides[DQ_MAX_RANK]);

/** NumPy broadcasting of two shapes; false when they do not match. The result's rank is the larger.
 * `dims` may be `a` or `b`. */
bool dq_broadcast(size_t rank_a, const int64_t *a, size_t rank_b, const int64_t *b, size_t *rank,
                  int64_t dims[DQ_MAX_RANK]);

/** Strides in elements of `t` seen as an operand of a result of shape (rank, dims): 0 along broadcast axes.
 */
void dq_broadcast_strides(const dq_tensor *t, size_t rank, const int64_t *dims, size_t strides[DQ_MAX_RANK]);

#endif
