/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that put elements in places that other tensors name, and those whose result's length depends on
 * data. */
#include "harness.h"

#include <math.h>

static void scatter_elements(ops_case *c, const char *reduction, dq_dtype dtype, const double *data,
                             const double *indices, const double *updates)
{
    ops_begin(c, "", "ScatterElements", 18);
    ops_string(c, "reduction", reduction);
    ops_in(c, dtype, OPS_DIMS(3), data);
    ops_in(c, DQ_INT64, OPS_DIMS(2), indices);
    ops_in(c, dtype, OPS_DIMS(2), updates);
}

START_TEST(joins)
{
    static const struct {
        const char *reduction;
        dq_dtype dtype;
        double data[3], indices[2], updates[2], want[3];
    } rows[] = {
        {"none", DQ_UINT8, {1, 2, 3}, {-1, 2}, {8, 9}, {1, 2, 9}},
        {"add", DQ_INT8, {100, 2, 3}, {0, 0}, {100, 100}, {44, 2, 3}},
        {"mul", DQ_UINT16, {1, 300, 3}, {1, 0}, {300, 7}, {7, 24464, 3}},
        {"min", DQ_INT32, {1, 2, 3}, {0, 1}, {-5, 9}, {-5, 2, 3}},
        {"max", DQ_FLOAT, {1, 2, 3}, {0, 1}, {(double)NAN, 9}, {(double)NAN, 9, 3}},
        {"add", DQ_FLOAT, {1, 2, 3}, {2, 2}, {0.5, 0.25}, {1, 2, 3.75}},
        {"mul", DQ_FLOAT, {1, 2, 3}, {1, 1}, {3, -2}, {1, -12, 3}},
        {"min", DQ_FLOAT, {1, (double)NAN, 3}, {1, 2}, {5, 2}, {1, (double)NAN, 2}},
        {"add", DQ_FLOAT16, {1, 2, 3}, {2, 0}, {0.5, 0.25}, {1.25, 2, 3.5}},
        {"max", DQ_BFLOAT16, {1, 2, 3}, {2, 0}, {0.5, 8}, {8, 2, 3}},
        {"none", DQ_FLOAT16, {1, 2, 3}, {2, 0}, {0.5, 0.25}, {0.25, 2, 0.5}},
        {"min", DQ_FLOAT16, {(double)NAN, 2, 3}, {0, 1}, {1, 1.5}, {(double)NAN, 1.5, 3}},
        {"add", DQ_BOOL, {1, 0, 0}, {0, 1}, {1, 1}, {1, 1, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ops_case c;
        scatter_elements(&c, rows[i].reduction, rows[i].dtype, rows[i].data, rows[i].indices,
                         rows[i].updates);
        ops_must_run(&c);
        ops_want(&c, 0, rows[i].dtype, OPS_DIMS(3), rows[i].want);
        ops_end(&c);
    }
    ops_case c; /* above INT64_MAX is more, not less */
    ops_begin(&c, "", "ScatterElements", 18);
    ops_string(&c, "reduction", "max");
    ops_in_bits(&c, DQ_UINT64, OPS_DIMS(1), (const uint64_t[]){1});
    ops_in(&c, DQ_INT32, OPS_DIMS(1), OPS_VALUES(0));
    ops_in_bits(&c, DQ_UINT64, OPS_DIMS(1), (const uint64_t[]){UINT64_MAX});
    ops_must_run(&c);
    ops_want_bits(&c, 0, DQ_UINT64, OPS_DIMS(1), (const uint64_t[]){UINT64_MAX});
    ops_end(&c);
}
END_TEST

/* More updates than are taken at a time, of elements of each width; of two for one place the later stays. */
START_TEST(scatters_many)
{
    static const dq_dtype types[] = {DQ_INT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    enum { N = 600 };
    static double data[2 * N], index[2 * N], updates[2 * N], want[2 * N];
    for (int axis = 0; axis < 2; axis++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            for (int i = 0; i < 2 * N; i++)
                want[i] = data[i] = i % 11;
            for (int i = 0; i < 2 * N; i++) {
                int at = axis ? i % N * 7 % 450 : i % 3 % 2;
                updates[i] = 20 + i % 97;
                index[i] = i % 2 ? at : at - (axis ? N : 2);
                want[axis ? i / N * N + at : at * N + i % N] = updates[i];
            }
            ops_case c;
            ops_begin(&c, "", "ScatterElements", 18);
            ops_int(&c, "axis", axis);
            ops_in(&c, types[t], OPS_DIMS(2, N), data);
            ops_in(&c, DQ_INT64, OPS_DIMS(2, N), index);
            ops_in(&c, types[t], OPS_DIMS(2, N), updates);
            ops_must_run(&c);
            ops_want(&c, 0, types[t], OPS_DIMS(2, N), want);
            ops_end(&c);
        }
}
END_TEST

START_TEST(scatter_refusals)
{
    ops_case c;
    scatter_elements(&c, "none", DQ_FLOAT, NULL, OPS_VALUES(0, 3), NULL);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds 3, outside an axis of 3");
    ops_end(&c);
    scatter_elements(&c, "none", DQ_FLOAT, NULL, OPS_VALUES(0, -4), NULL);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds -4, outside an axis of 3");
    ops_end(&c);
    static const double far[] = {[599] = -3};
    ops_begin(&c, "", "ScatterElements", 18);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 600), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 600), far);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 600), NULL);
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds -3, outside an axis of 2");
    ops_end(&c);
    scatter_elements(&c, "sum", DQ_FLOAT, NULL, OPS_VALUES(0, 1), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'reduction' is 'sum', expected none, add, mul, min or max");
    ops_end(&c);

    ops_begin(&c, "", "ScatterND", 18);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 1), OPS_VALUES(-1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has shape [1,2], expected [1,3]");
    ops_end(&c);
}
END_TEST

START_TEST(tuples)
{
    ops_case c;
    ops_begin(&c, "", "ScatterND", 18);
    ops_in(&c, DQ_INT4, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 1), OPS_VALUES(-1));
    ops_in(&c, DQ_INT4, OPS_DIMS(1, 3), OPS_VALUES(-7, -6, -5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, -7, -6, -5));
    ops_end(&c);

    ops_begin(&c, "", "GatherND", 13);
    ops_int(&c, "batch_dims", 1);
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 1), OPS_VALUES(2, -3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2), OPS_VALUES(3, 4));
    ops_end(&c);

    ops_begin(&c, "", "GatherND", 13); /* empty tuples name the whole */
    ops_in(&c, DQ_INT32, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 1, 2));
    ops_end(&c);

    ops_begin(&c, "", "GatherND", 13);
    ops_in(&c, DQ_INT32, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(2));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds 2, outside an axis of 2");
    ops_end(&c);
}
END_TEST

START_TEST(one_hot)
{
    for (int version = 9; version <= 11; version += 2) {
        ops_case c;
        ops_begin(&c, "", "OneHot", version);
        ops_int(&c, "axis", 0);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(1.9, -1, 3, (double)NAN));
        ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(2));
        ops_in(&c, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(5, 6));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 4),
                 version == 9 ? OPS_VALUES(5, 5, 5, 5, 6, 5, 5, 5) : OPS_VALUES(5, 5, 5, 5, 6, 6, 5, 5));
        ops_end(&c);
    }
    ops_case c;
    ops_begin(&c, "", "OneHot", 11);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), NULL);
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(-1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 is -1, expected 1 or more");
    ops_end(&c);
}
END_TEST

START_TEST(chosen)
{
    ops_case c;
    ops_begin(&c, "", "NonZero", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(-0.0, 1, (double)NAN, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 2), OPS_VALUES(0, 1, 1, 0));
    ops_end(&c);
    ops_begin(&c, "", "NonZero", 13);
    ops_in(&c, DQ_BOOL, OPS_SCALAR, OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(0, 1), NULL);
    ops_end(&c);
    ops_begin(&c, "", "Compress", 11);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_INT4, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_BOOL, OPS_DIMS(2), OPS_VALUES(0, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(2, 1), OPS_VALUES(2, 5));
    ops_end(&c);
    ops_begin(&c, "", "Compress", 11);
    ops_in(&c, DQ_INT16, OPS_DIMS(0), NULL);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2), OPS_VALUES(1, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(0), NULL);
    ops_end(&c);
}
END_TEST

/* Every type and a condition that ends before the axis, beside the definition. */
static void compress(dq_dtype dtype, int64_t outer, const double *x, const double *condition)
{
    enum { N = 700, SLICE = 2, WANTED = 600 };
    static double want[2 * N * SLICE];
    size_t count = 0;
    for (size_t o = 0; o < (size_t)outer; o++)
        for (size_t i = 0; i < WANTED; i++)
            for (size_t k = 0; k < SLICE && condition[i] != 0; k++)
                want[count++] = x[(o * N + i) * SLICE + k];
    ops_case c;
    ops_begin(&c, "", "Compress", 11);
    ops_int(&c, "axis", 1);
    ops_in(&c, dtype, OPS_DIMS(outer, N, SLICE), x);
    ops_in(&c, DQ_BOOL, OPS_DIMS(WANTED), condition);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(outer, (int64_t)count / outer / SLICE, SLICE), want);
    ops_end(&c);
}

START_TEST(long_conditions)
{
    static const dq_dtype types[] = {DQ_BOOL, DQ_INT4, DQ_INT16, DQ_FLOAT, DQ_INT64};
    double x[2 * 700 * 2], condition[600];
    for (size_t rare = 0; rare < 2; rare++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            for (size_t i = 0; i < sizeof x / sizeof *x; i++)
                x[i] = (double)(types[t] == DQ_BOOL ? i % 3 == 0 : i % 7);
            for (size_t i = 0; i < 600; i++)
                condition[i] = rare ? i % 101 == 41 : i * i % 5 < 2;
            compress(types[t], 1, x, condition);
            compress(types[t], 2, x, condition);
        }
}
END_TEST

START_TEST(caches)
{
    ops_case c;
    ops_begin(&c, "", "TensorScatter", 24);
    ops_int(&c, "axis", 1);
    ops_string(&c, "mode", "circular");
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(-1, -2, -3, -4));
    ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(2, 9223372036854774784.0));
    ops_must_run(&c); /* 2^63 - 1024 is 1 modulo 3 */
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2, 3), OPS_VALUES(-2, 2, -1, 4, -3, -4));
    ops_end(&c);
    ops_begin(&c, "", "TensorScatter", 24);
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 3), NULL);
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 2), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(2));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 2 holds 2: 2 steps from there on do not fit in a cache of 3");
    ops_end(&c);
}
END_TEST

START_TEST(diagonals)
{
    ops_case c;
    ops_begin(&c, "", "EyeLike", 22);
    ops_int(&c, "dtype", DQ_INT64);
    ops_int(&c, "k", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(3, 2), OPS_VALUES(0, 0, 1, 0, 0, 1));
    ops_end(&c);
    ops_begin(&c, "", "EyeLike", 22);
    ops_int(&c, "k", INT64_MIN);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(0, 0));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("scatter");
    add_test(&tests, joins);
    add_test(&tests, scatters_many);
    add_test(&tests, scatter_refusals);
    add_test(&tests, tuples);
    add_test(&tests, one_hot);
    add_test(&tests, chosen);
    add_test(&tests, long_conditions);
    add_test(&tests, caches);
    add_test(&tests, diagonals);
    return run_suite(tests.suite);
}
