/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearSigmoid and QLinearLeakyRelu. */
#include "harness.h"

START_TEST(zero_points_of_sigmoid_may_be_left_out)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearSigmoid", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(0, 127, -128));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_skip(&c);
    ops_scalar(&c, DQ_FLOAT, 1.0 / 128);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(3), OPS_VALUES(64, 127, 0));
    ops_end(&c);
}
END_TEST

START_TEST(leaky_relu)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearLeakyRelu", 1);
    ops_float(&c, "alpha", 0.5f);
    ops_in(&c, DQ_UINT8, OPS_DIMS(5), OPS_VALUES(128, 255, 0, 126, 125));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 128);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 100);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(5), OPS_VALUES(100, 227, 36, 99, 98)); /* -1.5 rounds to -2 */
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_unary", NULL, NULL);
    add_test(&tests, zero_points_of_sigmoid_may_be_left_out);
    add_test(&tests, leaky_relu);
    return test_program_run(&tests);
}
