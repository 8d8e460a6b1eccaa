/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun ConvIntegerToFloat: values by hand, and its refusals. tests/fusion holds it against the nodes that it
 * stands for. */
#include "harness.h"

/* x [1, 2, 2] = {1 2; 3 4} - 1 and w [2, 2, 1] = {1 1; 2 -1}: sums {2 4; -2 -1}. */
static void begin(ops_case *c)
{
    ops_begin(c, "dqrun", "ConvIntegerToFloat", 1);
    ops_in(c, DQ_UINT8, OPS_DIMS(1, 2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(c, DQ_INT8, OPS_DIMS(2, 2, 1), OPS_VALUES(1, 1, 2, -1));
    ops_in(c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(1));
    ops_skip(c);
    ops_in(c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
}

START_TEST(plain)
{
    ops_case c;
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(4, 8, -4, -2));
    ops_end(&c);
}
END_TEST

START_TEST(everything)
{
    const float clip[] = {-3, 105};
    ops_case c;
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(4, 2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(100, -7));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(1, -1, 5, 7));
    ops_floats(&c, "clip", 2, clip);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(105, 105, -3, -1));
    ops_end(&c);
}
END_TEST

START_TEST(broadcast)
{
    ops_case c;
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(4, 2));
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(10, 20));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(14, 18, 18, 19));
    ops_end(&c);
}
END_TEST

/* Codes of x are its values: their range is 0 to 255. */
static void begin_floats(ops_case *c, dq_dtype dtype)
{
    ops_begin(c, "dqrun", "ConvIntegerToFloat", 1);
    ops_in(c, dtype, OPS_DIMS(1, 2, 2), OPS_VALUES(0, 1, 2, 255));
    ops_in(c, DQ_INT8, OPS_DIMS(2, 2, 1), OPS_VALUES(1, 1, 2, -1));
    ops_skip(c);
    ops_skip(c);
    ops_skip(c);
    ops_in(c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(2));
}

START_TEST(floats)
{
    ops_case c;
    begin_floats(&c, DQ_FLOAT);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(4, 512, -4, -506));
    ops_end(&c);
    begin_floats(&c, DQ_UINT8);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 4 is missing, expected where x is no float");
    ops_end(&c);
}
END_TEST

START_TEST(refusals)
{
    const float clip[] = {0, 1, 2};
    ops_case c;
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 5 has 3 elements, expected 1 or 2 (output channels)");
    ops_end(&c);
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 6 has 4 elements, expected 1 or 2 (output channels)");
    ops_end(&c);
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 7 has shape [2,2,2], expected one that broadcasts to [1,2,2]");
    ops_end(&c);
    begin(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_floats(&c, "clip", 3, clip);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'clip' has 3 values, expected 2");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("conv_integer_to_float", NULL, NULL);
    add_test(&tests, plain);
    add_test(&tests, everything);
    add_test(&tests, broadcast);
    add_test(&tests, floats);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
