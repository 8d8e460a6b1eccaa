/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearConcat and QLinearWhere. */
#include "harness.h"

START_TEST(concat)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearConcat", 1);
    ops_int(&c, "axis", -1);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(250, 3));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(-2, -1, 127, 3));
    ops_scalar(&c, DQ_FLOAT, 2.5);
    ops_scalar(&c, DQ_INT8, -1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(250, 8, 10, 3, 255, 20)); /* -2.5 rounds to -2 */
    ops_end(&c);
}
END_TEST

START_TEST(where)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearWhere", 1);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT8, OPS_DIMS(2), OPS_VALUES(5, -5));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_INT8, 0);
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(100));
    ops_scalar(&c, DQ_FLOAT, 3);
    ops_scalar(&c, DQ_INT8, 0);
    ops_scalar(&c, DQ_FLOAT, 2);
    ops_scalar(&c, DQ_INT8, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(3, -1, 127, 127)); /* 2.5 and -2.5 round to even */
    ops_end(&c);
}
END_TEST

START_TEST(concat_refuses)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearConcat", 1);
    ops_int(&c, "axis", 1);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), NULL);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 0);
    ops_in(&c, DQ_UINT8, OPS_DIMS(3, 1), NULL);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 5 has shape [3,1], which does not fit to [2,1] but on axis 1");
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "QLinearConcat", 1);
    ops_int(&c, "axis", 0);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has 3 inputs, expected 2 and then 3 for each tensor: itself, its scale, its zero point");
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "QLinearConcat", 1);
    ops_int(&c, "axis", 0);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_INT8, 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 4 is int8, expected the zero point of input 2, uint8");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_select", NULL, NULL);
    add_test(&tests, concat);
    add_test(&tests, where);
    add_test(&tests, concat_refuses);
    return test_program_run(&tests);
}
