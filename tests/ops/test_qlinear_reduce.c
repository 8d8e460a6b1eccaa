/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceSumInteger and QLinearReduceMean. */
#include "harness.h"

START_TEST(integer_sums)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "ReduceSumInteger", 1);
    ops_ints(&c, "axes", 1, (const int64_t[]){-1});
    ops_int(&c, "keepdims", 0);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 3), OPS_VALUES(-128, -128, -128, 127, 1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2), OPS_VALUES(-384, 128));
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "ReduceSumInteger", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 2), OPS_VALUES(255, 255, 255, 255));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT32, OPS_DIMS(1, 1), OPS_VALUES(1020));
    ops_end(&c);
}
END_TEST

START_TEST(quantized_means)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearReduceMean", 1);
    ops_ints(&c, "axes", 1, (const int64_t[]){0});
    ops_int(&c, "keepdims", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 3),
           OPS_VALUES(10, 20, 255, 11, 24, 255)); /* means 10.5, 22, 255 less 5 */
    ops_scalar(&c, DQ_FLOAT, 2);
    ops_scalar(&c, DQ_UINT8, 5);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 3), OPS_VALUES(12, 35, 255));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_reduce", NULL, NULL);
    add_test(&tests, integer_sums);
    add_test(&tests, quantized_means);
    return test_program_run(&tests);
}
