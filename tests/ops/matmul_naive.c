/* SPDX-License-Identifier: Apache-2.0 */
#include "matmul_naive.h"

#include <string.h>

uint32_t naive_random(uint64_t *state, uint32_t n)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 32) % n);
}

naive_shape naive_random_shape(uint64_t *state)
{
    naive_shape s = {.m = naive_random(state, 9), .k = naive_random(state, 40), .n = naive_random(state, 40)};
    if (naive_random(state, 8) == 0)
        s.m += 70; /* several blocks of rows */
    size_t batch = naive_random(state, 4) ? naive_random(state, 3) : 0;
    size_t lead_a = naive_random(state, (uint32_t)batch + 1),
           lead_b = lead_a ? 0 : naive_random(state, (uint32_t)batch + 1);
    for (size_t i = 0; i < batch; i++) {
        int64_t dim = 1 + naive_random(state, 3);
        bool in_a = i >= lead_a, in_b = i >= lead_b;
        bool one_a = in_b && naive_random(state, 3) == 0,
             one_b = in_a && !one_a && naive_random(state, 3) == 0;
        if (in_a)
            s.a[s.rank_a++] = one_a ? 1 : dim;
        if (in_b)
            s.b[s.rank_b++] = one_b ? 1 : dim;
        s.y[s.rank_y++] = (in_a && !one_a) || (in_b && !one_b) ? dim : 1;
    }
    bool vector_a = s.rank_a == 0 && naive_random(state, 6) == 0;
    bool vector_b = s.rank_b == 0 && naive_random(state, 6) == 0;
    if (vector_a)
        s.m = 1;
    else
        s.a[s.rank_a++] = s.y[s.rank_y++] = s.m;
    if (vector_b)
        s.n = 1;
    else
        s.y[s.rank_y++] = s.n;
    s.a[s.rank_a++] = s.b[s.rank_b++] = s.k;
    if (!vector_b)
        s.b[s.rank_b++] = s.n;
    return s;
}

dq_tensor *naive_qvalues(ops_case *c, uint64_t *state, dq_dtype dtype, size_t rank, const int64_t *dims)
{
    dq_tensor *t = ops_in(c, dtype, rank, dims, NULL);
    for (size_t i = 0; i < t->size; i++)
        ((uint8_t *)t->data)[i] = (uint8_t)naive_random(state, 256);
    return t;
}

size_t naive_param_shape(uint64_t *state, const naive_shape *s, bool rows, int64_t dims[DQ_MAX_RANK])
{
    size_t rank = rows ? s->rank_a : s->rank_b;
    const int64_t *of = rows ? s->a : s->b;
    uint32_t kind = naive_random(state, rank < 2 ? 2 : 4);
    dims[0] = kind == 1 ? 1 : rows ? s->m : s->n;
    if (kind < 2)
        return kind;
    if (kind == 2)
        return 1;
    for (size_t i = 0; i < rank; i++)
        dims[i] = i + 2 < rank && naive_random(state, 3) == 0 ? 1 : of[i];
    dims[rank - (rows ? 1 : 2)] = 1;
    return rank;
}

/* Index on axis `axis` of y, of element `at`: vectors have no axis of their own there. */
static int64_t matrix_index(const naive_shape *s, bool row, const int64_t *at)
{
    bool vector_a = s->rank_a == 1, vector_b = s->rank_b == 1;
    if (row)
        return vector_a ? 0 : at[s->rank_y - (vector_b ? 1 : 2)];
    return vector_b ? 0 : at[s->rank_y - 1];
}

/* Number of the matrix of an operand with `rank` axes `dims`. */
static size_t batch_index(const naive_shape *s, size_t rank, const int64_t *dims, const int64_t *at)
{
    size_t batch_y = s->rank_y - (s->rank_a > 1) - (s->rank_b > 1), own = rank > 2 ? rank - 2 : 0, index = 0;
    for (size_t i = 0; i < own; i++) {
        int64_t place = dims[i] == 1 ? 0 : at[batch_y - own + i];
        index = index * (size_t)dims[i] + (size_t)place;
    }
    return index;
}

size_t naive_param_index(const dq_tensor *param, const naive_shape *s, bool rows, const int64_t *at)
{
    if (param->count == 1)
        return 0;
    size_t place = (size_t)matrix_index(s, rows, at);
    if (param->rank == 1)
        return place;
    return batch_index(s, param->rank, param->dims, at) * (size_t)(rows ? s->m : s->n) + place;
}

naive_place naive_find(const naive_shape *s, size_t i)
{
    naive_place p;
    for (size_t axis = s->rank_y; axis-- > 0; i /= (size_t)s->y[axis])
        p.at[axis] = (int64_t)(i % (size_t)s->y[axis]);
    size_t row = (size_t)matrix_index(s, true, p.at), col = (size_t)matrix_index(s, false, p.at);
    p.a = (batch_index(s, s->rank_a, s->a, p.at) * (size_t)s->m + row) * (size_t)s->k;
    p.b = batch_index(s, s->rank_b, s->b, p.at) * (size_t)s->k * (size_t)s->n + col;
    return p;
}

int64_t naive_sum(const naive_shape *s, const dq_tensor *a, const dq_tensor *za, const dq_tensor *b,
                  const dq_tensor *zb, size_t i)
{
    naive_place p = naive_find(s, i);
    int64_t zero_a = za ? dq_tensor_get_int(za, naive_param_index(za, s, true, p.at)) : 0;
    int64_t zero_b = zb ? dq_tensor_get_int(zb, naive_param_index(zb, s, false, p.at)) : 0;
    int64_t sum = 0;
    for (size_t k = 0; k < (size_t)s->k; k++)
        sum += (dq_tensor_get_int(a, p.a + k) - zero_a) *
               (dq_tensor_get_int(b, p.b + k * (size_t)s->n) - zero_b);
    return sum;
}
