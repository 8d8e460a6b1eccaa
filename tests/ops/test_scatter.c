/* SPDX-License-Identifier: Apache-2.0 */
/* ScatterElements and ScatterND. */
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

START_TEST(reductions)
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

/* Several blocks of updates, for elements of each width; the later of two updates of one element stays. */
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

START_TEST(scatters_by_tuples)
{
    ops_case c;
    ops_begin(&c, "", "ScatterND", 18);
    ops_in(&c, DQ_INT4, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 1), OPS_VALUES(-1));
    ops_in(&c, DQ_INT4, OPS_DIMS(1, 3), OPS_VALUES(-7, -6, -5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, -7, -6, -5));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("scatter", NULL, NULL);
    add_test(&tests, reductions);
    add_test(&tests, scatters_many);
    add_test(&tests, scatter_refusals);
    add_test(&tests, scatters_by_tuples);
    return test_program_run(&tests);
}
