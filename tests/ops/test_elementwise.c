/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on the broadcast loop: broadcasting, types, and the edges of each. */
#include "harness.h"

#include <float.h>
#include <math.h>

/* Two operands of shape [n] through an operator that gives type `out`. */
static void binary(const char *name, int version, dq_dtype dtype, int64_t n, const double *a, const double *b,
                   dq_dtype out, const double *want)
{
    ops_case c;
    ops_begin(&c, "", name, version);
    ops_in(&c, dtype, OPS_DIMS(n), a);
    ops_in(&c, dtype, OPS_DIMS(n), b);
    ops_must_run(&c);
    ops_want(&c, 0, out, OPS_DIMS(n), want);
    ops_end(&c);
}

static void unary(const char *name, int version, dq_dtype dtype, int64_t n, const double *x, dq_dtype out,
                  const double *want)
{
    ops_case c;
    ops_begin(&c, "", name, version);
    ops_in(&c, dtype, OPS_DIMS(n), x);
    ops_must_run(&c);
    ops_want(&c, 0, out, OPS_DIMS(n), want);
    ops_end(&c);
}

START_TEST(broadcasts_both_ways)
{
    ops_case c;
    ops_begin(&c, "", "Add", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(10, 20));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2, 3), OPS_VALUES(11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26));
    ops_end(&c);

    ops_begin(&c, "", "Add", 14); /* the second operand has the higher rank */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 2, 1), OPS_VALUES(10, 20, 30, 40));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2, 3),
             OPS_VALUES(11, 12, 13, 24, 25, 26, 31, 32, 33, 44, 45, 46));
    ops_end(&c);

    ops_begin(&c, "", "Sub", 14);
    ops_in(&c, DQ_INT32, OPS_SCALAR, OPS_VALUES(100));
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(99, 98, 97, 96));
    ops_end(&c);
}
END_TEST

/* Rows longer than the copies of what stays, of types with and without loops of their own for it. */
START_TEST(long_rows_with_values_that_stay)
{
    enum { ROWS = 2, N = 5000 };
    static const dq_dtype dtypes[] = {DQ_UINT16, DQ_INT16,  DQ_UINT32, DQ_UINT64,
                                      DQ_INT32,  DQ_DOUBLE, DQ_FLOAT16};
    static double x[ROWS * N], sides[2][ROWS * N];
    const double stays[ROWS] = {7, 90};
    for (size_t i = 0; i < ROWS * N; i++) {
        x[i] = (double)(i * 37 % 101);
        for (int side = 0; side < 2; side++) {
            double a = side ? stays[i / N] : x[i], b = side ? x[i] : stays[i / N];
            sides[side][i] = a < b;
        }
    }
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (int side = 0; side < 2; side++) {
            ops_case c;
            ops_begin(&c, "", "Less", 13);
            if (side)
                ops_in(&c, dtypes[t], OPS_DIMS(ROWS, 1), stays);
            ops_in(&c, dtypes[t], OPS_DIMS(ROWS, N), x);
            if (!side)
                ops_in(&c, dtypes[t], OPS_DIMS(ROWS, 1), stays);
            ops_must_run(&c);
            ops_want(&c, 0, DQ_BOOL, OPS_DIMS(ROWS, N), sides[side]);
            ops_end(&c);
        }
}
END_TEST

/* Floats round by sums: halves, signs of zero, and what has no room for a fraction. */
START_TEST(rounds_floats)
{
    enum { N = 10 };
    static const double x[N] = {-0.0, 0.5, -0.5, 1.5, -2.5, -0.25, 0.7, 8388607.5, -8388609.0, 0x1p100};
    static const double to_even[N] = {-0.0, 0, -0.0, 2, -2, -0.0, 1, 8388608, -8388609.0, 0x1p100};
    static const double down[N] = {-0.0, 0, -1, 1, -3, -1, 0, 8388607, -8388609.0, 0x1p100};
    static const double up[N] = {-0.0, 1, -0.0, 2, -2, -0.0, 1, 8388608, -8388609.0, 0x1p100};
    unary("Round", 11, DQ_FLOAT, N, x, DQ_FLOAT, to_even);
    unary("Floor", 13, DQ_FLOAT, N, x, DQ_FLOAT, down);
    unary("Ceil", 13, DQ_FLOAT, N, x, DQ_FLOAT, up);
}
END_TEST

/* An exponent for all has ways of its own for squares and cubes. */
START_TEST(powers_by_one_number)
{
    enum { N = 5 };
    static const double x[N] = {-3, 0, (double)0.1f, 2, -1e20};
    static const double squares[N] = {9, 0, (double)(0.1f * 0.1f), 4, (double)INFINITY};
    static const double cubes[N] = {-27, 0, (double)(float)((double)0.1f * (double)0.1f * (double)0.1f), 8,
                                    -(double)INFINITY};
    for (int power = 2; power <= 3; power++) {
        ops_case c;
        const double exponent = power;
        ops_begin(&c, "", "Pow", 15);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(N), x);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1), &exponent);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(N), power == 2 ? squares : cubes);
        ops_end(&c);
    }
}
END_TEST

START_TEST(broadcasts_to_nothing)
{
    ops_case c;
    ops_begin(&c, "", "Mul", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 1), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_end(&c);
}
END_TEST

START_TEST(refuses_shapes_that_do_not_match)
{
    ops_case c;
    ops_begin(&c, "", "Add", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [2], which does not broadcast with [2,3]");
    ops_end(&c);

    ops_begin(&c, "", "Add", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [2,0], which does not broadcast with [2,3]");
    ops_end(&c);
}
END_TEST

START_TEST(long_operands_in_many_pieces)
{
    enum { ROWS = 300, COLS = 257 };
    static double a[ROWS * COLS], b[ROWS], want[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = i % 1009;
    for (int i = 0; i < ROWS; i++)
        b[i] = 3 * i;
    for (int i = 0; i < ROWS * COLS; i++)
        want[i] = a[i] + b[i / COLS];
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_INT16, DQ_DOUBLE};
    for (size_t t = 0; t < 4; t++) {
        ops_case c;
        ops_begin(&c, "", "Add", 14);
        ops_in(&c, types[t], OPS_DIMS(ROWS, COLS), a);
        ops_in(&c, types[t], OPS_DIMS(ROWS, 1), b);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(ROWS, COLS), want);
        ops_end(&c);
    }
}
END_TEST

START_TEST(axes_before_opset_7)
{
    ops_case c;
    ops_begin(&c, "", "Add", 6);
    ops_int(&c, "broadcast", 1);
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(10, 20));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(11, 12, 23, 24));
    ops_end(&c);

    ops_begin(&c, "", "Add", 6);
    ops_int(&c, "broadcast", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has another shape than input 0, and broadcast is 0");
    ops_end(&c);
}
END_TEST

START_TEST(prelu_slopes_of_channels_before_opset_7)
{
    ops_case c;
    for (int version = 1; version <= 7; version++) {
        if (version > 1 && version < 6)
            continue;
        ops_begin(&c, "", "PRelu", version);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(-1, -2, -3, 4));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(10, 100));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2),
                 version < 7 ? OPS_VALUES(-10, -20, -300, 4) : OPS_VALUES(-10, -200, -30, 4));
        ops_end(&c);
    }
    ops_begin(&c, "", "PRelu", 6);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(3, 1, 2), OPS_VALUES(-1, 1, -2, 2, -3, 3));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(1), OPS_VALUES(0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(3, 1, 2), OPS_VALUES(-0.5, 1, -1, 2, -1.5, 3));
    ops_end(&c);

    ops_begin(&c, "", "PRelu", 6);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected 1 or 3 (axis 1 of input 0)");
    ops_end(&c);
}
END_TEST

START_TEST(integers_wrap_and_divide)
{
    binary("Add", 14, DQ_INT8, 2, OPS_VALUES(127, -128), OPS_VALUES(1, -1), DQ_INT8, OPS_VALUES(-128, 127));
    binary("Mul", 14, DQ_UINT16, 1, OPS_VALUES(65535), OPS_VALUES(65535), DQ_UINT16, OPS_VALUES(1));
    binary("Div", 14, DQ_INT32, 4, OPS_VALUES(-7, 7, -2147483648.0, 5), OPS_VALUES(2, -2, -1, 0), DQ_INT32,
           OPS_VALUES(-3, -3, -2147483648.0, 0));
    binary("Div", 14, DQ_INT64, 1, OPS_VALUES(-9223372036854775808.0), OPS_VALUES(-1), DQ_INT64,
           OPS_VALUES(-9223372036854775808.0));
    binary("Div", 14, DQ_UINT8, 2, OPS_VALUES(200, 3), OPS_VALUES(7, 0), DQ_UINT8, OPS_VALUES(28, 0));
    binary("Mod", 13, DQ_INT8, 5, OPS_VALUES(-7, 7, -7, -128, 4), OPS_VALUES(3, -3, -3, -1, 0), DQ_INT8,
           OPS_VALUES(2, -2, -1, 0, 0));
}
END_TEST

START_TEST(float_remainders)
{
    ops_case c;
    ops_begin(&c, "", "Mod", 28);
    ops_int(&c, "fmod", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-7, 7, 5));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(3, -3, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-1, 1, (double)NAN));
    ops_end(&c);
    binary("Mod", 28, DQ_FLOAT, 4, OPS_VALUES(-7, 7, 0, 1), OPS_VALUES(3, -3, -2, -(double)INFINITY),
           DQ_FLOAT, OPS_VALUES(2, -2, -0.0, -(double)INFINITY));
}
END_TEST

START_TEST(powers)
{
    binary("Pow", 15, DQ_INT32, 5, OPS_VALUES(2, -3, 7, -1, 2), OPS_VALUES(10, 3, 0, -3, -1), DQ_INT32,
           OPS_VALUES(1024, -27, 1, -1, 0));
    ops_case c;
    ops_begin(&c, "", "Pow", 15);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(2, 3, 4));
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(8, 27, 64));
    ops_end(&c);

    ops_begin(&c, "", "Pow", 15);
    ops_in(&c, DQ_INT32, OPS_DIMS(3), OPS_VALUES(4, 2, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0.5, -1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(3), OPS_VALUES(2, 0, 9));
    ops_end(&c);
}
END_TEST

START_TEST(extremes_keep_nan)
{
    binary("Max", 13, DQ_FLOAT, 4, OPS_VALUES(1, (double)NAN, 2, -(double)INFINITY),
           OPS_VALUES(3, 1, (double)NAN, -5), DQ_FLOAT, OPS_VALUES(3, (double)NAN, (double)NAN, -5));
    binary("Min", 13, DQ_FLOAT16, 3, OPS_VALUES(1, (double)NAN, 2), OPS_VALUES(3, 1, (double)NAN), DQ_FLOAT16,
           OPS_VALUES(1, (double)NAN, (double)NAN));
    binary("Max", 13, DQ_UINT64, 1, OPS_VALUES(18446744073709549568.0), OPS_VALUES(1), DQ_UINT64,
           OPS_VALUES(18446744073709549568.0));
}
END_TEST

START_TEST(any_number_of_operands)
{
    ops_case c;
    ops_begin(&c, "", "Mean", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(10, 20));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2),
             OPS_VALUES(5, (double)(16 / 3.0f), (double)(25 / 3.0f), (double)(26 / 3.0f)));
    ops_end(&c);

    ops_begin(&c, "", "Sum", 13);
    ops_in(&c, DQ_BFLOAT16, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BFLOAT16, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_end(&c);

    /* one rounding: 2048 + 1 + 1 is 2050 though 2048 + 1 is not a float16 */
    ops_begin(&c, "", "Sum", 13);
    ops_in(&c, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(2048));
    ops_in(&c, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(1));
    ops_in(&c, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(2050));
    ops_end(&c);
}
END_TEST

START_TEST(comparisons)
{
    binary("Less", 13, DQ_FLOAT, 4, OPS_VALUES(1, 2, (double)NAN, -0.0), OPS_VALUES(2, 1, 1, 0), DQ_BOOL,
           OPS_VALUES(1, 0, 0, 0));
    binary("Greater", 13, DQ_INT8, 3, OPS_VALUES(-1, 5, 5), OPS_VALUES(1, 5, 4), DQ_BOOL,
           OPS_VALUES(0, 0, 1));
    binary("GreaterOrEqual", 16, DQ_UINT8, 3, OPS_VALUES(255, 5, 4), OPS_VALUES(1, 5, 5), DQ_BOOL,
           OPS_VALUES(1, 1, 0));
    binary("LessOrEqual", 16, DQ_BFLOAT16, 3, OPS_VALUES(1, (double)NAN, 3), OPS_VALUES(1, 1, 2), DQ_BOOL,
           OPS_VALUES(1, 0, 0));
    binary("Equal", 19, DQ_FLOAT16, 3, OPS_VALUES(-0.0, (double)NAN, 3), OPS_VALUES(0, (double)NAN, 3),
           DQ_BOOL, OPS_VALUES(1, 0, 1));
    ops_case c;
    ops_begin(&c, "", "Greater", 13); /* swapped operands broadcast as given */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(1, 5));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 3, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(2, 3), OPS_VALUES(1, 0, 0, 1, 1, 0));
    ops_end(&c);

    ops_begin(&c, "", "Equal", 19);
    ops_in_strings(&c, OPS_DIMS(3), (const char *const[]){"a", "", "abc"});
    ops_in_strings(&c, OPS_DIMS(3), (const char *const[]){"a", "", "abd"});
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(3), OPS_VALUES(1, 1, 0));
    ops_end(&c);
}
END_TEST

START_TEST(where_of_any_width)
{
    ops_case c;
    ops_begin(&c, "", "Where", 16);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT64, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(9));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 9, 9, 9));
    ops_end(&c);

    ops_begin(&c, "", "Where", 9);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2), OPS_VALUES(1, 0));
    ops_in_strings(&c, OPS_DIMS(2), (const char *const[]){"a", "b"});
    ops_in_strings(&c, OPS_DIMS(1), (const char *const[]){"other"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(2), (const char *const[]){"a", "other"});
    ops_end(&c);
}
END_TEST

START_TEST(shifts)
{
    static const char *const directions[2] = {"LEFT", "RIGHT"};
    static const double want[2][4] = {{2, -64, 0, 0}, {0, -16, -1, -1}};
    for (size_t i = 0; i < 2; i++) {
        ops_case c;
        ops_begin(&c, "", "BitShift", 28);
        ops_string(&c, "direction", directions[i]);
        ops_in(&c, DQ_INT8, OPS_DIMS(4), OPS_VALUES(1, -32, -1, -1));
        ops_in(&c, DQ_INT8, OPS_DIMS(4), OPS_VALUES(1, 1, 8, -1));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_INT8, OPS_DIMS(4), want[i]);
        ops_end(&c);
    }
}
END_TEST

START_TEST(unary_edges)
{
    unary("Abs", 13, DQ_INT8, 3, OPS_VALUES(-128, -5, 5), DQ_INT8, OPS_VALUES(-128, 5, 5));
    unary("Neg", 13, DQ_INT32, 2, OPS_VALUES(-2147483648.0, 7), DQ_INT32, OPS_VALUES(-2147483648.0, -7));
    unary("Sign", 13, DQ_FLOAT, 4, OPS_VALUES(-3, 0, 9, (double)NAN), DQ_FLOAT,
          OPS_VALUES(-1, 0, 1, (double)NAN));
    unary("Round", 22, DQ_FLOAT, 6, OPS_VALUES(0.5, 1.5, 2.5, -0.5, -2.5, 1e20), DQ_FLOAT,
          OPS_VALUES(0, 2, 2, -0.0, -2, (double)1e20f));
    unary("Relu", 14, DQ_FLOAT, 4, OPS_VALUES(-1, 2, (double)NAN, -(double)INFINITY), DQ_FLOAT,
          OPS_VALUES(0, 2, (double)NAN, 0));
    unary("Relu", 14, DQ_INT16, 2, OPS_VALUES(-1, 2), DQ_INT16, OPS_VALUES(0, 2));
    unary("Sigmoid", 13, DQ_FLOAT, 3, OPS_VALUES(0, -200, 200), DQ_FLOAT, OPS_VALUES(0.5, 0, 1));
    unary("Softplus", 22, DQ_DOUBLE, 2, OPS_VALUES(-1000, 1000), DQ_DOUBLE, OPS_VALUES(0, 1000));
    unary("HardSwish", 22, DQ_FLOAT, 4, OPS_VALUES(-4, 0, 3, 6), DQ_FLOAT, OPS_VALUES(-0.0, 0, 3, 6));
    unary("Not", 1, DQ_BOOL, 2, OPS_VALUES(0, 1), DQ_BOOL, OPS_VALUES(1, 0));
    unary("BitwiseNot", 18, DQ_INT8, 2, OPS_VALUES(0, -128), DQ_INT8, OPS_VALUES(-1, 127));
    unary("IsNaN", 20, DQ_FLOAT8E4M3FN, 2, OPS_VALUES(1, (double)NAN), DQ_BOOL, OPS_VALUES(0, 1));
    unary("Sqrt", 13, DQ_FLOAT16, 2, OPS_VALUES(4, 2), DQ_FLOAT16, OPS_VALUES(2, 1.4140625));
}
END_TEST

START_TEST(one_sided_infinity)
{
    ops_case c;
    ops_begin(&c, "", "IsInf", 20);
    ops_int(&c, "detect_negative", 0);
    ops_int(&c, "detect_positive", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES((double)INFINITY, -(double)INFINITY, (double)NAN, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(4), OPS_VALUES(1, 0, 0, 0));
    ops_end(&c);
}
END_TEST

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

START_TEST(alpha_and_beta)
{
    ops_case c;
    ops_begin(&c, "", "LeakyRelu", 16);
    ops_float(&c, "alpha", 0.25f);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(-8, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(-2, 8));
    ops_end(&c);

    for (int narrow = 0; narrow < 2; narrow++) { /* NaN is not over the threshold */
        ops_begin(&c, "", "ThresholdedRelu", 22);
        ops_float(&c, "alpha", 0.5f);
        ops_in(&c, narrow ? DQ_FLOAT : DQ_DOUBLE, OPS_DIMS(4),
               OPS_VALUES((double)NAN, 0.5, 1, (double)INFINITY));
        ops_must_run(&c);
        ops_want(&c, 0, narrow ? DQ_FLOAT : DQ_DOUBLE, OPS_DIMS(4), OPS_VALUES(0, 0, 1, (double)INFINITY));
        ops_end(&c);
    }

    ops_begin(&c, "", "Shrink", 9); /* beyond int64 */
    ops_float(&c, "lambd", 0.5f);
    ops_float(&c, "bias", 4096);
    ops_in(&c, DQ_UINT64, OPS_DIMS(2), OPS_VALUES(18446744073709547520.0, 5000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT64, OPS_DIMS(2), OPS_VALUES(18446744073709543424.0, 904));
    ops_end(&c);

    ops_begin(&c, "", "HardSigmoid", 22);
    ops_float(&c, "alpha", 0.25f);
    ops_float(&c, "beta", 0.5f);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-8, 1, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 0.75, 1));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("elementwise");
    add_test(&tests, broadcasts_both_ways);
    add_test(&tests, long_rows_with_values_that_stay);
    add_test(&tests, rounds_floats);
    add_test(&tests, powers_by_one_number);
    add_test(&tests, broadcasts_to_nothing);
    add_test(&tests, refuses_shapes_that_do_not_match);
    add_test(&tests, long_operands_in_many_pieces);
    add_test(&tests, axes_before_opset_7);
    add_test(&tests, prelu_slopes_of_channels_before_opset_7);
    add_test(&tests, integers_wrap_and_divide);
    add_test(&tests, float_remainders);
    add_test(&tests, powers);
    add_test(&tests, extremes_keep_nan);
    add_test(&tests, any_number_of_operands);
    add_test(&tests, comparisons);
    add_test(&tests, where_of_any_width);
    add_test(&tests, shifts);
    add_test(&tests, unary_edges);
    add_test(&tests, one_sided_infinity);
    add_test(&tests, clip_limits);
    add_test(&tests, alpha_and_beta);
    return run_suite(tests.suite);
}
