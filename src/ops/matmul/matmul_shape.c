/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/matmul/matmul_shape.h"

#include <inttypes.h>
#include <string.h>

/* Strides of an operand's batch over the result's, in matrices. */
static void batch_strides(const dq_tensor *t, const dq_matmul_shape *s, size_t strides[DQ_MAX_RANK])
{
    size_t own = t->rank > 2 ? t->rank - 2 : 0, lead = s->batch_rank - own, step = 1;
    for (size_t i = s->batch_rank; i-- > 0;) {
        int64_t dim = i < lead ? 1 : t->dims[i - lead];
        strides[i] = dim == 1 ? 0 : step;
        step *= (size_t)dim;
    }
}

static dq_status broadcast_batches(const dq_op_call *call, uint32_t b, const dq_tensor *ta,
                                   const dq_tensor *tb, dq_matmul_shape *s, dq_error *err)
{
    size_t ra = ta->rank > 2 ? ta->rank - 2 : 0, rb = tb->rank > 2 ? tb->rank - 2 : 0;
    char text_a[DQ_SHAPE_TEXT], text_b[DQ_SHAPE_TEXT];
    if (!dq_broadcast(ra, ta->dims, rb, tb->dims, &s->batch_rank, s->batch_dims))
        return dq_call_fail_input(
            call, err, b,
            "has shape %s, whose batch axes do not broadcast with those of the other operand, %s",
            dq_shape_text(tb->rank, tb->dims, text_b), dq_shape_text(ta->rank, ta->dims, text_a));
    s->a_batches = dq_dims_product(ta->dims, 0, ra);
    s->b_batches = dq_dims_product(tb->dims, 0, rb);
    batch_strides(ta, s, s->a_strides);
    batch_strides(tb, s, s->b_strides);
    return DQ_OK;
}

dq_status dq_matmul_shape_infer(const dq_op_call *call, uint32_t a, uint32_t b, dq_matmul_shape *s,
                                dq_error *err)
{
    return dq_matmul_shape_of(call, a, b, call->in[a], call->in[b], s, err);
}

dq_status dq_matmul_shape_of(const dq_op_call *call, uint32_t a, uint32_t b, const dq_tensor *ta,
                             const dq_tensor *tb, dq_matmul_shape *s, dq_error *err)
{
    memset(s, 0, sizeof *s);
    if (ta->rank == 0)
        return dq_call_fail_input(call, err, a, "is a scalar, expected a vector, a matrix or more axes");
    if (tb->rank == 0)
        return dq_call_fail_input(call, err, b, "is a scalar, expected a vector, a matrix or more axes");
    s->a_vector = ta->rank == 1;
    s->b_vector = tb->rank == 1;
    int64_t k = ta->dims[ta->rank - 1], kb = tb->dims[s->b_vector ? 0 : tb->rank - 2];
    if (k != kb)
        return dq_call_fail_input(
            call, err, b, "has %" PRId64 " rows, expected %" PRId64 " as the other operand has columns", kb,
            k);
    s->m = s->a_vector ? 1 : (size_t)ta->dims[ta->rank - 2];
    s->n = s->b_vector ? 1 : (size_t)tb->dims[tb->rank - 1];
    s->k = (size_t)k;
    DQ_TRY(broadcast_batches(call, b, ta, tb, s, err));
    s->rank = s->batch_rank;
    memcpy(s->dims, s->batch_dims, sizeof s->dims);
    if (!s->a_vector)
        s->dims[s->rank++] = (int64_t)s->m;
    if (!s->b_vector)
        s->dims[s->rank++] = (int64_t)s->n;
    /* The sizes above come from existing tensors; dq_call_output checks those of the result. */
    s->batches = 1;
    for (size_t i = 0; i < s->batch_rank; i++)
        s->batches *= (size_t)s->batch_dims[i];
    return DQ_OK;
}

size_t dq_matmul_offset(const dq_matmul_shape *s, size_t batch, const size_t strides[DQ_MAX_RANK])
{
    size_t offset = 0;
    for (size_t i = s->batch_rank; i-- > 0; batch /= (size_t)s->batch_dims[i])
        offset += batch % (size_t)s->batch_dims[i] * strides[i];
    return offset;
}
