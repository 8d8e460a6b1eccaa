/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.QLinearMatMul16 against its formula. */
#include "harness.h"
#include "support/random.h"
#include "support/reference_matmul.h"

#include <math.h>

static const dq_dtype types[] = {DQ_UINT8, DQ_INT8, DQ_UINT16, DQ_INT16};

static dq_tensor *add_scale(ops_case *c, uint64_t *state, int64_t count)
{
    dq_tensor *t = ops_in(c, DQ_FLOAT, count > 1, &count, NULL);
    bool plain = random_below(state, 2) == 0; /* many sums on ties */
    for (size_t i = 0; i < t->count; i++)
        dq_data(t, float)[i] = plain ? 1.0f / (float)(1 << random_below(state, 5))
                                     : (float)(1 + random_below(state, 5000)) / 977;
    return t;
}

static double at(const dq_tensor *t, size_t i)
{
    return t ? dq_tensor_get_double(t, t->count == 1 ? 0 : i) : 0;
}

/* One matrix on the right has parameters a column. */
static int64_t columns_of(uint64_t *state, const ref_matmul *s)
{
    return s->rank_b == 2 && random_below(state, 2) ? s->n : 1;
}

static bool is_8_bits(const dq_tensor *t)
{
    return t->dtype == DQ_INT8 || t->dtype == DQ_UINT8;
}

static void check(const ops_case *c, const ref_matmul *s, dq_dtype type, int round)
{
    dq_tensor *const *in = c->in;
    const dq_tensor *y = c->out[0];
    double alpha = (double)dq_node_float(&c->node, "alpha", 1);
    for (size_t i = 0; i < y->count; i++) {
        size_t col = s->rank_b > 1 ? i % (size_t)s->n : 0;
        double scale = alpha * at(in[1], 0) * at(in[4], col);
        double sum = (double)ref_matmul_integer(s, in[0], in[2], in[3], in[5], i) + at(in[8], col) / scale;
        double expected = (double)(float)(sum * scale);
        if (is_8_bits(in[0]) && is_8_bits(in[3]) && !in[8]) /* as MatMulIntegerToFloat rounds */
            expected = (double)((float)sum * ((float)(alpha * at(in[1], 0)) * (float)at(in[4], col)));
        if (type != DQ_FLOAT)
            expected =
                fmin(fmax(rint(sum * (scale / at(in[6], 0))) + at(in[7], 0), (double)dq_dtype_get(type)->min),
                     (double)dq_dtype_get(type)->max);
        ck_assert_msg(dq_tensor_get_double(y, i) == expected, "round %d, element %zu: %.9g, expected %.9g",
                      round, i, dq_tensor_get_double(y, i), expected);
    }
}

START_TEST(random_products)
{
    uint64_t state = 7046029254386353131u;
    for (int round = 0; round < 320; round++) {
        ref_matmul s = ref_matmul_random(&state);
        dq_dtype ta = types[round % 4], tb = types[round / 4 % 4];
        dq_dtype ty = round % 5 == 4 ? DQ_FLOAT : types[round / 16 % 4];
        int64_t columns = columns_of(&state, &s);
        ops_case c;
        ops_begin(&c, "dqrun", "QLinearMatMul16", 1);
        if (random_below(&state, 2))
            ops_float(&c, "alpha", 0.5f);
        ops_in_random(&c, &state, ta, s.rank_a, s.a);
        add_scale(&c, &state, 1);
        ops_in_random(&c, &state, ta, OPS_SCALAR);
        ops_in_random(&c, &state, tb, s.rank_b, s.b);
        add_scale(&c, &state, columns);
        ops_in_random(&c, &state, tb, columns > 1, &columns);
        if (ty == DQ_FLOAT) {
            ops_skip(&c);
            ops_skip(&c);
        } else {
            add_scale(&c, &state, 1);
            ops_in_random(&c, &state, ty, OPS_SCALAR);
        }
        if (columns > 1 && random_below(&state, 2))
            add_scale(&c, &state, columns); /* as good a bias as any */
        ops_must_run(&c);
        check(&c, &s, ty, round);
        ops_end(&c);
    }
}
END_TEST

/* Sums of the largest values exceed 32 bits. */
START_TEST(sums_are_exact)
{
    enum { K = 3001 };
    for (int i = 0; i < 4; i++) {
        dq_dtype tb = i % 2 ? DQ_INT16 : DQ_INT8;
        double code = i % 2 ? -32768 : -128, sum = K * -32768.0 * code;
        ops_case c;
        ops_begin(&c, "dqrun", "QLinearMatMul16", 1);
        dq_tensor *a = ops_in(&c, i < 2 ? DQ_INT16 : DQ_UINT16, OPS_DIMS(1, K), NULL);
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
        ops_in(&c, a->dtype, OPS_SCALAR, OPS_VALUES(i < 2 ? 0 : 32768));
        dq_tensor *b = ops_in(&c, tb, OPS_DIMS(K, 1), NULL);
        for (size_t k = 0; k < K; k++) {
            dq_tensor_put_double(a, k, i < 2 ? -32768 : 0);
            dq_tensor_put_double(b, k, code);
        }
        ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
        ops_in(&c, tb, OPS_SCALAR, OPS_VALUES(0));
        ops_skip(&c);
        ops_skip(&c);
        dq_tensor *bias = ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
        dq_data(bias, float)[0] = (float)(1 - sum); /* a float holds it but for the 1 */
        ops_must_run(&c);
        double expected = sum + (double)dq_data(bias, float)[0];
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1), &expected);
        ops_end(&c);
    }
}
END_TEST

/* The sum of a column alone exceeds 32 bits, in a whole panel of columns and in one that is not. */
START_TEST(column_sums_are_exact)
{
    enum { M = 2, K = 2 * 32768 + 3, N = 9 };
    ops_case c;
    double expected[M * N];
    ops_begin(&c, "dqrun", "QLinearMatMul16", 1);
    dq_tensor *a = ops_in(&c, DQ_INT16, OPS_DIMS(M, K), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT16, OPS_SCALAR, OPS_VALUES(32767));
    dq_tensor *b = ops_in(&c, DQ_INT16, OPS_DIMS(K, N), NULL);
    for (size_t i = 0; i < a->count; i++)
        dq_data(a, int16_t)[i] = -32768;
    for (size_t i = 0; i < b->count; i++)
        dq_data(b, int16_t)[i] = -32768;
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT16, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    for (size_t i = 0; i < M * N; i++)
        expected[i] = (double)(float)(K * 65535.0 * 32768);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(M, N), expected);
    ops_end(&c);
}
END_TEST

/* Sums of 8-bit values as long as int32 always holds, and one longer; of ends of the types, so that they are
 * as large as can be. */
START_TEST(lengths_at_the_end_of_int32)
{
    static const struct {
        dq_dtype a, b;
        double value_a, zero_a, value_b;
        int64_t longest;
    } all[] = {{DQ_UINT8, DQ_UINT8, 255, 0, 255, 33025},
               {DQ_UINT8, DQ_INT8, 255, 0, -128, 65793},
               {DQ_INT8, DQ_INT8, -128, 127, -128, 65793},
               {DQ_INT8, DQ_UINT8, 127, -128, 255, 33025}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (int64_t more = 0; more < 2; more++)
            for (int to_float = 0; to_float < 2; to_float++) {
                const int64_t k = all[i].longest + more;
                const double sum = (double)k * (all[i].value_a - all[i].zero_a) * all[i].value_b;
                double expected[4];
                ops_case c;
                ops_begin(&c, "dqrun", "QLinearMatMul16", 1);
                dq_tensor *a = ops_in(&c, all[i].a, OPS_DIMS(2, k), NULL);
                for (size_t j = 0; j < a->count; j++)
                    dq_tensor_put_double(a, j, all[i].value_a);
                ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
                ops_in(&c, all[i].a, OPS_SCALAR, OPS_VALUES(all[i].zero_a));
                dq_tensor *b = ops_in(&c, all[i].b, OPS_DIMS(k, 2), NULL);
                for (size_t j = 0; j < b->count; j++)
                    dq_tensor_put_double(b, j, all[i].value_b);
                ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
                ops_in(&c, all[i].b, OPS_SCALAR, OPS_VALUES(0));
                if (to_float) {
                    ops_skip(&c);
                    ops_skip(&c);
                } else {
                    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0x1p25));
                    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(1));
                }
                ops_must_run(&c);
                for (size_t j = 0; j < 4; j++)
                    expected[j] = to_float ? (double)(float)sum : rint(sum / 0x1p25) + 1;
                ops_want(&c, 0, to_float ? DQ_FLOAT : DQ_INT8, OPS_DIMS(2, 2), expected);
                ops_end(&c);
            }
}
END_TEST

/* The matrix b is stored as [N, K]. */
START_TEST(transposed_b)
{
    ops_case c;
    ops_begin(&c, "dqrun", "QLinearMatMul16", 1);
    ops_int(&c, "transB", 1);
    ops_in(&c, DQ_UINT16, OPS_DIMS(1, 3), OPS_VALUES(1000, 2000, 3000));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, -1, 0, 1));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(7));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(1, 2), OPS_VALUES(14007, 2007));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_matmul16", NULL, NULL);
    add_test(&tests, random_products);
    add_test(&tests, sums_are_exact);
    add_test(&tests, column_sums_are_exact);
    add_test(&tests, lengths_at_the_end_of_int32);
    add_test(&tests, transposed_b);
    return test_program_run(&tests);
}
