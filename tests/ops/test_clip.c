/* SPDX-License-Identifier: Apache-2.0 */
/* Clip. */
#include "harness.h"

#include <float.h>
#include <math.h>

START_TEST(clip_limits)
{
    ops_case c;
    ops_begin(&c, "", "Clip", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(-1, 5, (double)NAN, 2));
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(-1, 3, (double)NAN, 2));
    ops_end(&c);

    ops_begin(&c, "", "Clip", 12); /* lower above upper: the upper */
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(-100, 0, 100));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(5));
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(-5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(3), OPS_VALUES(-5, -5, -5));
    ops_end(&c);

    ops_begin(&c, "", "Clip", 13); /* no upper limit, above INT64_MAX */
    ops_in(&c, DQ_UINT64, OPS_DIMS(2), OPS_VALUES(18446744073709549568.0, 1));
    ops_in(&c, DQ_UINT64, OPS_SCALAR, OPS_VALUES(3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT64, OPS_DIMS(2), OPS_VALUES(18446744073709549568.0, 3));
    ops_end(&c);

    ops_begin(&c, "", "Clip", 6);
    ops_float(&c, "min", -1);
    ops_float(&c, "max", FLT_MAX);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(-3, 65504));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(-1, 65504));
    ops_end(&c);

    ops_begin(&c, "", "Clip", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected a scalar");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("clip", NULL, NULL);
    add_test(&tests, clip_limits);
    return test_program_run(&tests);
}
