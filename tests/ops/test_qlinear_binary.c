/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAdd, QLinearMul and MulInteger of com.microsoft: expected values are worked out by hand. */
#include "harness.h"

#include <math.h>

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
    ops_begin(&c, "com.microsoft", name, 1);
    for (int i = 0; i < 2; i++) {
        ops_in(&c, dtype, OPS_DIMS(in[i].count), in[i].values);
        ops_scalar(&c, DQ_FLOAT, in[i].scale);
        ops_scalar(&c, dtype, in[i].zero);
    }
    ops_scalar(&c, DQ_FLOAT, want.scale);
    ops_scalar(&c, dtype, want.zero);
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
    ops_begin(&c, "com.microsoft", "QLinearAdd", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 1), OPS_VALUES(1, -2));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_skip(&c);
    ops_in(&c, DQ_INT8, OPS_DIMS(2), OPS_VALUES(10, 20));
    ops_scalar(&c, DQ_FLOAT, 0.5);
    ops_skip(&c);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(6, 11, 3, 8));
    ops_end(&c);
}
END_TEST

START_TEST(one_scale_only)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearMul", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), NULL);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_skip(&c);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected 1");
    ops_end(&c);
}
END_TEST

START_TEST(integer_products)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "MulInteger", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(255, 0));
    ops_scalar(&c, DQ_UINT8, 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(255, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(64770, 762, -255, -3));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_binary", NULL, NULL);
    add_test(&tests, add_rounds_the_zero_point_with_the_sum);
    add_test(&tests, add_is_two_fused_steps);
    add_test(&tests, multiplication);
    add_test(&tests, zero_points_may_be_left_out);
    add_test(&tests, one_scale_only);
    add_test(&tests, integer_products);
    return test_program_run(&tests);
}
