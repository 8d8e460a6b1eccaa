/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of com.microsoft on 8-bit tensors: expected codes are worked out by hand. */
#include "harness.h"

#include <math.h>

#define MS "com.microsoft"

static void scale(ops_case *c, double value)
{
    ops_in(c, DQ_FLOAT, OPS_SCALAR, &value);
}

static void zero(ops_case *c, dq_dtype dtype, double value)
{
    ops_in(c, dtype, OPS_SCALAR, &value);
}

typedef struct qvalues {
    int64_t count;
    const double *values;
    double scale, zero;
} qvalues;

/* QLinearAdd or QLinearMul of a and b. */
static void binary(const char *name, dq_dtype dtype, qvalues a, qvalues b, qvalues want)
{
    const qvalues in[] = {a, b};
    ops_case c;
    ops_begin(&c, MS, name, 1);
    for (int i = 0; i < 2; i++) {
        ops_in(&c, dtype, OPS_DIMS(in[i].count), in[i].values);
        scale(&c, in[i].scale);
        zero(&c, dtype, in[i].zero);
    }
    scale(&c, want.scale);
    zero(&c, dtype, want.zero);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(want.count), want.values);
    ops_end(&c);
}

START_TEST(add_rounds_the_zero_point_with_the_sum)
{
    /* 0.5 + 1 = 1.5 rounds to 2, where round(0.5) + 1 were 1; 1.5 + 1 rounds to 2, not 2 + 1 */
    binary("QLinearAdd", DQ_UINT8, (qvalues){4, OPS_VALUES(1, 3, 250, 0), 0.5, 0},
           (qvalues){4, OPS_VALUES(0, 0, 255, 0), 2, 0}, (qvalues){4, OPS_VALUES(2, 2, 255, 1), 1, 1});
    binary("QLinearAdd", DQ_INT8, (qvalues){4, OPS_VALUES(-128, 127, 5, -3), 1, -1},
           (qvalues){1, OPS_VALUES(10), 1, 4}, (qvalues){4, OPS_VALUES(-121, 127, 12, 4), 1, 0});
    /* the first operand stays the same */
    binary("QLinearAdd", DQ_UINT8, (qvalues){1, OPS_VALUES(7), 0.25, 3},
           (qvalues){3, OPS_VALUES(8, 9, 100), 0.5, 8}, (qvalues){3, OPS_VALUES(12, 13, 104), 0.5, 10});
}
END_TEST

START_TEST(add_is_two_fused_steps)
{
    /* every code of a with another of b */
    float ra = 0.1f / 0.3f, rb = 0.7f / 0.3f;
    double want[256], a[256], b[256];
    float fixed = 5.0f - fmaf(ra, 3.0f, rb * 200.0f);
    for (int i = 0; i < 256; i++) {
        a[i] = i;
        b[i] = 255 - i * 7 % 256;
        float v = rintf(fmaf((float)a[i], ra, fmaf((float)b[i], rb, fixed)));
        want[i] = v < 0 ? 0 : v > 255 ? 255 : (double)v;
    }
    binary("QLinearAdd", DQ_UINT8, (qvalues){256, a, (double)0.1f, 3}, (qvalues){256, b, (double)0.7f, 200},
           (qvalues){256, want, (double)0.3f, 5});
}
END_TEST

START_TEST(multiplication)
{
    binary("QLinearMul", DQ_UINT8, (qvalues){4, OPS_VALUES(1, 3, 255, 2), 0.5, 0},
           (qvalues){4, OPS_VALUES(1, 1, 255, 0), 1, 0}, (qvalues){4, OPS_VALUES(2, 2, 255, 1), 1, 1});
    binary("QLinearMul", DQ_INT8, (qvalues){3, OPS_VALUES(-128, 127, 5), 1, -1},
           (qvalues){1, OPS_VALUES(3), 1, 4}, (qvalues){3, OPS_VALUES(125, -128, -8), 1, -2});
    binary("QLinearMul", DQ_INT8, (qvalues){1, OPS_VALUES(3), 1, 4},
           (qvalues){3, OPS_VALUES(-128, 127, 5), 1, -1}, (qvalues){3, OPS_VALUES(125, -128, -8), 1, -2});
    /* far beyond what fits into 32 bits */
    binary("QLinearMul", DQ_UINT8, (qvalues){2, OPS_VALUES(255, 0), 1e30, 1},
           (qvalues){2, OPS_VALUES(255, 255), 1, 0}, (qvalues){2, OPS_VALUES(255, 0), 1e-5, 7});
}
END_TEST

START_TEST(zero_points_may_be_left_out)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearAdd", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 1), OPS_VALUES(1, -2));
    scale(&c, 1);
    ops_skip(&c);
    ops_in(&c, DQ_INT8, OPS_DIMS(2), OPS_VALUES(10, 20));
    scale(&c, 0.5);
    ops_skip(&c);
    scale(&c, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(6, 11, 3, 8));
    ops_end(&c);

    ops_begin(&c, MS, "QLinearSigmoid", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(0, 127, -128));
    scale(&c, 1);
    ops_skip(&c);
    scale(&c, 1.0 / 128);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(3), OPS_VALUES(64, 127, 0));
    ops_end(&c);
}
END_TEST

START_TEST(one_scale_only)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearMul", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    scale(&c, 1);
    ops_skip(&c);
    scale(&c, 1);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected 1");
    ops_end(&c);
}
END_TEST

START_TEST(integer_products)
{
    ops_case c;
    ops_begin(&c, MS, "MulInteger", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(255, 0));
    zero(&c, DQ_UINT8, 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(255, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(64770, 762, -255, -3));
    ops_end(&c);
}
END_TEST

START_TEST(integer_sums)
{
    ops_case c;
    ops_begin(&c, MS, "ReduceSumInteger", 1);
    ops_ints(&c, "axes", 1, (const int64_t[]){-1});
    ops_int(&c, "keepdims", 0);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 3), OPS_VALUES(-128, -128, -128, 127, 1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2), OPS_VALUES(-384, 128));
    ops_end(&c);

    ops_begin(&c, MS, "ReduceSumInteger", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 2), OPS_VALUES(255, 255, 255, 255));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT32, OPS_DIMS(1, 1), OPS_VALUES(1020));
    ops_end(&c);
}
END_TEST

START_TEST(quantized_means)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearReduceMean", 1);
    ops_ints(&c, "axes", 1, (const int64_t[]){0});
    ops_int(&c, "keepdims", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 3),
           OPS_VALUES(10, 20, 255, 11, 24, 255)); /* means 10.5, 22, 255 less 5 */
    scale(&c, 2);
    zero(&c, DQ_UINT8, 5);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 3), OPS_VALUES(12, 35, 255));
    ops_end(&c);
}
END_TEST

START_TEST(leaky_relu)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearLeakyRelu", 1);
    ops_float(&c, "alpha", 0.5f);
    ops_in(&c, DQ_UINT8, OPS_DIMS(5), OPS_VALUES(128, 255, 0, 126, 125));
    scale(&c, 1);
    zero(&c, DQ_UINT8, 128);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 100);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(5), OPS_VALUES(100, 227, 36, 99, 98)); /* -1.5 rounds to -2 */
    ops_end(&c);
}
END_TEST

START_TEST(concat_and_where)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearConcat", 1);
    ops_int(&c, "axis", -1);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(250, 3));
    scale(&c, 1);
    zero(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(-2, -1, 127, 3));
    scale(&c, 2.5);
    zero(&c, DQ_INT8, -1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(250, 8, 10, 3, 255, 20)); /* -2.5 rounds to -2 */
    ops_end(&c);

    ops_begin(&c, MS, "QLinearWhere", 1);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT8, OPS_DIMS(2), OPS_VALUES(5, -5));
    scale(&c, 1);
    zero(&c, DQ_INT8, 0);
    ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(100));
    scale(&c, 3);
    zero(&c, DQ_INT8, 0);
    scale(&c, 2);
    zero(&c, DQ_INT8, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(3, -1, 127, 127)); /* 2.5 and -2.5 round to even */
    ops_end(&c);
}
END_TEST

START_TEST(concat_refuses)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearConcat", 1);
    ops_int(&c, "axis", 1);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), NULL);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 0);
    ops_in(&c, DQ_UINT8, OPS_DIMS(3, 1), NULL);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 5 has shape [3,1], which does not fit to [2,1] but on axis 1");
    ops_end(&c);

    ops_begin(&c, MS, "QLinearConcat", 1);
    ops_int(&c, "axis", 0);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has 3 inputs, expected 2 and then 3 for each tensor: itself, its scale, its zero point");
    ops_end(&c);

    ops_begin(&c, MS, "QLinearConcat", 1);
    ops_int(&c, "axis", 0);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 10);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    scale(&c, 1);
    zero(&c, DQ_INT8, 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 4 is int8, expected the zero point of input 2, uint8");
    ops_end(&c);
}
END_TEST

static void softmax(dq_dtype dtype, int64_t opset, int64_t axis, double sy, double zy, const double *want)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearSoftmax", 1);
    ops_int(&c, "opset", opset);
    ops_int(&c, "axis", axis);
    ops_in(&c, dtype, OPS_DIMS(2, 2), OPS_VALUES(3, 3, 1, 2));
    scale(&c, 0.69314718055994531); /* a step of the code doubles the exponential */
    ops_skip(&c);
    scale(&c, sy);
    zero(&c, dtype, zy);
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
    ops_begin(&c, MS, "QLinearSoftmax", 1);
    ops_int(&c, "opset", 13);
    ops_in(&c, DQ_INT8, OPS_DIMS(601), x);
    scale(&c, 0.69314718055994531);
    ops_skip(&c);
    scale(&c, 1.0 / 600);
    zero(&c, DQ_INT8, 100);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(601), want);
    ops_end(&c);
}
END_TEST

START_TEST(average_pool)
{
    ops_case c;
    ops_begin(&c, MS, "QLinearAveragePool", 1);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_ints(&c, "pads", 2, (const int64_t[]){1, 0});
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 4), OPS_VALUES(1, 2, 4, 255));
    scale(&c, 1);
    ops_skip(&c);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 1);
    ops_must_run(&c);
    /* 1 + 1; 1.5 + 1 and 129.5 + 1 to even; 3 + 1 */
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1, 4), OPS_VALUES(2, 2, 4, 130));
    ops_end(&c);

    ops_begin(&c, MS, "QLinearAveragePool", 1);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_ints(&c, "pads", 2, (const int64_t[]){1, 0});
    ops_int(&c, "count_include_pad", 1);
    ops_int(&c, "channels_last", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 2), OPS_VALUES(10, -20, 30, 100));
    scale(&c, 1);
    zero(&c, DQ_INT8, 4);
    scale(&c, 0.5);
    zero(&c, DQ_INT8, 0);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 2, 2), OPS_VALUES(6, -24, 32, 72));
    ops_end(&c);
}
END_TEST

START_TEST(global_average_pool)
{
    ops_case c;
    for (int last = 0; last < 2; last++) {
        ops_begin(&c, MS, "QLinearGlobalAveragePool", 1);
        ops_int(&c, "channels_last", last);
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 2),
               last ? OPS_VALUES(10, 255, 13, 255) : OPS_VALUES(10, 13, 255, 255));
        scale(&c, 1);
        zero(&c, DQ_UINT8, 3);
        scale(&c, 1);
        zero(&c, DQ_UINT8, 1);
        ops_must_run(&c);
        if (last)
            ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1, 2), OPS_VALUES(9, 253)); /* 8.5 rounds to 8, then + 1 */
        else
            ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 2, 1), OPS_VALUES(9, 253));
        ops_end(&c);
    }
    ops_begin(&c, MS, "QLinearGlobalAveragePool", 1); /* channels without elements */
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 0), NULL);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 3);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 7);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 2, 1), OPS_VALUES(7, 7));
    ops_end(&c);

    ops_begin(&c, MS, "QLinearGlobalAveragePool", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2), NULL);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 3);
    scale(&c, 1);
    zero(&c, DQ_UINT8, 1);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "input 0 has 2 axes, expected batch, channels and 1 or more spatial axes");
    ops_end(&c);
}
END_TEST

START_TEST(max_pool_with_channels_last)
{
    ops_case c;
    ops_begin(&c, MS, "NhwcMaxPool", 1);
    ops_ints(&c, "kernel_shape", 2, (const int64_t[]){2, 2});
    ops_ints(&c, "pads", 4, (const int64_t[]){0, 1, 0, 0});
    ops_ints(&c, "dilations", 2, (const int64_t[]){1, 2});
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 3, 2),
           OPS_VALUES(-1, -10, -2, -20, -3, -30, -4, -5, -50, -60, -70,
                      -8)); /* rows of three places, two channels */
    ops_must_run(&c);
    /* places -1 and 1, then 0 and 2 */
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(-2, -20, -1, -5));
    ops_end(&c);
}
END_TEST

START_TEST(quantize_along_axis_1_unless_told)
{
    ops_case c;
    ops_begin(&c, MS, "QuantizeLinear", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 1, 3, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(2, 0.5));
    ops_in(&c, DQ_INT16, OPS_DIMS(2), OPS_VALUES(0, 1000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(2, 2), OPS_VALUES(0, 1002, 2, 1006));
    ops_end(&c);

    /* float16 is divided in float: the quotient 6550.4 is not rounded to float16, which were 6552 */
    ops_begin(&c, MS, "QuantizeLinear", 1);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(2047, -2047));
    ops_in(&c, DQ_FLOAT16, OPS_SCALAR, OPS_VALUES(0.3125));
    ops_in(&c, DQ_UINT16, OPS_SCALAR, OPS_VALUES(1000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(2), OPS_VALUES(7550, 0));
    ops_end(&c);

    ops_begin(&c, MS, "DequantizeLinear", 1);
    ops_in(&c, DQ_INT4, OPS_DIMS(3), OPS_VALUES(-8, 7, 0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(0.5));
    ops_in(&c, DQ_INT4, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-4.5, 3, -0.5));
    ops_end(&c);
}
END_TEST

START_TEST(gelus)
{
    ops_case c;
    ops_begin(&c, MS, "BiasGelu", 1);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2, 2), OPS_VALUES(0.5, 1, -0.5, -40));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(0.5, -1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2, 2),
             OPS_VALUES(0.5 * (1 + erf(0.70710678118654752440)), 0, 0, -0.0));
    ops_end(&c);

    ops_begin(&c, MS, "BiasGelu", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [1], expected [2] (last axis of input 0)");
    ops_end(&c);

    for (int skipped = 0; skipped < 2; skipped++) {
        ops_begin(&c, MS, "FastGelu", 1);
        ops_in(&c, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(30, -30));
        if (skipped)
            ops_skip(&c);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(30, -0.0));
        ops_end(&c);
    }

    ops_begin(&c, MS, "QuickGelu", 1);
    ops_float(&c, "alpha", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(3, -5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1.5, -2.5));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("qlinear");
    add_test(&tests, add_rounds_the_zero_point_with_the_sum);
    add_test(&tests, add_is_two_fused_steps);
    add_test(&tests, multiplication);
    add_test(&tests, zero_points_may_be_left_out);
    add_test(&tests, one_scale_only);
    add_test(&tests, integer_products);
    add_test(&tests, integer_sums);
    add_test(&tests, quantized_means);
    add_test(&tests, leaky_relu);
    add_test(&tests, concat_and_where);
    add_test(&tests, concat_refuses);
    add_test(&tests, softmax_rows);
    add_test(&tests, softmax_of_a_long_row);
    add_test(&tests, average_pool);
    add_test(&tests, global_average_pool);
    add_test(&tests, max_pool_with_channels_last);
    add_test(&tests, quantize_along_axis_1_unless_told);
    add_test(&tests, gelus);
    return run_suite(tests.suite);
}
