/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, LogSoftmax and Hardmax. */
#include "harness.h"

#include <math.h>

START_TEST(softmax_axes)
{
    ops_case c;
    ops_begin(&c, "", "Softmax", 13); /* no overflow, any axis */
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1000, -1000, 1000, 1000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0.5, 0, 0.5, 1));
    ops_end(&c);

    ops_begin(&c, "", "Softmax", 11); /* all axes from 1 on */
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2, 2, 2), OPS_VALUES(0, 0, 0, 0, 7, 7, 7, 7));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(2, 2, 2), OPS_VALUES(.25, .25, .25, .25, .25, .25, .25, .25));
    ops_end(&c);
}
END_TEST

START_TEST(log_softmax)
{
    ops_case c;
    ops_begin(&c, "", "LogSoftmax", 13);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(0, 2000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(-2000, 0));
    ops_end(&c);
}
END_TEST

START_TEST(hardmax)
{
    ops_case c;
    ops_begin(&c, "", "Hardmax", 13);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 5, 5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 1, 0));
    ops_end(&c);

    ops_begin(&c, "", "Hardmax", 13); /* the first NaN, as ArgMax has it */
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), (const double[]){5, (double)NAN, 7, (double)NAN});
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(0, 1, 0, 0));
    ops_end(&c);

    ops_begin(&c, "", "Hardmax", 13); /* of columns, too */
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), (const double[]){5, 1, 7, (double)NAN, 1, -(double)INFINITY});
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(0, 1, 1, 1, 0, 0));
    ops_end(&c);
}
END_TEST

enum { MAX = 600 * 21 };

/* The results of an operator along an axis in double. */
static void run_along(const char *name, dq_dtype dtype, const int64_t dims[3], int64_t axis, const double *x,
                      double *y)
{
    ops_case c;
    ops_begin(&c, "", name, 13);
    ops_int(&c, "axis", axis);
    ops_in(&c, dtype, OPS_DIMS(dims[0], dims[1], dims[2]), x);
    ops_must_run(&c);
    for (size_t i = 0; i < c.out[0]->count; i++)
        y[i] = dq_tensor_get_double(c.out[0], i);
    ops_end(&c);
}

/* Results of narrower types are near those of double, for shapes of every algorithm. */
START_TEST(softmax_shapes)
{
    static const int64_t dims[][3] = {{1, 70, 5},   {1, 3, 65},   {1, 3, 64},   {2, 66, 1},  {1, 1, 10},
                                      {2, 7, 37},   {2, 70, 16},  {1, 65, 70},  {3, 9, 80},  {3, 5, 100},
                                      {270, 1, 16}, {1, 270, 16}, {1, 600, 21}, {1, 2, 1030}};
    static const char *const names[] = {"Softmax", "LogSoftmax", "Hardmax"};
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_BFLOAT16};
    static double x[MAX], y[MAX], z[MAX];
    for (size_t i = 0; i < MAX; i++)
        x[i] = (double)(i * 7 % 113) / 16 - 3; /* numbers of all types */
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (size_t k = 0; k < 3; k++)
            for (int64_t axis = 1; axis < 3; axis++) {
                run_along(names[k], DQ_DOUBLE, dims[d], axis, x, z);
                for (size_t t = 0; t < 3; t++) {
                    double unit = t == 0 ? 0x1p-22 : t == 1 ? 0x1p-11 : 0x1p-8;
                    run_along(names[k], types[t], dims[d], axis, x, y);
                    for (int64_t i = 0; i < dims[d][0] * dims[d][1] * dims[d][2]; i++)
                        if (!(fabs(y[i] - z[i]) <= (k == 2 ? 0 : unit * (fabs(z[i]) + 0x1p-14))))
                            ck_abort_msg("%s, case %zu, axis %d, type %zu: element %d is %g, expected %g",
                                         names[k], d, (int)axis, t, (int)i, y[i], z[i]);
                }
            }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("softmax", NULL, NULL);
    add_test(&tests, softmax_axes);
    add_test(&tests, log_softmax);
    add_test(&tests, hardmax);
    add_test(&tests, softmax_shapes);
    return test_program_run(&tests);
}
