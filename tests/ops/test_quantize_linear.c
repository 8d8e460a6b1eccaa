/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <math.h>

static const double nan_value = (double)NAN, inf = (double)INFINITY;

static void begin(ops_case *c, int version)
{
    ops_begin(c, "", "QuantizeLinear", version);
    c->formals[0] = "x";
    c->formals[1] = "y_scale";
    c->formals[2] = "y_zero_point";
}

/* One row through x / scale + zero, all scalars of the given types. */
static void check_row(dq_dtype x, dq_dtype scale_type, double scale, dq_dtype y, double zero, size_t n,
                      const double *in, const double *expected)
{
    ops_case c;
    begin(&c, 25);
    ops_in(&c, x, OPS_DIMS((int64_t)n), in);
    ops_in(&c, scale_type, OPS_SCALAR, &scale);
    ops_in(&c, y, OPS_SCALAR, &zero);
    ops_must_run(&c);
    ops_want(&c, 0, y, OPS_DIMS((int64_t)n), expected);
    ops_end(&c);
}

#define ROW(x, scale_type, scale, y, zero, in, expected)                                                     \
    check_row(x, scale_type, scale, y, zero, sizeof(in) / sizeof *(in), in, expected)

START_TEST(ties_to_even_before_the_zero_point)
{
    const double in[] = {0.5, 1.5, 2.5, -0.5, -1.5, -2.5};
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_UINT8, 1, in, OPS_VALUES(1, 3, 3, 1, 0, 0));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_INT8, 1, in, OPS_VALUES(1, 3, 3, 1, -1, -1));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_UINT16, 7, in, OPS_VALUES(7, 9, 9, 7, 5, 5));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_INT16, -7, in, OPS_VALUES(-7, -5, -5, -7, -9, -9));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_INT4, 1, in, OPS_VALUES(1, 3, 3, 1, -1, -1));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_UINT2, 1, in, OPS_VALUES(1, 3, 3, 1, 0, 0));
    ROW(DQ_FLOAT16, DQ_FLOAT16, 1, DQ_UINT8, 1, in, OPS_VALUES(1, 3, 3, 1, 0, 0));
    ROW(DQ_BFLOAT16, DQ_BFLOAT16, 1, DQ_INT8, 1, in, OPS_VALUES(1, 3, 3, 1, -1, -1));
}
END_TEST

START_TEST(saturates_and_special_values)
{
    const double in[] = {inf, -inf, nan_value, 3e38, -3e38, -0.0, 1e10, -1e10};
    ROW(DQ_FLOAT, DQ_FLOAT, 0.01, DQ_UINT8, 128, in, OPS_VALUES(255, 0, 0, 255, 0, 128, 255, 0));
    ROW(DQ_FLOAT, DQ_FLOAT, 0.01, DQ_INT8, -128, in, OPS_VALUES(127, -128, -128, 127, -128, -128, 127, -128));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_UINT16, 65535, in, OPS_VALUES(65535, 0, 0, 65535, 0, 65535, 65535, 0));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_INT16, 32767, in,
        OPS_VALUES(32767, -32768, -32768, 32767, -32768, 32767, 32767, -32768));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_UINT4, 3, in, OPS_VALUES(15, 0, 0, 15, 0, 3, 15, 0));
    ROW(DQ_FLOAT, DQ_FLOAT, 1, DQ_INT2, -1, in, OPS_VALUES(1, -2, -2, 1, -2, -1, 1, -2));
    ROW(DQ_FLOAT, DQ_FLOAT, 0, DQ_INT8, 5, OPS_VALUES(1, -1, 0), OPS_VALUES(127, -128, -128));
}
END_TEST

/* The quotient overflows float16, which saturates; and it is rounded to float16 before it is rounded to an
 * integer: 2051 / 2 = 1025.5 has no half in float16, 1026 and 1025 are its neighbours, 2049 becomes 2048
 * first. */
START_TEST(precision_of_the_division)
{
    ROW(DQ_FLOAT16, DQ_FLOAT16, 0.001, DQ_UINT16, 0, OPS_VALUES(65504, -1), OPS_VALUES(65535, 0));
    ROW(DQ_FLOAT, DQ_FLOAT16, 2, DQ_UINT16, 0, OPS_VALUES(2049, 2051), OPS_VALUES(1024, 1026));
    ROW(DQ_FLOAT, DQ_BFLOAT16, 1, DQ_INT16, 0, OPS_VALUES(257, 259), OPS_VALUES(256, 260));
    ROW(DQ_FLOAT, DQ_FLOAT8E8M0, 0.25, DQ_INT16, 0, OPS_VALUES(257, 0.125), OPS_VALUES(1028, 0));
    ROW(DQ_INT32, DQ_FLOAT, 1, DQ_UINT16, 0, OPS_VALUES(7, 65536, -2147483648.0), OPS_VALUES(7, 65535, 0));
    ROW(DQ_INT32, DQ_INT32, 2, DQ_INT16, 1, OPS_VALUES(1, 3, 5, -1, -3), OPS_VALUES(1, 3, 3, 1, -1));
    ROW(DQ_INT32, DQ_INT32, 2147483647, DQ_INT8, 0, OPS_VALUES(1073741823, 1073741824, -1073741824),
        OPS_VALUES(0, 1, -1));
    ROW(DQ_INT32, DQ_INT32, 0, DQ_INT8, 0, OPS_VALUES(1, 0, -1), OPS_VALUES(127, -128, -128));

    ops_case c;
    begin(&c, 25);
    ops_int(&c, "precision", DQ_FLOAT16);
    ops_int(&c, "output_dtype", DQ_INT16);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(2049, 2051));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(2), OPS_VALUES(1024, 1026));
    ops_end(&c);
}
END_TEST

START_TEST(precision_attribute)
{
    ops_case c;
    begin(&c, 25);
    ops_int(&c, "precision", DQ_FLOAT16);
    ops_in(&c, DQ_INT32, OPS_DIMS(3), OPS_VALUES(2049, 100000, -100000));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
    ops_in(&c, DQ_INT16, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(3), OPS_VALUES(1024, 32767, -32768));
    ops_end(&c);

    /* just over a half in double */
    begin(&c, 25);
    ops_int(&c, "precision", DQ_DOUBLE);
    ops_in(&c, DQ_INT32, OPS_DIMS(2), OPS_VALUES(16777217, 16777219));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(33554432));
    ops_in(&c, DQ_INT2, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT2, OPS_DIMS(2), OPS_VALUES(1, 1));
    ops_end(&c);

    begin(&c, 25); /* the same ratio is a tie in float, which goes to 0 */
    ops_in(&c, DQ_INT32, OPS_DIMS(1), OPS_VALUES(16777217));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(33554432));
    ops_in(&c, DQ_INT2, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT2, OPS_DIMS(1), OPS_VALUES(0));
    ops_end(&c);
}
END_TEST

START_TEST(float_results)
{
    const double in[] = {896, 960, 961, -1e9, inf, nan_value, -0.0, 5};
    ROW(DQ_FLOAT, DQ_FLOAT, 2, DQ_FLOAT8E4M3FN, 0, in,
        OPS_VALUES(448, 448, 448, -448, 448, nan_value, -0.0, 2.5));
    ROW(DQ_FLOAT, DQ_FLOAT, 2, DQ_FLOAT4E2M1, 0, in, OPS_VALUES(6, 6, 6, -6, 6, -0.0, -0.0, 2));
    ROW(DQ_FLOAT, DQ_FLOAT, 2, DQ_FLOAT4E2M1, 1, in, OPS_VALUES(6, 6, 6, -6, 6, -0.0, 1, 4));

    ops_case c;
    begin(&c, 28);
    ops_int(&c, "saturate", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(8), in);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
    ops_in(&c, DQ_FLOAT8E4M3FN, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    /* 961 / 2 is over the half between 448 and what would be 480 */
    ops_want(&c, 0, DQ_FLOAT8E4M3FN, OPS_DIMS(8),
             OPS_VALUES(448, nan_value, nan_value, nan_value, nan_value, nan_value, -0.0, 2.5));
    ops_end(&c);
}
END_TEST

START_TEST(per_axis)
{
    ops_case c;
    begin(&c, 13); /* the middle axis of three, without a zero point */
    ops_int(&c, "axis", -2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 2, 3), OPS_VALUES(1, 2, 3, 2, 2, 3, 7, 8, 9, 5, 6, 6));
    ops_end(&c);

    begin(&c, 13); /* the last one, default axis 1 */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 2, 4));
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(0, 10, -10));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 3), OPS_VALUES(1, 11, -9, 4, 12, -8));
    ops_end(&c);

    begin(&c, 13); /* rank 1: the only axis, whatever the default says */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(4, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(4, 2));
    ops_end(&c);
}
END_TEST

START_TEST(one_element_scale_is_per_tensor)
{
    ops_case c;
    begin(&c, 10);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2, 2), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(2));
    ops_in(&c, DQ_UINT8, OPS_SCALAR, OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 2, 2), OPS_VALUES(1, 2, 3, 3, 3, 4, 5, 5));
    ops_end(&c);
}
END_TEST

/* Blocks of 2 over 3: the last block has one element. */
START_TEST(blocked)
{
    ops_case c;
    begin(&c, 21);
    ops_int(&c, "axis", 1);
    ops_int(&c, "block_size", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(8, 8, 8, 8, 8, 8));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 4, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(8, 8, 4, 2, 2, 1));
    ops_end(&c);

    begin(&c, 25);
    ops_int(&c, "axis", 0);
    ops_int(&c, "block_size", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), OPS_VALUES(8, 8, 8, 8, 8, 8));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 4, 8));
    ops_in(&c, DQ_INT4, OPS_DIMS(2, 2), OPS_VALUES(-8, -8, 1, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3, 2), OPS_VALUES(0, -4, 0, -4, 3, 2));
    ops_end(&c);

    begin(&c, 21); /* a block longer than the axis; a vector, whose blocks run along its only axis */
    ops_int(&c, "axis", 1);
    ops_int(&c, "block_size", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(8, 8, 8, 8));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(4), OPS_VALUES(8, 8, 8, 4));
    ops_end(&c);
}
END_TEST

START_TEST(empty_and_rank_0)
{
    ops_case c;
    begin(&c, 25);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(3, 0), NULL);
    ops_end(&c);

    begin(&c, 25);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(7));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_SCALAR, OPS_VALUES(4));
    ops_end(&c);
}
END_TEST

/* Pieces of several threads meet inside rows and inside bytes of 4-bit and 6-bit results. */
START_TEST(many_elements)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT4, DQ_UINT2, DQ_FLOAT6E2M3, DQ_INT16};
    enum { ROWS = 57, COLUMNS = 1001 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        ops_case c;
        begin(&c, 28);
        ops_int(&c, "axis", 0);
        ops_int(&c, "output_dtype", types[t]);
        dq_tensor *x = ops_in(&c, DQ_FLOAT, OPS_DIMS(ROWS, COLUMNS), NULL);
        dq_tensor *scale = ops_in(&c, DQ_FLOAT, OPS_DIMS(ROWS), NULL);
        for (size_t i = 0; i < x->count; i++)
            dq_data(x, float)[i] = (float)(i % 2 * (1 + i / COLUMNS));
        for (size_t i = 0; i < ROWS; i++)
            dq_data(scale, float)[i] = (float)(1 + i);
        ops_must_run(&c);
        for (size_t i = 0; i < x->count; i++)
            ck_assert_double_eq(dq_tensor_get_double(c.out[0], i), (double)(i % 2));
        ops_end(&c);
    }
}
END_TEST

static void check_refused(int version, int64_t axis, int64_t block, size_t x_rank, const int64_t *x_dims,
                          size_t scale_rank, const int64_t *scale_dims, const char *message)
{
    ops_case c;
    begin(&c, version);
    if (version >= 13)
        ops_int(&c, "axis", axis);
    if (version >= 21)
        ops_int(&c, "block_size", block);
    ops_in(&c, DQ_FLOAT, x_rank, x_dims, NULL);
    ops_in(&c, DQ_FLOAT, scale_rank, scale_dims, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, message);
    ops_end(&c);
}

START_TEST(refused_shapes)
{
    check_refused(10, 0, 0, OPS_DIMS(2, 3), OPS_DIMS(3), "input 1 'y_scale' has 3 elements, expected 1");
    check_refused(13, 1, 0, OPS_SCALAR, OPS_DIMS(3),
                  "input 1 'y_scale' has 3 elements, expected 1 as input 0 is a scalar");
    check_refused(13, 1, 0, OPS_DIMS(2, 64), OPS_DIMS(63),
                  "input 1 'y_scale' has 63 elements, expected 1 or 64 (axis 1 of input 0)");
    check_refused(13, 2, 0, OPS_DIMS(2, 3), OPS_DIMS(3),
                  "attribute 'axis' is 2, expected -2 to 1 for input 0 of rank 2");
    check_refused(13, 1, 0, OPS_DIMS(2, 3), OPS_DIMS(1, 1),
                  "input 1 'y_scale' has shape [1,1], expected a scalar or a vector");
    check_refused(21, 1, 0, OPS_DIMS(2, 4), OPS_DIMS(2, 2),
                  "input 1 'y_scale' has shape [2,2], expected a scalar or a vector where attribute "
                  "'block_size' is not "
                  "given");
    check_refused(21, 1, 3, OPS_DIMS(2, 4), OPS_DIMS(2, 3),
                  "input 1 'y_scale' has shape [2,3], expected [2,2] (blocks of 3 along axis 1 of input 0)");
    check_refused(
        21, 1, 3, OPS_DIMS(2, 4, 1), OPS_DIMS(2, 2),
        "input 1 'y_scale' has shape [2,2], expected [2,2,1] (blocks of 3 along axis 1 of input 0)");
    check_refused(21, 1, -1, OPS_DIMS(2, 4), OPS_DIMS(2, 4),
                  "attribute 'block_size' is -1, expected 0 (no blocks) or more");
}
END_TEST

START_TEST(refused_parameters)
{
    ops_case c;
    begin(&c, 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_in(&c, DQ_INT8, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 'y_zero_point' has shape [], expected [3] as the scale has");
    ops_end(&c);

    begin(&c, 21);
    ops_int(&c, "output_dtype", DQ_INT8);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_in(&c, DQ_UINT8, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "attribute 'output_dtype' is int8, expected uint8 as input 2 'y_zero_point' is");
    ops_end(&c);

    begin(&c, 21);
    ops_int(&c, "output_dtype", DQ_INT32);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_refuse(
        &c, DQ_BAD_MODEL,
        "attribute 'output_dtype' is 6 (int32), expected an integer type of at most 16 bits or a float "
        "type of at most 8");
    ops_end(&c);

    begin(&c, 23);
    ops_int(&c, "precision", 99);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "attribute 'precision' is 99 (no type), expected float, float16, bfloat16 or double");
    ops_end(&c);
}
END_TEST

START_TEST(microsoft_axis_is_1_by_default)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QuantizeLinear", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 1, 3, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(2, 0.5));
    ops_in(&c, DQ_INT16, OPS_DIMS(2), OPS_VALUES(0, 1000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(2, 2), OPS_VALUES(0, 1002, 2, 1006));
    ops_end(&c);

    /* float16 is divided in float: the quotient 6550.4 is not rounded to float16, which were 6552 */
    ops_begin(&c, "com.microsoft", "QuantizeLinear", 1);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(2047, -2047));
    ops_in(&c, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(0.3125));
    ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(1000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(2), OPS_VALUES(7550, 0));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("quantize_linear", NULL, NULL);
    add_test(&tests, ties_to_even_before_the_zero_point);
    add_test(&tests, saturates_and_special_values);
    add_test(&tests, precision_of_the_division);
    add_test(&tests, precision_attribute);
    add_test(&tests, float_results);
    add_test(&tests, per_axis);
    add_test(&tests, one_element_scale_is_per_tensor);
    add_test(&tests, blocked);
    add_test(&tests, empty_and_rank_0);
    add_test(&tests, many_elements);
    add_test(&tests, refused_shapes);
    add_test(&tests, refused_parameters);
    add_test(&tests, microsoft_axis_is_1_by_default);
    return test_program_run(&tests);
}
