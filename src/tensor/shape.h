/* SPDX-License-Identifier: Apache-2.0 */
/* Shape arithmetic: axes, broadcasting, strides. */
#ifndef DQ_TENSOR_SHAPE_H
#define DQ_TENSOR_SHAPE_H

#include "tensor/tensor.h"

/** Converts an axis of [-rank, rank-1] to [0, rank-1]. Returns false when it is out of range. */
bool dq_axis(int64_t axis, size_t rank, size_t *out);

/** Product of dims[from … to-1]; 1 for an empty range. It cannot overflow for the dims of a valid tensor. */
size_t dq_dims_product(const int64_t *dims, size_t from, size_t to);

/** Computes row-major strides in elements. */
void dq_strides(size_t rank, const int64_t *dims, size_t strides[DQ_MAX_RANK]);

/** Broadcasts two shapes by NumPy's rule; false when they are incompatible. The result's rank is the larger
 * one. `dims` may be `a` or `b`. */
bool dq_broadcast(size_t rank_a, const int64_t *a, size_t rank_b, const int64_t *b, size_t *rank,
                  int64_t dims[DQ_MAX_RANK]);

/** Computes the strides in elements of `t` as an operand of a result of shape (rank, dims): 0 along broadcast
 * axes. */
void dq_broadcast_strides(const dq_tensor *t, size_t rank, const int64_t *dims, size_t strides[DQ_MAX_RANK]);

#endif
