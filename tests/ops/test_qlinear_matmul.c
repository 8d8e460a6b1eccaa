/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"
#include "harness.h"
#include "support/random.h"
#include "support/reference_matmul.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 wide;

static const char *const formals[] = {"a",       "a_scale",      "a_zero_point", "b",
                                      "b_scale", "b_zero_point", "y_scale",      "y_zero_point"};

static void begin(ops_case *c, int version)
{
    ops_begin(c, "", "QLinearMatMul", version);
    for (int i = 0; i < 8; i++)
        c->formals[i] = formals[i];
}

/* Scales of two digits in binary now and then, so that many sums fall on ties. */
static dq_tensor *random_scale(ops_case *c, uint64_t *state, dq_dtype dtype, size_t rank, const int64_t *dims)
{
    dq_tensor *t = ops_in(c, dtype, rank, dims, NULL);
    bool plain = random_below(state, 2) == 0;
    for (size_t i = 0; i < t->count; i++) {
        float v = plain ? 1.0f / (float)(1 << random_below(state, 6))
                        : (float)(1 + random_below(state, 5000)) / 977;
        dq_put_bits(t->data, dq_dtype_bits(dtype), i, dq_encode_float(dtype, v, true, DQ_ROUND_NEAREST));
    }
    return t;
}

static bool is_int(dq_dtype dtype)
{
    return dtype == DQ_UINT8 || dtype == DQ_INT8;
}

/* Finite codes only. */
static dq_tensor *random_qvalues(ops_case *c, uint64_t *state, dq_dtype dtype, size_t rank,
                                 const int64_t *dims)
{
    dq_tensor *t = ops_in_random(c, state, dtype, rank, dims);
    for (size_t i = 0; !is_int(dtype) && i < t->count; i++)
        while (!isfinite(dq_tensor_get_double(t, i)))
            dq_data(t, uint8_t)[i] = (uint8_t)random_below(state, 256);
    return t;
}

typedef struct product {
    ref_matmul s;
    dq_tensor *a, *a_scale, *a_zero, *b, *b_scale, *b_zero, *y_scale, *y_zero;
} product;

static size_t y_param_shape(uint64_t *state, const ref_matmul *s, int64_t dims[DQ_MAX_RANK])
{
    if (random_below(state, 2))
        return 0;
    size_t rank = random_below(state, (uint32_t)s->rank_y + 1);
    for (size_t i = 0; i < rank; i++)
        dims[i] = random_below(state, 2) ? 1 : s->y[s->rank_y - rank + i];
    return rank;
}

static product random_product(ops_case *c, uint64_t *state, const dq_dtype types[4])
{
    product p = {.s = ref_matmul_random(state)};
    int64_t dims[DQ_MAX_RANK];
    size_t rank;
    p.a = random_qvalues(c, state, types[0], p.s.rank_a, p.s.a);
    rank = ref_matmul_param_dims(state, &p.s, true, dims);
    p.a_scale = random_scale(c, state, types[3], rank, dims);
    rank = ref_matmul_param_dims(state, &p.s, true, dims);
    p.a_zero = random_qvalues(c, state, types[0], rank, dims);
    p.b = random_qvalues(c, state, types[1], p.s.rank_b, p.s.b);
    rank = ref_matmul_param_dims(state, &p.s, false, dims);
    p.b_scale = random_scale(c, state, types[3], rank, dims);
    rank = ref_matmul_param_dims(state, &p.s, false, dims);
    p.b_zero = random_qvalues(c, state, types[1], rank, dims);
    rank = y_param_shape(state, &p.s, dims);
    p.y_scale = random_scale(c, state, types[3], rank, dims);
    rank = y_param_shape(state, &p.s, dims);
    p.y_zero = random_qvalues(c, state, types[2], rank, dims);
    return p;
}

static size_t y_param_index(const dq_tensor *t, const ref_matmul *s, const int64_t *at)
{
    size_t index = 0;
    for (size_t i = 0; i < t->rank; i++)
        index = index * (size_t)t->dims[i] + (t->dims[i] == 1 ? 0 : (size_t)at[s->rank_y - t->rank + i]);
    return index;
}

/* The real-number sum, rounded once: whole units of 2^-17 hold every value. */
static double sum_of(const product *p, size_t i)
{
    const ref_matmul *s = &p->s;
    if (is_int(p->a->dtype) && is_int(p->b->dtype))
        return (double)ref_matmul_integer(s, p->a, p->a_zero, p->b, p->b_zero, i);
    ref_matmul_terms at = ref_matmul_find(s, i);
    double za = dq_tensor_get_double(p->a_zero, ref_matmul_param_index(p->a_zero, s, true, at.at));
    double zb = dq_tensor_get_double(p->b_zero, ref_matmul_param_index(p->b_zero, s, false, at.at));
    wide sum = 0;
    for (size_t k = 0; k < (size_t)s->k; k++) {
        double a = dq_tensor_get_double(p->a, at.a + k * at.a_step) - za;
        double b = dq_tensor_get_double(p->b, at.b + k * at.b_step) - zb;
        sum += (wide)(int64_t)ldexp(a, 17) * (int64_t)ldexp(b, 17);
    }
    return ldexp((double)sum, -34);
}

/* The code that the formula gives. */
static unsigned expected(const product *p, size_t i)
{
    const ref_matmul *s = &p->s;
    ref_matmul_terms at = ref_matmul_find(s, i);
    double sa = dq_tensor_get_double(p->a_scale, ref_matmul_param_index(p->a_scale, s, true, at.at));
    double sb = dq_tensor_get_double(p->b_scale, ref_matmul_param_index(p->b_scale, s, false, at.at));
    double sy = dq_tensor_get_double(p->y_scale, y_param_index(p->y_scale, s, at.at));
    double zero = dq_tensor_get_double(p->y_zero, y_param_index(p->y_zero, s, at.at));
    double scaled = sum_of(p, i) * (sa * sb / sy);
    dq_dtype type = p->y_zero->dtype;
    if (!is_int(type))
        return dq_encode_float(type, dq_round_to_odd(scaled + zero), true, DQ_ROUND_NEAREST);
    double lo = type == DQ_INT8 ? -128 : 0;
    return (uint8_t)(int)fmin(fmax(rint(scaled) + zero, lo), lo + 255);
}

static void check_product(ops_case *c, const product *p, int round)
{
    ops_must_run(c);
    char got[DQ_SHAPE_TEXT], shape[DQ_SHAPE_TEXT];
    const dq_tensor *y = c->out[0];
    ck_assert_int_eq(y->dtype, p->y_zero->dtype);
    ck_assert_str_eq(dq_shape_text(y->rank, y->dims, got), dq_shape_text(p->s.rank_y, p->s.y, shape));
    for (size_t i = 0; i < y->count; i++)
        ck_assert_msg(dq_data(y, uint8_t)[i] == expected(p, i), "round %d, element %zu: %u, expected %u",
                      round, i, dq_data(y, uint8_t)[i], expected(p, i));
}

START_TEST(random_integers)
{
    static const dq_dtype ints[] = {DQ_UINT8, DQ_INT8}, scales[] = {DQ_FLOAT, DQ_FLOAT16, DQ_BFLOAT16};
    uint64_t state = 4101842887655102017u;
    for (int round = 0; round < 240; round++) {
        const dq_dtype types[] = {ints[round & 1], ints[round >> 1 & 1], ints[round >> 2 & 1],
                                  scales[round % 3]};
        ops_case c;
        begin(&c, types[3] == DQ_FLOAT ? 10 : 21);
        product p = random_product(&c, &state, types);
        check_product(&c, &p, round);
        ops_end(&c);
    }
}
END_TEST

START_TEST(random_float8)
{
    static const dq_dtype all[] = {DQ_FLOAT8E4M3FN,   DQ_FLOAT8E4M3FNUZ, DQ_FLOAT8E5M2,
                                   DQ_FLOAT8E5M2FNUZ, DQ_INT8,           DQ_UINT8};
    static const dq_dtype scales[] = {DQ_FLOAT, DQ_FLOAT16, DQ_BFLOAT16};
    uint64_t state = 1181783497276652981u;
    for (int round = 0; round < 216; round++) {
        const dq_dtype types[] = {all[round % 6], all[round / 6 % 6], all[round / 36], scales[round % 3]};
        ops_case c;
        begin(&c, 21);
        product p = random_product(&c, &state, types);
        check_product(&c, &p, round);
        ops_end(&c);
    }
}
END_TEST

/* One product 1 x 1 with its scale and zero point. */
static void one(dq_dtype dtype, double a, float scale, double zero, double y)
{
    ops_case c;
    begin(&c, 10);
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 1), OPS_VALUES(a));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 1), OPS_VALUES(1));
    dq_tensor *b_scale = ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    dq_data(b_scale, float)[0] = scale;
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, dtype, OPS_SCALAR, &zero);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(1, 1), &y);
    ops_end(&c);
}

START_TEST(ties_limits_and_odd_scales)
{
    one(DQ_INT8, 1, 0.5f, 0, 0);
    one(DQ_INT8, 3, 0.5f, 0, 2);
    one(DQ_INT8, 5, 0.5f, 0, 2);
    one(DQ_INT8, -5, 0.5f, 0, -2);
    one(DQ_INT8, 1, 0.5f, 3, 3); /* rounded before the zero point is added */
    one(DQ_INT8, 3, 0.5f, 3, 5);
    one(DQ_UINT8, -3, 0.5f, 1, 0);
    one(DQ_UINT8, 127, 2, 1, 255);
    one(DQ_UINT8, 127, 2, 2, 255);
    one(DQ_INT8, -128, 1e30f, 5, -128);
    one(DQ_INT8, 2, -1.25f, 0, -2);
    one(DQ_INT8, 6, -0.75f, 0, -4);
    one(DQ_UINT8, 1, INFINITY, 7, 255);
    one(DQ_UINT8, -1, INFINITY, 7, 0);
    one(DQ_INT8, 0, INFINITY, 7, -128); /* 0 * inf is NaN */
    one(DQ_INT8, 9, NAN, 7, -128);
    one(DQ_UINT8, 9, 0, 7, 7);
}
END_TEST

START_TEST(float8_specials)
{
    ops_case c;
    begin(&c, 21);
    /* e5m2: infinity, NaN, 1, largest */
    ops_in_bits(&c, DQ_FLOAT8E5M2, OPS_DIMS(4, 1), (const uint64_t[]){0x7c, 0x7e, 0x3c, 0x7b});
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT8E5M2, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 3), OPS_VALUES(0, 1, -2));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT8E4M3FN, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(
        &c, 0, DQ_FLOAT8E4M3FN, OPS_DIMS(4, 3),
        OPS_VALUES((double)NAN, 448, -448, (double)NAN, (double)NAN, (double)NAN, 0, 1, -2, 0, 448, -448));
    ops_end(&c);
}
END_TEST

/* Not finite in the right operand: only its column feels it. */
START_TEST(float8_specials_on_the_right)
{
    ops_case c;
    begin(&c, 21);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    /* e5m2: 1 and infinity, 1 and -infinity, 1 and 2, both infinities */
    ops_in_bits(&c, DQ_FLOAT8E5M2, OPS_DIMS(2, 4),
                (const uint64_t[]){0x3c, 0x3c, 0x3c, 0x7c, 0x7c, 0xfc, 0x40, 0xfc});
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT8E5M2, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 4), OPS_VALUES(127, -128, 5, -128));
    ops_end(&c);
}
END_TEST

/* Sums of many of the largest products, and one of the smallest, are still exact: 0 remains of the large
 * ones. */
START_TEST(float8_sums_are_exact)
{
    enum { K = 6001, HALF = K / 2 };
    ops_case c;
    begin(&c, 21);
    dq_tensor *a = ops_in(&c, DQ_FLOAT8E5M2, OPS_DIMS(1, K), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(4294967296.0));
    ops_in(&c, DQ_FLOAT8E5M2, OPS_SCALAR, OPS_VALUES(0));
    dq_tensor *b = ops_in(&c, DQ_FLOAT8E5M2, OPS_DIMS(K, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT8E5M2, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    memset(b->data, 0x7b, K);                                    /* 57344 */
    memset(a->data, 0x7b, HALF);                                 /* … times 57344 */
    memset(dq_data(a, uint8_t) + HALF, 0xfb, HALF);              /* … and times -57344 */
    dq_data(a, uint8_t)[K - 1] = dq_data(b, uint8_t)[K - 1] = 1; /* 2^-16 squared */
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 1), OPS_VALUES(1));
    /* and without the negative half it is far past the largest */
    memset(a->data, 0x7b, K - 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 1), OPS_VALUES(127));
    ops_end(&c);
}
END_TEST

/* 40000 products of (57344 + 57344)^2: carries at their largest. */
START_TEST(float8_carries)
{
    enum { K = 40000 };
    ops_case c;
    begin(&c, 21);
    dq_tensor *a = ops_in(&c, DQ_FLOAT8E5M2, OPS_DIMS(1, K), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1.0 / 4294967296));
    ops_in(&c, DQ_FLOAT8E5M2, OPS_SCALAR, OPS_VALUES(-57344));
    dq_tensor *b = ops_in(&c, DQ_FLOAT8E5M2, OPS_DIMS(K, 1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1.0 / 65536));
    ops_in(&c, DQ_FLOAT8E5M2, OPS_SCALAR, OPS_VALUES(-57344));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    memset(a->data, 0x7b, K);
    memset(b->data, 0x7b, K);
    ops_must_run(&c);
    /* 40000 * 114688^2 / 2^48 = 1.869… */
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1), OPS_VALUES(2));
    ops_end(&c);
}
END_TEST

START_TEST(refusals)
{
    static const struct {
        int input;
        size_t rank;
        int64_t dims[3];
        const char *message;
    } cases[] = {
        {1,
         1,
         {4},
         "input 1 'a_scale' has shape [4], expected 1 element or 3 (rows of input 0, which has shape [3,2])"},
        {5,
         2,
         {4, 1},
         "input 5 'b_zero_point' has shape [4,1], expected 1 element or 4 (columns of input 3, which has "
         "shape "
         "[2,4])"},
        {6,
         1,
         {3},
         "input 6 'y_scale' has shape [3], expected 1 element or a shape that broadcasts to the output's, "
         "[3,4]"},
        {7,
         3,
         {1, 3, 4},
         "input 7 'y_zero_point' has shape [1,3,4], expected 1 element or a shape that broadcasts to the "
         "output's, [3,4]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ops_case c;
        begin(&c, 10);
        for (int input = 0; input < 8; input++) {
            dq_dtype type = input % 3 == 1 || input == 6 ? DQ_FLOAT : DQ_UINT8;
            if (input == cases[i].input)
                ops_in(&c, type, cases[i].rank, cases[i].dims, NULL);
            else if (input == 0)
                ops_in(&c, type, OPS_DIMS(3, 2), NULL);
            else if (input == 3)
                ops_in(&c, type, OPS_DIMS(2, 4), NULL);
            else
                ops_in(&c, type, OPS_SCALAR, NULL);
        }
        ops_must_refuse(&c, DQ_BAD_MODEL, cases[i].message);
        ops_end(&c);
    }
}
END_TEST

/* com.microsoft's QGemm: input k has the shape 3x2, all others fit. */
START_TEST(gemm_refusals)
{
    static const char *const messages[] = {
        NULL,
        "input 1 has 6 elements, expected 1",
        "input 2 has 6 elements, expected 1",
        "input 3 has shape [3,2], expected 2 in axis 0 to go with A",
        "input 4 has 6 elements, expected 1 or 2 (columns of B)",
        "input 5 has 6 elements, expected 1 or 2 (columns of B)",
        "input 6 has shape [3,2], expected one that broadcasts to the output's, [2,2]",
        "input 7 has 6 elements, expected 1",
        "input 8 has 6 elements, expected 1",
    };
    static const dq_dtype types[] = {DQ_UINT8, DQ_FLOAT, DQ_UINT8, DQ_INT8, DQ_FLOAT,
                                     DQ_INT8,  DQ_INT32, DQ_FLOAT, DQ_UINT8};
    for (size_t k = 1; k < sizeof messages / sizeof messages[0]; k++) {
        ops_case c;
        ops_begin(&c, "com.microsoft", "QGemm", 1);
        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
            if (i == k)
                ops_in(&c, types[i], OPS_DIMS(3, 2), NULL);
            else if (i == 0 || i == 3)
                ops_in(&c, types[i], OPS_DIMS(2, 2), NULL);
            else
                ops_in(&c, types[i], OPS_SCALAR, NULL);
        }
        ops_must_refuse(&c, DQ_BAD_MODEL, messages[k]);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_matmul", NULL, NULL);
    add_test(&tests, random_integers);
    add_test(&tests, random_float8);
    add_test(&tests, ties_limits_and_odd_scales);
    add_test(&tests, float8_specials);
    add_test(&tests, float8_specials_on_the_right);
    add_test(&tests, float8_sums_are_exact);
    add_test(&tests, float8_carries);
    add_test(&tests, refusals);
    add_test(&tests, gemm_refusals);
    return test_program_run(&tests);
}
