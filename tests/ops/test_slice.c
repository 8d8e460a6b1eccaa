/* SPDX-License-Identifier: Apache-2.0 */
/* Slice. */
#include "harness.h"

/* Adds starts, ends, axes and steps of one axis. */
static void bounds(ops_case *c, double start, double end, double axis, double step)
{
    ops_in(c, DQ_INT64, OPS_VECTOR(start));
    ops_in(c, DQ_INT64, OPS_VECTOR(end));
    ops_in(c, DQ_INT64, OPS_VECTOR(axis));
    ops_in(c, DQ_INT64, OPS_VECTOR(step));
}

START_TEST(slices)
{
    ops_case c;
    ops_begin(&c, "", "Slice", 13); /* backwards, and past the ends */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 4), OPS_VALUES(0, 1, 2, 3, 4, 5, 6, 7));
    ops_in(&c, DQ_INT64, OPS_VECTOR(100, -100));
    ops_in(&c, DQ_INT64, OPS_VECTOR(-100, 100));
    ops_in(&c, DQ_INT64, OPS_VECTOR(-1, 0));
    ops_in(&c, DQ_INT64, OPS_VECTOR(-2, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(3, 1, 7, 5));
    ops_end(&c);

    ops_begin(&c, "", "Slice", 13); /* back from before the first; there is none to begin at */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    bounds(&c, -30, -30, 0, -1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(1));
    ops_end(&c);
    ops_begin(&c, "", "Slice", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    bounds(&c, -30, -30, 0, -1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Slice", 13); /* the extreme numbers */
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, OPS_VECTOR(2));
    ops_in(&c, DQ_INT64, OPS_VECTOR(-9223372036854775808.0));
    ops_skip(&c);
    ops_in(&c, DQ_INT64, OPS_VECTOR(-9223372036854775808.0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1), OPS_VALUES(3));
    ops_end(&c);

    ops_begin(&c, "", "Slice", 1);
    ops_ints(&c, "starts", OPS_INTS(1));
    ops_ints(&c, "ends", OPS_INTS(-1));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(4), OPS_VALUES(1, 2, 3, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(2, 3));
    ops_end(&c);

    ops_begin(&c, "", "Slice", 10); /* nothing left */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_in(&c, DQ_INT32, OPS_VECTOR(1));
    ops_in(&c, DQ_INT32, OPS_VECTOR(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0, 2), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Slice", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    bounds(&c, 0, 1, 0, 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has a step of 0 along axis 0");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("slice", NULL, NULL);
    add_test(&tests, slices);
    return test_program_run(&tests);
}
