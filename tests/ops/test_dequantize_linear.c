/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <math.h>

static const double nan_value = (double)NAN, inf = (double)INFINITY;

static void begin(ops_case *c, int version)
{
    ops_begin(c, "", "DequantizeLinear", version);
    c->formals[0] = "x";
    c->formals[1] = "x_scale";
    c->formals[2] = "x_zero_point";
}

static void check_row(dq_dtype x, double zero, dq_dtype scale_type, double scale, dq_dtype y, size_t n,
                      const double *in, const double *expected)
{
    ops_case c;
    begin(&c, 28);
    ops_int(&c, "output_dtype", y);
    ops_in(&c, x, OPS_DIMS((int64_t)n), in);
    ops_in(&c, scale_type, OPS_SCALAR, &scale);
    ops_in(&c, x, OPS_SCALAR, &zero);
    ops_must_run(&c);
    ops_want(&c, 0, y, OPS_DIMS((int64_t)n), expected);
    ops_end(&c);
}

#define ROW(x, zero, scale_type, scale, y, in, expected)                                                     \
    check_row(x, zero, scale_type, scale, y, sizeof(in) / sizeof *(in), in, expected)

START_TEST(integer_types)
{
    ROW(DQ_UINT8, 128, DQ_FLOAT, 0.5, DQ_FLOAT, OPS_VALUES(0, 128, 255), OPS_VALUES(-64, 0, 63.5));
    ROW(DQ_INT8, -128, DQ_FLOAT, 2, DQ_FLOAT, OPS_VALUES(-128, 127), OPS_VALUES(0, 510));
    ROW(DQ_UINT16, 65535, DQ_FLOAT, 1, DQ_FLOAT, OPS_VALUES(0, 65535), OPS_VALUES(-65535, 0));
    ROW(DQ_INT16, -32768, DQ_FLOAT, 1, DQ_FLOAT, OPS_VALUES(-32768, 32767), OPS_VALUES(0, 65535));
    ROW(DQ_UINT4, 15, DQ_FLOAT, 1, DQ_FLOAT, OPS_VALUES(0, 7, 15), OPS_VALUES(-15, -8, 0));
    ROW(DQ_INT2, -2, DQ_FLOAT, 3, DQ_FLOAT, OPS_VALUES(-2, -1, 0, 1), OPS_VALUES(0, 3, 6, 9));
    /* the difference does not fit in 32 bits, and is rounded to float before the product */
    ROW(DQ_INT32, -2147483648.0, DQ_FLOAT, 2, DQ_FLOAT, OPS_VALUES(2147483647, -2147483648.0),
        OPS_VALUES(8589934592.0, 0));
    ROW(DQ_INT32, 0, DQ_FLOAT, 3, DQ_FLOAT, OPS_VALUES(16777217), OPS_VALUES(50331648));
    /* a negative scale makes 0 a negative zero */
    ROW(DQ_INT8, 0, DQ_FLOAT, -2, DQ_FLOAT, OPS_VALUES(0, 1), OPS_VALUES(-0.0, -2));
}
END_TEST

START_TEST(float_types)
{
    ROW(DQ_FLOAT8E4M3FN, 0, DQ_FLOAT, 2, DQ_FLOAT, OPS_VALUES(448, -0.0, nan_value, 1.125),
        OPS_VALUES(896, -0.0, nan_value, 2.25));
    ROW(DQ_FLOAT8E5M2, 0, DQ_FLOAT, 2, DQ_FLOAT, OPS_VALUES(57344, 1.25), OPS_VALUES(114688, 2.5));
    ROW(DQ_FLOAT4E2M1, 1, DQ_FLOAT, 2, DQ_FLOAT, OPS_VALUES(6, -6, 0.5), OPS_VALUES(10, -14, -1));
    ROW(DQ_FLOAT6E3M2, 0, DQ_FLOAT, 1, DQ_FLOAT, OPS_VALUES(28, -0.0625), OPS_VALUES(28, -0.0625));
}
END_TEST

/* The product is rounded once: 2049 is no float16, and 65535 is beyond its range, but their halves are not.
 */
START_TEST(type_of_the_output)
{
    ROW(DQ_UINT16, 0, DQ_FLOAT16, 0.5, DQ_FLOAT16, OPS_VALUES(2049, 65535), OPS_VALUES(1024, 32768));
    ROW(DQ_UINT16, 0, DQ_FLOAT16, 0.25, DQ_FLOAT16, OPS_VALUES(8188, 65535), OPS_VALUES(2047, 16384));
    ROW(DQ_INT8, 0, DQ_FLOAT, 65504, DQ_FLOAT16, OPS_VALUES(1, 2, -2), OPS_VALUES(65504, inf, -inf));
    ROW(DQ_INT8, 0, DQ_FLOAT16, 3, DQ_FLOAT, OPS_VALUES(1, 2, -2), OPS_VALUES(3, 6, -6));
    ROW(DQ_INT16, 0, DQ_BFLOAT16, 1, DQ_BFLOAT16, OPS_VALUES(257, 259), OPS_VALUES(256, 260));
    ROW(DQ_INT8, 0, DQ_FLOAT8E8M0, 0.125, DQ_FLOAT16, OPS_VALUES(3, -8), OPS_VALUES(0.375, -1));
}
END_TEST

START_TEST(type_of_the_scale)
{
    ops_case c;
    begin(&c, 19);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(3, 4));
    ops_in(&c, DQ_BFLOAT16, OPS_SCALAR, OPS_VALUES(0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BFLOAT16, OPS_DIMS(2), OPS_VALUES(1.5, 2));
    ops_end(&c);
}
END_TEST

START_TEST(per_axis_and_blocked)
{
    ops_case c;
    begin(&c, 13);
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 10));
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0, 1, 10, 20));
    ops_end(&c);

    begin(&c, 13);
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 10));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 20, 3, 40));
    ops_end(&c);

    begin(&c, 21); /* 4-bit weights in blocks of 2 along the first axis of 3 x 2 */
    ops_int(&c, "axis", 0);
    ops_int(&c, "block_size", 2);
    ops_in(&c, DQ_INT4, OPS_DIMS(3, 2), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 10, 100, 1000));
    ops_in(&c, DQ_INT4, OPS_DIMS(2, 2), OPS_VALUES(1, 0, -1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3, 2), OPS_VALUES(0, 20, 2, 40, 600, 6000));
    ops_end(&c);
}
END_TEST

START_TEST(empty_and_rank_0)
{
    ops_case c;
    begin(&c, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_end(&c);

    begin(&c, 10);
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(-3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(-6));
    ops_end(&c);
}
END_TEST

START_TEST(refused)
{
    ops_case c;
    begin(&c, 13);
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 64), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "input 1 'x_scale' has 2 elements, expected 1 or 64 (axis 1 of input 0)");
    ops_end(&c);

    begin(&c, 24);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_FLOAT8E8M0, OPS_SCALAR, NULL);
    ops_must_refuse(
        &c, DQ_BAD_MODEL,
        "attribute 'output_dtype' is not given and input 1 'x_scale' is float8e8m0, which cannot be the "
        "output's type, expected float, float16 or bfloat16");
    ops_end(&c);

    begin(&c, 24);
    ops_int(&c, "output_dtype", DQ_DOUBLE);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "attribute 'output_dtype' is 11 (double), expected float, float16 or bfloat16");
    ops_end(&c);
}
END_TEST

START_TEST(microsoft_scale_of_one_element)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "DequantizeLinear", 1);
    ops_in(&c, DQ_INT4, OPS_DIMS(3), OPS_VALUES(-8, 7, 0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(0.5));
    ops_in(&c, DQ_INT4, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-4.5, 3, -0.5));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("dequantize_linear", NULL, NULL);
    add_test(&tests, integer_types);
    add_test(&tests, float_types);
    add_test(&tests, type_of_the_output);
    add_test(&tests, type_of_the_scale);
    add_test(&tests, per_axis_and_blocked);
    add_test(&tests, empty_and_rank_0);
    add_test(&tests, refused);
    add_test(&tests, microsoft_scale_of_one_element);
    return test_program_run(&tests);
}
