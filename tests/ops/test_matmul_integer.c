/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "support/random.h"
#include "support/reference_matmul.h"

#include "base/file.h"

#include <stdio.h>

static const char *const formals[] = {"A", "B", "a_zero_point", "b_zero_point"};

static void begin(ops_case *c)
{
    ops_begin(c, "", "MatMulInteger", 10);
    for (int i = 0; i < 4; i++)
        c->formals[i] = formals[i];
}

static const dq_tensor *random_zero(ops_case *c, uint64_t *state, dq_dtype dtype, const ref_matmul *s,
                                    bool rows)
{
    if (random_below(state, 3) == 0)
        return ops_skip(c), NULL;
    int64_t dims[DQ_MAX_RANK];
    size_t rank = ref_matmul_param_dims(state, s, rows, dims);
    return ops_in_random(c, state, dtype, rank, dims);
}

START_TEST(random_products)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8};
    uint64_t state = 88172645463325252u;
    for (int round = 0; round < 300; round++) {
        ref_matmul s = ref_matmul_random(&state);
        ops_case c;
        begin(&c);
        dq_dtype ta = types[round & 1], tb = types[round >> 1 & 1];
        const dq_tensor *a = ops_in_random(&c, &state, ta, s.rank_a, s.a);
        const dq_tensor *b = ops_in_random(&c, &state, tb, s.rank_b, s.b);
        const dq_tensor *za = random_zero(&c, &state, ta, &s, true);
        const dq_tensor *zb = random_zero(&c, &state, tb, &s, false);
        ops_must_run(&c);
        char got[DQ_SHAPE_TEXT], expected[DQ_SHAPE_TEXT];
        ck_assert_str_eq(dq_shape_text(c.out[0]->rank, c.out[0]->dims, got),
                         dq_shape_text(s.rank_y, s.y, expected));
        for (size_t i = 0; i < c.out[0]->count; i++) {
            int64_t sum = ref_matmul_integer(&s, a, za, b, zb, i);
            ck_assert_msg(dq_data(c.out[0], int32_t)[i] == sum, "round %d, element %zu: %d, expected %lld",
                          round, i, dq_data(c.out[0], int32_t)[i], (long long)sum);
        }
        ops_end(&c);
    }
}
END_TEST

/* Every product at its largest: pairs of them overflow 16 bits, four of them with u8 weights too. */
START_TEST(full_range)
{
    static const struct {
        dq_dtype a_type, b_type;
        uint8_t a, b;
        int32_t product;
    } cases[] = {
        {DQ_UINT8, DQ_INT8, 255, 127, 255 * 127},   {DQ_UINT8, DQ_INT8, 255, 0x80, 255 * -128},
        {DQ_UINT8, DQ_UINT8, 255, 255, 255 * 255},  {DQ_INT8, DQ_INT8, 0x80, 0x80, 128 * 128},
        {DQ_INT8, DQ_UINT8, 0x80, 255, -128 * 255}, {DQ_INT8, DQ_UINT8, 127, 255, 127 * 255},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ops_case c;
        begin(&c);
        dq_tensor *a = ops_in(&c, cases[i].a_type, OPS_DIMS(3, 64), NULL);
        dq_tensor *b = ops_in(&c, cases[i].b_type, OPS_DIMS(64, 5), NULL);
        for (size_t k = 0; k < a->count; k++)
            dq_data(a, uint8_t)[k] = cases[i].a;
        for (size_t k = 0; k < b->count; k++)
            dq_data(b, uint8_t)[k] = cases[i].b;
        ops_must_run(&c);
        for (size_t k = 0; k < 15; k++)
            ck_assert_int_eq(dq_data(c.out[0], int32_t)[k], 64 * cases[i].product);
        ops_end(&c);
    }
}
END_TEST

START_TEST(sums_wrap)
{
    enum { K = 40000 };
    ops_case c;
    begin(&c);
    dq_tensor *a = ops_in(&c, DQ_UINT8, OPS_DIMS(1, K), NULL);
    dq_tensor *b = ops_in(&c, DQ_UINT8, OPS_DIMS(K, 1), NULL);
    for (size_t k = 0; k < K; k++)
        dq_data(a, uint8_t)[k] = dq_data(b, uint8_t)[k] = 255;
    ops_must_run(&c);
    int64_t sum = (int64_t)K * 255 * 255;
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 1), OPS_VALUES((double)(sum - 4294967296)));
    ops_end(&c);
}
END_TEST

START_TEST(large)
{
    enum { M = 130, K = 300, N = 200 };
    uint64_t state = 7;
    const ref_matmul s = ref_matmul_2d(M, K, N);
    ops_case c;
    begin(&c);
    const dq_tensor *a = ops_in_random(&c, &state, DQ_INT8, 2, s.a);
    const dq_tensor *b = ops_in_random(&c, &state, DQ_UINT8, 2, s.b);
    const dq_tensor *za = ops_in_random(&c, &state, DQ_INT8, OPS_DIMS(M));
    const dq_tensor *zb = ops_in_random(&c, &state, DQ_UINT8, OPS_DIMS(N));
    ops_must_run(&c);
    for (size_t i = 0; i < M * N; i++) {
        ck_assert_int_eq(dq_data(c.out[0], int32_t)[i], ref_matmul_integer(&s, a, za, b, zb, i));
    }
    ops_end(&c);
}
END_TEST

/* Large weights of a mapped file are packed from copies, and their pages given back; columns are left over.
 */
START_TEST(mapped_weights)
{
    enum { M = 2, K = 1031, N = 8200 };
    uint64_t state = 3;
    const ref_matmul s = ref_matmul_2d(M, K, N);
    ops_case c;
    dq_file file;
    FILE *stream = tmpfile();
    ck_assert_ptr_nonnull(stream);
    begin(&c);
    const dq_tensor *a = ops_in_random(&c, &state, DQ_UINT8, 2, s.a);
    dq_tensor *b = ops_in_random(&c, &state, DQ_INT8, 2, s.b);
    ck_assert_uint_eq(fwrite(b->data, 1, b->size, stream), b->size);
    ck_assert_int_eq(fflush(stream), 0);
    ck_assert_int_eq(dq_file_map_fd(fileno(stream), "weights", UINT64_MAX, NULL, DQ_IO, &file, &c.err),
                     DQ_OK);
    b->data = (void *)(uintptr_t)file.bytes; /* inputs are never written */
    b->mapped = true;
    c.weights = 2;
    ops_must_run(&c);
    for (size_t i = 0; i < M * N; i++)
        ck_assert_int_eq(dq_data(c.out[0], int32_t)[i], ref_matmul_integer(&s, a, NULL, b, NULL, i));
    ops_end(&c);
    dq_file_unmap(&file);
    fclose(stream);
}
END_TEST

/* A weight of some kind: ends of the range in whole columns, here and there, or as trained ones are. */
static uint8_t some_weight(uint64_t *state, uint32_t kind, size_t column)
{
    static const uint8_t ends[] = {127, 128, 129, 126, 0, 1, 255};
    int bell = (int)(random_below(state, 85) + random_below(state, 85) + random_below(state, 85)) - 126;
    switch (kind == 4 ? column % 4 : kind) {
    case 0:
        return ends[column % 2];
    case 1:
        return ends[random_below(state, sizeof ends)];
    case 2:
        return (uint8_t)(random_below(state, 20) ? bell / 3 : ends[random_below(state, 4)]);
    default:
        return (uint8_t)bell;
    }
}

static void check_sizes(uint64_t *state, dq_dtype a_type, dq_dtype b_type, const int64_t size[3],
                        uint32_t kind, bool constant)
{
    const ref_matmul s = ref_matmul_2d(size[0], size[1], size[2]);
    ops_case c;
    begin(&c);
    dq_tensor *a = ops_in(&c, a_type, 2, s.a, NULL), *b = ops_in(&c, b_type, 2, s.b, NULL);
    for (size_t i = 0; i < a->count; i++) /* mostly what is largest in size */
        dq_data(a, uint8_t)[i] = random_below(state, 8) ? (a_type == DQ_INT8 ? 0x80 : 255) : 0x7f;
    for (size_t i = 0; i < b->count; i++)
        dq_data(b, uint8_t)[i] =
            some_weight(state, kind, i % (size_t)s.n) ^ (uint8_t)(b_type == DQ_INT8 ? 0 : 0x80);
    c.weights = constant ? 2 : 0;
    ops_must_run(&c);
    for (size_t i = 0; i < c.out[0]->count; i++)
        ck_assert_msg(dq_data(c.out[0], int32_t)[i] == ref_matmul_integer(&s, a, NULL, b, NULL, i),
                      "%lldx%lldx%lld, weights of kind %u, element %zu: %d", (long long)s.m, (long long)s.k,
                      (long long)s.n, kind, i, dq_data(c.out[0], int32_t)[i]);
    ops_end(&c);
}

/* Weights of which none, some or all pairs overflow 16 bits, at sizes around those of tiles, for few rows and
 * for many, packed at each run and once. */
START_TEST(mixed_weights)
{
    static const int64_t sizes[][3] = {{1, 9, 17},   {2, 64, 16},  {3, 7, 33},    {6, 33, 5},   {16, 40, 40},
                                       {33, 65, 31}, {64, 30, 16}, {65, 131, 50}, {300, 70, 20}};
    uint64_t state = 11;
    for (uint32_t kind = 0; kind < 5; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            for (int types = 0; types < 4; types++)
                for (int constant = 0; constant < 2; constant++)
                    check_sizes(&state, types & 1 ? DQ_INT8 : DQ_UINT8, types & 2 ? DQ_INT8 : DQ_UINT8,
                                sizes[i], kind, constant);
}
END_TEST

/* As many positions as 16 bits count, and more. */
START_TEST(deep)
{
    uint64_t state = 5;
    check_sizes(&state, DQ_UINT8, DQ_INT8, (const int64_t[]){4, 65536, 3}, 3, true);
    check_sizes(&state, DQ_UINT8, DQ_INT8, (const int64_t[]){4, 66000, 3}, 3, true);
}
END_TEST

static void refuse(size_t rank_a, const int64_t *a, size_t rank_b, const int64_t *b, size_t rank_z,
                   const int64_t *z, const char *message)
{
    ops_case c;
    begin(&c);
    ops_in(&c, DQ_UINT8, rank_a, a, NULL);
    ops_in(&c, DQ_UINT8, rank_b, b, NULL);
    if (rank_z)
        ops_in(&c, DQ_UINT8, rank_z, z, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, message);
    ops_end(&c);
}

START_TEST(refusals)
{
    refuse(OPS_SCALAR, OPS_DIMS(3, 2), OPS_SCALAR,
           "input 0 'A' is a scalar, expected a vector, a matrix or more axes");
    refuse(OPS_DIMS(3, 2), OPS_SCALAR, OPS_SCALAR,
           "input 1 'B' is a scalar, expected a vector, a matrix or more axes");
    refuse(OPS_DIMS(3, 2), OPS_DIMS(3, 4), OPS_SCALAR,
           "input 1 'B' has 3 rows, expected 2 as the other operand has columns");
    refuse(
        OPS_DIMS(2, 3, 2), OPS_DIMS(3, 2, 4), OPS_SCALAR,
        "input 1 'B' has shape [3,2,4], whose batch axes do not broadcast with those of the other operand, "
        "[2,3,2]");
    refuse(OPS_DIMS(3, 2), OPS_DIMS(2, 4), OPS_DIMS(2),
           "input 2 'a_zero_point' has shape [2], expected 1 element or 3 (rows of input 0, which has shape "
           "[3,2])");
    refuse(
        OPS_DIMS(3, 2), OPS_DIMS(2, 4), OPS_DIMS(1, 3),
        "input 2 'a_zero_point' has shape [1,3], expected 1 element or 3 (rows of input 0, which has shape "
        "[3,2])");
    refuse(OPS_DIMS(2), OPS_DIMS(2, 4), OPS_DIMS(2),
           "input 2 'a_zero_point' has shape [2], expected 1 element as input 0 is a vector");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("matmul_integer", NULL, NULL);
    add_test(&tests, random_products);
    add_test(&tests, full_range);
    add_test(&tests, sums_wrap);
    add_test(&tests, large);
    add_test(&tests, mapped_weights);
    add_test(&tests, mixed_weights);
    add_test(&tests, deep);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
