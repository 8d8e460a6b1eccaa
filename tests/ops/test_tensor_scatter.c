/* SPDX-License-Identifier: Apache-2.0 */
/* TensorScatter. */
#include "harness.h"

START_TEST(circular_cache_and_one_that_overflows)
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

int main(void)
{
    test_program tests = test_program_begin("tensor_scatter", NULL, NULL);
    add_test(&tests, circular_cache_and_one_that_overflows);
    return test_program_run(&tests);
}
