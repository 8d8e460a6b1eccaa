/* SPDX-License-Identifier: Apache-2.0 */
/* Compress. */
#include "harness.h"

START_TEST(compresses)
{
    ops_case c;
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

/* A condition that is shorter than the axis, against the definition. */
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

int main(void)
{
    test_program tests = test_program_begin("compress", NULL, NULL);
    add_test(&tests, compresses);
    add_test(&tests, long_conditions);
    return test_program_run(&tests);
}
