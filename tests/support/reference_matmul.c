/* SPDX-License-Identifier: Apache-2.0 */
#include "support/reference_matmul.h"

#include "support/random.h"

#include <math.h>

ref_matmul ref_matmul_2d(int64_t m, int64_t k, int64_t n)
{
    return (ref_matmul){
        .rank_a = 2, .rank_b = 2, .rank_y = 2, .a = {m, k}, .b = {k, n}, .y = {m, n}, .m = m, .k = k, .n = n};
}

ref_matmul ref_matmul_random(uint64_t *state)
{
    ref_matmul s = {.m = random_below(state, 9), .k = random_below(state, 40), .n = random_below(state, 40)};
    if (random_below(state, 8) == 0)
        s.m += 70; /* several blocks of rows */
    size_t batch = random_below(state, 4) ? random_below(state, 3) : 0;
    size_t lead_a = random_below(state, (uint32_t)batch + 1),
           lead_b = lead_a ? 0 : random_below(state, (uint32_t)batch + 1);
    for (size_t i = 0; i < batch; i++) {
        int64_t dim = 1 + random_below(state, 3);
        bool in_a = i >= lead_a, in_b = i >= lead_b;
        bool one_a = in_b && random_below(state, 3) == 0,
             one_b = in_a && !one_a && random_below(state, 3) == 0;
        if (in_a)
            s.a[s.rank_a++] = one_a ? 1 : dim;
        if (in_b)
            s.b[s.rank_b++] = one_b ? 1 : dim;
        s.y[s.rank_y++] = (in_a && !one_a) || (in_b && !one_b) ? dim : 1;
    }
    bool vector_a = s.rank_a == 0 && random_below(state, 6) == 0;
    bool vector_b = s.rank_b == 0 && random_below(state, 6) == 0;
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

size_t ref_matmul_param_dims(uint64_t *state, const ref_matmul *s, bool rows, int64_t dims[DQ_MAX_RANK])
{
    size_t rank = rows ? s->rank_a : s->rank_b;
    const int64_t *of = rows ? s->a : s->b;
    uint32_t kind = random_below(state, rank < 2 ? 2 : 4);
    dims[0] = kind == 1 ? 1 : rows ? s->m : s->n;
    if (kind < 2)
        return kind;
    if (kind == 2)
        return 1;
    for (size_t i = 0; i < rank; i++)
        dims[i] = i + 2 < rank && random_below(state, 3) == 0 ? 1 : of[i];
    dims[rank - (rows ? 1 : 2)] = 1;
    return rank;
}

/* The row, or column, of the element `at` of y; a vector has no such axis in y. */
static int64_t matrix_index(const ref_matmul *s, bool row, const int64_t *at)
{
    bool vector_a = s->rank_a == 1, vector_b = s->rank_b == 1;
    if (row)
        return vector_a ? 0 : at[s->rank_y - (vector_b ? 1 : 2)];
    return vector_b ? 0 : at[s->rank_y - 1];
}

/* The number of the matrix of an operand with `rank` axes `dims`. */
static size_t batch_index(const ref_matmul *s, size_t rank, const int64_t *dims, const int64_t *at)
{
    size_t batch_y = s->rank_y - (s->rank_a > 1) - (s->rank_b > 1), own = rank > 2 ? rank - 2 : 0, index = 0;
    for (size_t i = 0; i < own; i++) {
        int64_t own_index = dims[i] == 1 ? 0 : at[batch_y - own + i];
        index = index * (size_t)dims[i] + (size_t)own_index;
    }
    return index;
}

size_t ref_matmul_param_index(const dq_tensor *param, const ref_matmul *s, bool rows, const int64_t *at)
{
    if (param->count == 1)
        return 0;
    size_t index = (size_t)matrix_index(s, rows, at);
    if (param->rank == 1)
        return index;
    return batch_index(s, param->rank, param->dims, at) * (size_t)(rows ? s->m : s->n) + index;
}

ref_matmul_terms ref_matmul_find(const ref_matmul *s, size_t i)
{
    ref_matmul_terms t;
    for (size_t axis = s->rank_y; axis-- > 0; i /= (size_t)s->y[axis])
        t.at[axis] = (int64_t)(i % (size_t)s->y[axis]);
    const size_t row = (size_t)matrix_index(s, true, t.at), col = (size_t)matrix_index(s, false, t.at);
    const size_t m = (size_t)s->m, k = (size_t)s->k, n = (size_t)s->n;
    t.a_step = s->trans_a ? m : 1;
    t.b_step = s->trans_b ? 1 : n;
    t.a = batch_index(s, s->rank_a, s->a, t.at) * m * k + row * (s->trans_a ? 1 : k);
    t.b = batch_index(s, s->rank_b, s->b, t.at) * k * n + col * (s->trans_b ? k : 1);
    return t;
}

int64_t ref_matmul_integer(const ref_matmul *s, const dq_tensor *a, const dq_tensor *a_zero,
                           const dq_tensor *b, const dq_tensor *b_zero, size_t i)
{
    const ref_matmul_terms t = ref_matmul_find(s, i);
    const int64_t zero_a =
        a_zero ? dq_tensor_get_int(a_zero, ref_matmul_param_index(a_zero, s, true, t.at)) : 0;
    const int64_t zero_b =
        b_zero ? dq_tensor_get_int(b_zero, ref_matmul_param_index(b_zero, s, false, t.at)) : 0;
    int64_t sum = 0;
    for (size_t k = 0; k < (size_t)s->k; k++)
        sum += (dq_tensor_get_int(a, t.a + k * t.a_step) - zero_a) *
               (dq_tensor_get_int(b, t.b + k * t.b_step) - zero_b);
    return sum;
}

float ref_matmul_f32(const ref_matmul *s, const double *a, const double *b, size_t i)
{
    const ref_matmul_terms t = ref_matmul_find(s, i);
    float sum = 0;
    for (size_t k = 0; k < (size_t)s->k; k++)
        sum = fmaf((float)a[t.a + k * t.a_step], (float)b[t.b + k * t.b_step], sum);
    return sum;
}

double ref_matmul_f64(const ref_matmul *s, const double *a, const double *b, size_t i)
{
    const ref_matmul_terms t = ref_matmul_find(s, i);
    double sum = 0;
    for (size_t k = 0; k < (size_t)s->k; k++)
        sum += a[t.a + k * t.a_step] * b[t.b + k * t.b_step];
    return sum;
}
