/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <math.h>

/* Range [-1, 4]: scale 5/255, zero point round(51) = 51. */
START_TEST(both_signs)
{
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(-1, 4, 0, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 2), OPS_VALUES(0, 255, 51, 153));
    ops_want(&c, 1, DQ_FLOAT, OPS_SCALAR, OPS_VALUES((double)(5.0f / 255.0f)));
    ops_want(&c, 2, DQ_UINT8, OPS_SCALAR, OPS_VALUES(51));
    ops_end(&c);
}
END_TEST

/* int8 has the range [-127, 127], and its minimum is -127. */
START_TEST(int8_by_schema)
{
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    c.out_types[0] = _i ? DQ_UNDEFINED : DQ_INT8; /* then the zero point's type says it, not the scale's */
    c.out_types[1] = DQ_FLOAT;
    c.out_types[2] = DQ_INT8;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(-127, 127, (double)NAN, 0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(4), OPS_VALUES(-127, 127, -127, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_want(&c, 2, DQ_INT8, OPS_SCALAR, OPS_VALUES(0));
    ops_end(&c);
}
END_TEST

static void check_zeros(size_t rank, const int64_t *dims)
{
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, rank, dims, NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, rank, dims, OPS_VALUES(0, 0, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_SCALAR, OPS_VALUES((double)(1.0f / 255.0f)));
    ops_want(&c, 2, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    ops_end(&c);
}

START_TEST(zeros_and_empty)
{
    check_zeros(OPS_DIMS(3));
    check_zeros(OPS_SCALAR);
    check_zeros(OPS_DIMS(2, 0));
}
END_TEST

/* NaN has no part in the range; an infinite range gives finite numbers the zero point. */
START_TEST(special_values)
{
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES((double)NAN, 255, 2.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(3), OPS_VALUES(0, 255, 2));
    ops_want(&c, 1, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(1));
    ops_end(&c);

    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES((double)INFINITY, -255, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(3), OPS_VALUES(0, 0, 0));
    ops_want(&c, 1, DQ_FLOAT, OPS_SCALAR, OPS_VALUES((double)INFINITY));
    ops_want(&c, 2, DQ_UINT8, OPS_SCALAR, OPS_VALUES(0));
    ops_end(&c);
}
END_TEST

/* Over several pieces: the extremes stand in different ones. */
START_TEST(many_elements)
{
    enum { N = 70001 };
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    dq_tensor *x = ops_in(&c, DQ_FLOAT, OPS_DIMS(N), NULL);
    for (size_t i = 0; i < N; i++)
        dq_data(x, float)[i] = (float)(i % 100);
    dq_data(x, float)[20000] = -55;
    dq_data(x, float)[N - 1] = 200;
    ops_must_run(&c);
    for (size_t i = 0; i < N; i++)
        ck_assert_int_eq(dq_data(c.out[0], uint8_t)[i], (int)dq_data(x, float)[i] + 55);
    ops_end(&c);
}
END_TEST

START_TEST(x_one_positive)
{
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_count = 3;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(510));
    ops_must_run(&c);
    ops_want(&c, 1, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
    ops_end(&c);
}
END_TEST

START_TEST(other_type)
{
    ops_case c;
    ops_begin(&c, "", "DynamicQuantizeLinear", 11);
    c.out_types[0] = DQ_INT16;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_must_refuse(&c, DQ_UNSUPPORTED, "output 0 'y' is int16, expected uint8 or int8");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("dynamic_quantize_linear", NULL, NULL);
    add_test(&tests, both_signs);
    add_loop_test(&tests, int8_by_schema, 0, 2);
    add_test(&tests, zeros_and_empty);
    add_test(&tests, special_values);
    add_test(&tests, many_elements);
    add_test(&tests, x_one_positive);
    add_test(&tests, other_type);
    return test_program_run(&tests);
}
