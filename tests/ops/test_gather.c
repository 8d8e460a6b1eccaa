/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements and GatherND. */
#include "harness.h"

START_TEST(gathers)
{
    ops_case c;
    ops_begin(&c, "", "Gather", 13);
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 2), OPS_VALUES(-1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2), OPS_VALUES(3, 1, 6, 4));
    ops_end(&c);
}
END_TEST

START_TEST(gathers_elements)
{
    ops_case c;
    ops_begin(&c, "", "GatherElements", 13);
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 2), OPS_VALUES(0, 0, -1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(1, 1, 4, 3));
    ops_end(&c);
}
END_TEST

START_TEST(indices_outside_are_refused)
{
    ops_case c;
    ops_begin(&c, "", "Gather", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_INT64, OPS_VECTOR(2));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 holds 2, outside an axis of 2");
    ops_end(&c);
}
END_TEST

/* Several blocks of indices, for elements of each width. */
START_TEST(gathers_many)
{
    static const dq_dtype types[] = {DQ_INT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    enum { N = 600 };
    static double data[2 * N], index[N], along[2 * N], across[2 * N];
    for (int i = 0; i < 2 * N; i++)
        data[i] = i * 37 % 101;
    for (int i = 0; i < N; i++) {
        int at = i * 7 % N;
        index[i] = i % 3 ? at : at - N;
        along[i] = data[at];
        along[N + i] = data[N + at];
        across[i] = data[i % 5 % 2 ? N + i : i];
    }
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        ops_case c;
        ops_begin(&c, "", "Gather", 13);
        ops_int(&c, "axis", 1);
        ops_in(&c, types[t], OPS_DIMS(2, N), data);
        ops_in(&c, t % 2 ? DQ_INT32 : DQ_INT64, OPS_DIMS(N), index);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, N), along);
        ops_end(&c);

        double row[N];
        ops_begin(&c, "", "GatherElements", 13);
        ops_in(&c, types[t], OPS_DIMS(2, N), data);
        for (int i = 0; i < N; i++)
            row[i] = i % 5 % 2 ? -1 : 0;
        ops_in(&c, DQ_INT64, OPS_DIMS(1, N), row);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(1, N), across);
        ops_end(&c);
    }
}
END_TEST

START_TEST(gathers_by_tuples)
{
    ops_case c;
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

int main(void)
{
    test_program tests = test_program_begin("gather", NULL, NULL);
    add_test(&tests, gathers);
    add_test(&tests, gathers_elements);
    add_test(&tests, indices_outside_are_refused);
    add_test(&tests, gathers_many);
    add_test(&tests, gathers_by_tuples);
    return test_program_run(&tests);
}
