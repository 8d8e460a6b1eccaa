/* SPDX-License-Identifier: Apache-2.0 */
/* Range. */
#include "harness.h"

#include <math.h>

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

int main(void)
{
    test_group tests = ops_group("range");
    add_test(&tests, ranges);
    return run_suite(tests.suite);
}
