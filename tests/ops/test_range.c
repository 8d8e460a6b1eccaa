/* SPDX-License-Identifier: Apache-2.0 */
/* Range. */
#include "harness.h"

static void counts(dq_dtype dtype, double start, double limit, double delta, int64_t n, const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Range", 11);
    ops_in(&c, dtype, OPS_SCALAR, &start);
    ops_in(&c, dtype, OPS_SCALAR, &limit);
    ops_in(&c, dtype, OPS_SCALAR, &delta);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(n), want);
    ops_end(&c);
}

START_TEST(ranges)
{
    counts(DQ_INT64, 3, 10, 3, 3, OPS_VALUES(3, 6, 9));
    counts(DQ_INT16, 3, -4, -3, 3, OPS_VALUES(3, 0, -3));
    counts(DQ_INT32, 5, 5, 1, 0, NULL);
    counts(DQ_FLOAT, 0, 1, 0.25, 4, OPS_VALUES(0, 0.25, 0.5, 0.75));
    counts(DQ_INT64, -9223372036854775808.0, 9223372036854774784.0, 4611686018427387904.0, 4,
           OPS_VALUES(-9223372036854775808.0, -4611686018427387904.0, 0, 4611686018427387904.0));
    static const dq_dtype types[] = {DQ_INT16, DQ_INT32, DQ_INT64, DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE};
    double want[600];
    for (size_t i = 0; i < 600; i++)
        want[i] = 3 - 1.5 * (double)i;
    for (size_t t = 3; t < 6; t++)
        counts(types[t], 3, -897, -1.5, 600, want);
    for (size_t i = 0; i < 600; i++)
        want[i] = 3 - 2 * (double)i;
    for (size_t t = 0; t < 6; t++)
        counts(types[t], 3, -1196, -2, 600, want);
}
END_TEST

static void range_refused(dq_dtype dtype, double start, double limit, double delta, const char *message)
{
    ops_case c;
    ops_begin(&c, "", "Range", 11);
    ops_in(&c, dtype, OPS_SCALAR, &start);
    ops_in(&c, dtype, OPS_SCALAR, &limit);
    ops_in(&c, dtype, OPS_SCALAR, &delta);
    ops_must_refuse(&c, DQ_BAD_MODEL, message);
    ops_end(&c);
}

START_TEST(ranges_without_end_are_refused)
{
    static const char too_long[] = "has more elements than a tensor can hold";
    range_refused(DQ_INT64, 0, 5, 0, "input 2 is 0");
    range_refused(DQ_INT64, -0x1p63, 0x1p62, 1, too_long);
    range_refused(DQ_FLOAT, 0, 1, 0, too_long);
    range_refused(DQ_DOUBLE, 0, 0, 0, too_long);
    range_refused(DQ_DOUBLE, 0, 1, 1e-300, too_long);
    ops_case c;
    ops_begin(&c, "", "Range", 11);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(3, 4));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected a scalar");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("range", NULL, NULL);
    add_test(&tests, ranges);
    add_test(&tests, ranges_without_end_are_refused);
    return test_program_run(&tests);
}
