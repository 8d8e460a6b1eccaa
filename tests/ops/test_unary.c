/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of one input: rounding, signs, activations without parameters, IsNaN and IsInf. */
#include "harness.h"

#include <math.h>

/* Ties, signed zeros, and numbers too large for a fraction. */
START_TEST(rounds_floats)
{
    enum { N = 10 };
    static const double x[N] = {-0.0, 0.5, -0.5, 1.5, -2.5, -0.25, 0.7, 8388607.5, -8388609.0, 0x1p100};
    static const double to_even[N] = {-0.0, 0, -0.0, 2, -2, -0.0, 1, 8388608, -8388609.0, 0x1p100};
    static const double down[N] = {-0.0, 0, -1, 1, -3, -1, 0, 8388607, -8388609.0, 0x1p100};
    static const double up[N] = {-0.0, 1, -0.0, 2, -2, -0.0, 1, 8388608, -8388609.0, 0x1p100};
    ops_check_unary("Round", 11, DQ_FLOAT, N, x, DQ_FLOAT, to_even);
    ops_check_unary("Floor", 13, DQ_FLOAT, N, x, DQ_FLOAT, down);
    ops_check_unary("Ceil", 13, DQ_FLOAT, N, x, DQ_FLOAT, up);
}
END_TEST

START_TEST(unary_edges)
{
    ops_check_unary("Abs", 13, DQ_INT8, 3, OPS_VALUES(-128, -5, 5), DQ_INT8, OPS_VALUES(-128, 5, 5));
    ops_check_unary("Neg", 13, DQ_INT32, 2, OPS_VALUES(-2147483648.0, 7), DQ_INT32,
                    OPS_VALUES(-2147483648.0, -7));
    ops_check_unary("Sign", 13, DQ_FLOAT, 4, OPS_VALUES(-3, 0, 9, (double)NAN), DQ_FLOAT,
                    OPS_VALUES(-1, 0, 1, (double)NAN));
    ops_check_unary("Round", 22, DQ_FLOAT, 6, OPS_VALUES(0.5, 1.5, 2.5, -0.5, -2.5, 1e20), DQ_FLOAT,
                    OPS_VALUES(0, 2, 2, -0.0, -2, (double)1e20f));
    ops_check_unary("Relu", 14, DQ_FLOAT, 4, OPS_VALUES(-1, 2, (double)NAN, -(double)INFINITY), DQ_FLOAT,
                    OPS_VALUES(0, 2, (double)NAN, 0));
    ops_check_unary("Relu", 14, DQ_INT16, 2, OPS_VALUES(-1, 2), DQ_INT16, OPS_VALUES(0, 2));
    ops_check_unary("Sigmoid", 13, DQ_FLOAT, 3, OPS_VALUES(0, -200, 200), DQ_FLOAT, OPS_VALUES(0.5, 0, 1));
    ops_check_unary("Softplus", 22, DQ_DOUBLE, 2, OPS_VALUES(-1000, 1000), DQ_DOUBLE, OPS_VALUES(0, 1000));
    ops_check_unary("HardSwish", 22, DQ_FLOAT, 4, OPS_VALUES(-4, 0, 3, 6), DQ_FLOAT,
                    OPS_VALUES(-0.0, 0, 3, 6));
    ops_check_unary("Not", 1, DQ_BOOL, 2, OPS_VALUES(0, 1), DQ_BOOL, OPS_VALUES(1, 0));
    ops_check_unary("BitwiseNot", 18, DQ_INT8, 2, OPS_VALUES(0, -128), DQ_INT8, OPS_VALUES(-1, 127));
    ops_check_unary("IsNaN", 20, DQ_FLOAT8E4M3FN, 2, OPS_VALUES(1, (double)NAN), DQ_BOOL, OPS_VALUES(0, 1));
    ops_check_unary("Sqrt", 13, DQ_FLOAT16, 2, OPS_VALUES(4, 2), DQ_FLOAT16, OPS_VALUES(2, 1.4140625));
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

int main(void)
{
    test_program tests = test_program_begin("unary", NULL, NULL);
    add_test(&tests, rounds_floats);
    add_test(&tests, unary_edges);
    add_test(&tests, one_sided_infinity);
    return test_program_run(&tests);
}
