/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearSoftmax. */
#include "harness.h"

#include <math.h>

static void softmax(dq_dtype dtype, int64_t opset, int64_t axis, double sy, double zy, const double *want)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearSoftmax", 1);
    ops_int(&c, "opset", opset);
    ops_int(&c, "axis", axis);
    ops_in(&c, dtype, OPS_DIMS(2, 2), OPS_VALUES(3, 3, 1, 2));
    ops_scalar(&c, DQ_FLOAT, 0.69314718055994531); /* a step of the code doubles the exponential */
    ops_skip(&c);
    ops_scalar(&c, DQ_FLOAT, sy);
    ops_scalar(&c, dtype, zy);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(2, 2), want);
    ops_end(&c);
}

START_TEST(softmax_rows)
{
    softmax(DQ_UINT8, 13, -1, 1.0 / 256, 0, OPS_VALUES(128, 128, 85, 171));
    softmax(DQ_UINT8, 13, 0, 1.0 / 256, 0, OPS_VALUES(205, 171, 51, 85));
    softmax(DQ_INT8, 12, 0, 1.0 / 256, -128, OPS_VALUES(-35, -35, -105, -81)); /* 8 : 8 : 2 : 4 of 22 */
    softmax(DQ_INT8, 12, 1, 1.0 / 256, 0, OPS_VALUES(127, 127, 85, 127));
    softmax(DQ_UINT8, 13, 1, 0.3, 9, OPS_VALUES(11, 11, 10, 11)); /* floor(1 / 0.3) = 3: 1.5, 1, 2 */
}
END_TEST

START_TEST(softmax_of_a_long_row)
{
    /* 600 codes of 20 and one of 21, whose exponential is twice as large: 1 and 2 of 602, times 600 */
    double x[601], want[601];
    for (int i = 0; i < 601; i++) {
        x[i] = i == 7 ? 21 : 20;
        want[i] = i == 7 ? 102 : 101;
    }
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearSoftmax", 1);
    ops_int(&c, "opset", 13);
    ops_in(&c, DQ_INT8, OPS_DIMS(601), x);
    ops_scalar(&c, DQ_FLOAT, 0.69314718055994531);
    ops_skip(&c);
    ops_scalar(&c, DQ_FLOAT, 1.0 / 600);
    ops_scalar(&c, DQ_INT8, 100);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(601), want);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_softmax", NULL, NULL);
    add_test(&tests, softmax_rows);
    add_test(&tests, softmax_of_a_long_row);
    return test_program_run(&tests);
}
