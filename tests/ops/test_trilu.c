/* SPDX-License-Identifier: Apache-2.0 */
/* Trilu. */
#include "harness.h"

static void triangle(int64_t upper, double k, const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Trilu", 14);
    ops_int(&c, "upper", upper);
    ops_in(&c, DQ_INT16, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT64, OPS_SCALAR, &k);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(2, 3), want);
    ops_end(&c);
}

START_TEST(triangles)
{
    triangle(1, 0, OPS_VALUES(1, 2, 3, 0, 5, 6));
    triangle(0, 0, OPS_VALUES(1, 0, 0, 4, 5, 0));
    triangle(1, 1, OPS_VALUES(0, 2, 3, 0, 0, 6));
    triangle(0, -1, OPS_VALUES(0, 0, 0, 4, 0, 0));
    triangle(1, -9223372036854775808.0, OPS_VALUES(1, 2, 3, 4, 5, 6));
    triangle(1, 1e18, OPS_VALUES(0, 0, 0, 0, 0, 0));
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("trilu", NULL, NULL);
    add_test(&tests, triangles);
    return test_program_run(&tests);
}
