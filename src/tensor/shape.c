/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/shape.h"

bool dq_axis(int64_t axis, size_t rank, size_t *out)
{
    int64_t r = (int64_t)rank;
    if (axis < -r || axis >= r)
        return false;
    *out = (size_t)(axis < 0 ? axis + r : axis);
    return true;
}

size_t dq_dims_product(const int64_t *dims, size_t from, size_t to)
{
    size_t product = 1;
    for (size_t i = from; i < to; i++)
        product *= (size_t)dims[i];
    return product;
}

void dq_strides(size_t rank, const int64_t *dims, size_t strides[DQ_MAX_RANK])
{
    size_t step = 1;
    for (size_t i = rank; i-- > 0;) {
        strides[i] = step;
        step *= (size_t)dims[i];
    }
}

bool dq_broadcast(size_t rank_a, const int64_t *a, size_t rank_b, const int64_t *b, size_t *rank,
                  int64_t dims[DQ_MAX_RANK])
{
    size_t n = rank_a > rank_b ? rank_a : rank_b;
    for (size_t i = n; i-- > 0;) { /* backwards, so that `dims` may be one of the operands */
        int64_t da = i + rank_a >= n ? a[i + rank_a - n] : 1;
        int64_t db = i + rank_b >= n ? b[i + rank_b - n] : 1;
        if (da != db && da != 1 && db != 1)
            return false;
        dims[i] = da == 1 ? db : da;
    }
    *rank = n;
    return true;
}

void dq_broadcast_strides(const dq_tensor *t, size_t rank, const int64_t *dims, size_t strides[DQ_MAX_RANK])
{
    size_t own[DQ_MAX_RANK];
    dq_strides(t->rank, t->dims, own);
    size_t lead = rank - t->rank;
    for (size_t i = 0; i < rank; i++) {
        bool broadcast = i < lead || (t->dims[i - lead] == 1 && dims[i] != 1);
        strides[i] = broadcast ? 0 : own[i - lead];
    }
}
