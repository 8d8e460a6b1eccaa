/* SPDX-License-Identifier: Apache-2.0 */
/* RandomUniform, RandomNormal, their Like forms, Bernoulli and Multinomial. */
#include "harness.h"

#include <math.h>
#include <string.h>

/* A seed gives its numbers, and another one others; their mean and spread are those asked for. */
START_TEST(seeds_and_distributions)
{
    enum { N = 20000 };
    static float kept[2][N];
    for (int seed = 0; seed < 2; seed++)
        for (int normal = 0; normal < 2; normal++) {
            double sum = 0, squares = 0;
            ops_case c;
            ops_begin(&c, "", normal ? "RandomNormal" : "RandomUniform", 22);
            ops_ints(&c, "shape", 1, (const int64_t[]){N});
            ops_float(&c, "seed", (float)seed);
            ops_must_run(&c);
            for (size_t i = 0; i < N; i++) {
                double x = (double)dq_data(c.out[0], float)[i];
                ck_assert(normal || (x >= 0 && x <= 1));
                sum += x;
                squares += x * x;
            }
            double mean = sum / N, variance = squares / N - mean * mean;
            ck_assert_double_eq_tol(mean, normal ? 0 : 0.5, 0.03);
            ck_assert_double_eq_tol(variance, normal ? 1 : 1.0 / 12, normal ? 0.05 : 0.005);
            if (!normal)
                memcpy(kept[seed], c.out[0]->data, sizeof kept[0]);
            ops_end(&c);
        }
    ck_assert(memcmp(kept[0], kept[1], sizeof kept[0]) != 0);
}
END_TEST

enum { N = 4096 };

static const dq_dtype float_types[] = {DQ_FLOAT16, DQ_BFLOAT16, DQ_FLOAT, DQ_DOUBLE};

enum { FLOAT_TYPES = sizeof float_types / sizeof float_types[0] };

/* Runs a generator of the given type; the numbers as doubles. `like`: the form that takes its shape from an
 * input, and its type, too, unless `typed`. */
static void draw(ops_case *c, bool normal, bool like, bool typed, dq_dtype dtype, double *numbers)
{
    static const char *const names[2][2] = {{"RandomUniform", "RandomUniformLike"},
                                            {"RandomNormal", "RandomNormalLike"}};
    ops_begin(c, "", names[normal][like], 22);
    ops_float(c, "seed", 7.5f);
    ops_float(c, normal ? "mean" : "low", -3);
    ops_float(c, normal ? "scale" : "high", 5);
    if (like)
        ops_in(c, typed ? DQ_FLOAT : dtype, OPS_DIMS(N / 2, 2), NULL);
    else
        ops_ints(c, "shape", 2, (const int64_t[]){N / 2, 2});
    if (typed)
        ops_int(c, "dtype", dtype);
    ops_must_run(c);
    ck_assert_uint_eq(c->out[0]->count, N);
    ck_assert_int_eq(c->out[0]->dtype, dtype);
    for (size_t i = 0; i < N; i++)
        numbers[i] = dq_tensor_get_double(c->out[0], i);
}

/* All types and forms give the same numbers, each rounded once to its type. */
START_TEST(every_type_rounds_the_same_numbers)
{
    static double exact[N], got[N];
    for (int normal = 0; normal < 2; normal++) {
        ops_case c, rounded;
        draw(&c, normal, false, true, DQ_DOUBLE, exact);
        ops_end(&c);
        double sum = 0, squares = 0;
        for (size_t i = 0; i < N; i++) {
            ck_assert(normal || (exact[i] >= -3 && exact[i] < 5));
            sum += exact[i];
            squares += exact[i] * exact[i];
        }
        const double mean = sum / N, variance = squares / N - mean * mean;
        ck_assert_double_eq_tol(mean, normal ? -3 : 1, normal ? 0.4 : 0.2);
        ck_assert_double_eq_tol(variance, normal ? 25 : 64.0 / 12, normal ? 2.5 : 0.4);
        for (size_t t = 0; t < FLOAT_TYPES; t++)
            for (int form = 0; form < 3; form++) {
                ops_begin(&rounded, "", "Identity", 25);
                const dq_tensor *want = ops_in(&rounded, float_types[t], OPS_DIMS(N / 2, 2), exact);
                draw(&c, normal, form > 0, form != 1, float_types[t], got);
                ck_assert_mem_eq(c.out[0]->data, want->data, want->size);
                ops_end(&c);
                ops_end(&rounded);
            }
    }
}
END_TEST

/* Without a seed the node's name chooses the numbers: two nodes differ, a node repeats its own. */
START_TEST(names_are_seeds)
{
    static const char *const names[] = {"a", "b", "a", NULL};
    float kept[4][64];
    for (int i = 0; i < 4; i++) {
        ops_case c;
        ops_begin(&c, "", "RandomUniform", 1);
        c.node.name = names[i];
        ops_ints(&c, "shape", 1, (const int64_t[]){64});
        ops_must_run(&c);
        memcpy(kept[i], c.out[0]->data, sizeof kept[0]);
        ops_end(&c);
    }
    ck_assert_mem_eq(kept[0], kept[2], sizeof kept[0]);
    ck_assert_mem_ne(kept[0], kept[1], sizeof kept[0]);
    ck_assert_mem_ne(kept[0], kept[3], sizeof kept[0]);
}
END_TEST

/* Every type that the schema gives a result: ones with the probability of the input. */
START_TEST(bernoulli_of_every_type)
{
    static const dq_dtype types[] = {DQ_FLOAT16, DQ_BFLOAT16, DQ_FLOAT,  DQ_DOUBLE, DQ_UINT8,
                                     DQ_UINT16,  DQ_UINT32,   DQ_UINT64, DQ_INT8,   DQ_INT16,
                                     DQ_INT32,   DQ_INT64,    DQ_BOOL};
    static double chances[N];
    for (size_t i = 0; i < N; i++)
        chances[i] = i % 4 == 0 ? 0 : i % 4 == 1 ? 1 : 0.25;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        ops_case c;
        size_t ones = 0;
        ops_begin(&c, "", "Bernoulli", 22);
        ops_in(&c, t % 2 ? DQ_DOUBLE : DQ_FLOAT, OPS_DIMS(N), chances);
        ops_int(&c, "dtype", types[t]);
        ops_float(&c, "seed", 1);
        ops_must_run(&c);
        ck_assert_int_eq(c.out[0]->dtype, types[t]);
        for (size_t i = 0; i < N; i++) {
            const double x = dq_tensor_get_double(c.out[0], i);
            ck_assert(x == 0 || x == 1);
            ck_assert(i % 4 > 1 || x == (double)(i % 4));
            ones += i % 4 > 1 && x == 1;
        }
        ck_assert_double_eq_tol((double)ones / (N / 2), 0.25, 0.04);
        ops_end(&c);
    }
}
END_TEST

/* Logarithms that are not normalized; a class of probability 0 is never drawn. */
START_TEST(multinomial_follows_the_probabilities)
{
    static const dq_dtype types[] = {DQ_INT32, DQ_INT64};
    const double rows[2][3] = {{1000, 1000 + log(3), -HUGE_VAL}, {-HUGE_VAL, -HUGE_VAL, -5}};
    for (int t = 0; t < 2; t++) {
        ops_case c;
        size_t counts[2][3] = {{0}};
        ops_begin(&c, "", "Multinomial", 22);
        ops_in(&c, t ? DQ_DOUBLE : DQ_FLOAT, OPS_DIMS(2, 3), rows[0]);
        ops_int(&c, "sample_size", N);
        ops_int(&c, "dtype", types[t]);
        ops_float(&c, "seed", 2);
        ops_must_run(&c);
        ck_assert_int_eq(c.out[0]->dtype, types[t]);
        ck_assert_uint_eq(c.out[0]->count, 2 * N);
        for (size_t i = 0; i < 2 * N; i++) {
            const int64_t drawn = dq_tensor_get_int(c.out[0], i);
            ck_assert(drawn >= 0 && drawn < 3);
            counts[i / N][drawn]++;
        }
        ck_assert_double_eq_tol((double)counts[0][1] / N, 0.75, 0.03);
        ck_assert_uint_eq(counts[0][2], 0);
        ck_assert_uint_eq(counts[1][2], N);
        ops_end(&c);
    }
    ops_case c; /* no draw, and no row */
    ops_begin(&c, "", "Multinomial", 7);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_int(&c, "sample_size", 0);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(0, 0), NULL);
    ops_end(&c);
}
END_TEST

/* Every generator refuses an attribute 'dtype' that is no type. */
START_TEST(unknown_types_are_refused)
{
    static const char *const names[] = {"RandomUniform",    "RandomNormal", "RandomUniformLike",
                                        "RandomNormalLike", "Bernoulli",    "Multinomial"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ops_case c;
        ops_begin(&c, "", names[i], 22);
        ops_int(&c, "dtype", 99);
        if (i < 2)
            ops_ints(&c, "shape", 1, (const int64_t[]){2});
        else
            ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
        ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'dtype' is 99, which is no type");
        ops_end(&c);
    }
}
END_TEST

START_TEST(shapes_are_refused)
{
    ops_case c;
    ops_begin(&c, "", "Multinomial", 22);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has rank 1, expected rows of one class or more");
    ops_end(&c);
    ops_begin(&c, "", "Multinomial", 22);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 0), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has rank 2, expected rows of one class or more");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("random", NULL, NULL);
    add_test(&tests, seeds_and_distributions);
    add_test(&tests, every_type_rounds_the_same_numbers);
    add_test(&tests, names_are_seeds);
    add_test(&tests, bernoulli_of_every_type);
    add_test(&tests, multinomial_follows_the_probabilities);
    add_test(&tests, unknown_types_are_refused);
    add_test(&tests, shapes_are_refused);
    return test_program_run(&tests);
}
