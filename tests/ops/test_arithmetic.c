/* SPDX-License-Identifier: Apache-2.0 */
/* Add, Sub, Mul, Div, Mod, Pow, Max, Min, Mean, Sum and BitShift. */
#include "harness.h"

#include <math.h>

START_TEST(integers_wrap_and_divide)
{
    ops_check_binary("Add", 14, DQ_INT8, 2, OPS_VALUES(127, -128), OPS_VALUES(1, -1), DQ_INT8,
                     OPS_VALUES(-128, 127));
    ops_check_binary("Mul", 14, DQ_UINT16, 1, OPS_VALUES(65535), OPS_VALUES(65535), DQ_UINT16, OPS_VALUES(1));
    ops_check_binary("Div", 14, DQ_INT32, 4, OPS_VALUES(-7, 7, -2147483648.0, 5), OPS_VALUES(2, -2, -1, 0),
                     DQ_INT32, OPS_VALUES(-3, -3, -2147483648.0, 0));
    ops_check_binary("Div", 14, DQ_INT64, 1, OPS_VALUES(-9223372036854775808.0), OPS_VALUES(-1), DQ_INT64,
                     OPS_VALUES(-9223372036854775808.0));
    ops_check_binary("Div", 14, DQ_UINT8, 2, OPS_VALUES(200, 3), OPS_VALUES(7, 0), DQ_UINT8,
                     OPS_VALUES(28, 0));
    ops_check_binary("Mod", 13, DQ_INT8, 5, OPS_VALUES(-7, 7, -7, -128, 4), OPS_VALUES(3, -3, -3, -1, 0),
                     DQ_INT8, OPS_VALUES(2, -2, -1, 0, 0));
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
    ops_check_binary("Mod", 28, DQ_FLOAT, 4, OPS_VALUES(-7, 7, 0, 1),
                     OPS_VALUES(3, -3, -2, -(double)INFINITY), DQ_FLOAT,
                     OPS_VALUES(2, -2, -0.0, -(double)INFINITY));
}
END_TEST

START_TEST(powers)
{
    ops_check_binary("Pow", 15, DQ_INT32, 5, OPS_VALUES(2, -3, 7, -1, 2), OPS_VALUES(10, 3, 0, -3, -1),
                     DQ_INT32, OPS_VALUES(1024, -27, 1, -1, 0));
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

START_TEST(extremes_keep_nan)
{
    ops_check_binary("Max", 13, DQ_FLOAT, 4, OPS_VALUES(1, (double)NAN, 2, -(double)INFINITY),
                     OPS_VALUES(3, 1, (double)NAN, -5), DQ_FLOAT,
                     OPS_VALUES(3, (double)NAN, (double)NAN, -5));
    ops_check_binary("Min", 13, DQ_FLOAT16, 3, OPS_VALUES(1, (double)NAN, 2), OPS_VALUES(3, 1, (double)NAN),
                     DQ_FLOAT16, OPS_VALUES(1, (double)NAN, (double)NAN));
    ops_check_binary("Max", 13, DQ_UINT64, 1, OPS_VALUES(18446744073709549568.0), OPS_VALUES(1), DQ_UINT64,
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

int main(void)
{
    test_program tests = test_program_begin("arithmetic", NULL, NULL);
    add_test(&tests, integers_wrap_and_divide);
    add_test(&tests, float_remainders);
    add_test(&tests, powers);
    add_test(&tests, powers_by_one_number);
    add_test(&tests, extremes_keep_nan);
    add_test(&tests, any_number_of_operands);
    add_test(&tests, shifts);
    return test_program_run(&tests);
}
