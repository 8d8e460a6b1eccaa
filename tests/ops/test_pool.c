/* SPDX-License-Identifier: Apache-2.0 */
/* Pools, softmax and normalization. */
#include "harness.h"
#include "ops/window.h"

#include <math.h>

#define INTS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})

static const double NINE[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

START_TEST(max_with_indices)
{
    ops_case c;
    ops_begin(&c, "", "MaxPool", 12);
    c.out_count = 2;
    ops_ints(&c, "kernel_shape", INTS(2, 2));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 2, 3), OPS_VALUES(-1, -2, -3, -4, -5, -6, 1, 9, 9, 4, 9, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 2, 1, 2), OPS_VALUES(-1, -2, 9, 9));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, 2, 1, 2), OPS_VALUES(0, 1, 7, 7));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 8);
    c.out_count = 2;
    ops_int(&c, "storage_order", 1);
    ops_ints(&c, "kernel_shape", INTS(3, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 3), OPS_VALUES(0, 0, 0, 7, 0, 0, 0, 0, 0));
    ops_must_run(&c);
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(1));
    ops_end(&c);
}
END_TEST

/* Rows of windows in many pieces, with pads, equals and NaNs, against the definition. */
START_TEST(max_places)
{
    enum { ROWS = 11, COLS = 300, PLANES = 9, COUNT = PLANES * ROWS * COLS };
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE};
    static double x[COUNT], want[COUNT], where[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 53 == 7 ? (double)NAN : i * 7 % 13;
    for (int t = 0; t < 6; t++) {
        const int step = t / 3 + 1, rows = (ROWS - 1) / step + 1, cols = (COLS - 1) / step + 1;
        for (int i = 0; i < PLANES * rows * cols; i++) {
            int best = -1;
            for (int tap = 0; tap < 9; tap++) {
                int row = i / cols % rows * step + tap / 3 - 1, col = i % cols * step + tap % 3 - 1,
                    at = (i / (rows * cols) * ROWS + row) * COLS + col;
                bool on = row >= 0 && row < ROWS && col >= 0 && col < COLS;
                if (on && (best < 0 || x[at] > x[best] || (isnan(x[at]) && !isnan(x[best]))))
                    best = at;
            }
            want[i] = x[best];
            where[i] = best;
        }
        ops_case c;
        ops_begin(&c, "", "MaxPool", 12);
        c.out_count = 2;
        ops_ints(&c, "kernel_shape", INTS(3, 3));
        ops_ints(&c, "pads", INTS(1, 1, 1, 1));
        ops_ints(&c, "strides", INTS(step, step));
        ops_in(&c, types[t % 3], OPS_DIMS(1, PLANES, ROWS, COLS), x);
        ops_must_run(&c);
        ops_want(&c, 0, types[t % 3], OPS_DIMS(1, PLANES, rows, cols), want);
        ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, PLANES, rows, cols), where);
        ops_end(&c);
    }
}
END_TEST

START_TEST(max_edges)
{
    ops_case c;
    ops_begin(&c, "", "MaxPool", 22); /* padding is never the maximum; NaN is */
    ops_ints(&c, "kernel_shape", INTS(2));
    ops_ints(&c, "pads", INTS(1, 1));
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, 1, 4), OPS_VALUES(-3, -2, (double)NAN, -1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1, 1, 5), OPS_VALUES(-3, -2, (double)NAN, (double)NAN, -1));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 12); /* the last window lies on padding only */
    c.out_count = 2;
    ops_ints(&c, "kernel_shape", INTS(2));
    ops_ints(&c, "pads", INTS(0, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(-1, -3, -2, -2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 4),
             OPS_VALUES(-1, -3, -(double)INFINITY, -(double)INFINITY, -2, -2, -(double)INFINITY,
                        -(double)INFINITY));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, 2, 4), OPS_VALUES(0, 1, 0, 0, 2, 3, 2, 2));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 22); /* rounded up, dilated */
    ops_ints(&c, "kernel_shape", INTS(2, 2));
    ops_ints(&c, "strides", INTS(2, 1));
    ops_ints(&c, "dilations", INTS(1, 2));
    ops_int(&c, "ceil_mode", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 3, 3), NINE);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(6, 9));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 22);
    ops_ints(&c, "kernel_shape", INTS(5, 1));
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 3, 3), NINE);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "input 0 has 3 elements on spatial axis 0, with padding 3: fewer than the window's 5");
    ops_end(&c);
}
END_TEST

/* Against each element of the window, one after the other. */
START_TEST(overlaps)
{
    enum { MAX = 5 };
    for (int64_t high = 1; high <= MAX; high++)
        for (int64_t origin = -7; origin < high; origin++)
            for (int64_t kernel = 1; kernel <= MAX; kernel++)
                for (int64_t step = 1; step <= 3; step++) {
                    int64_t first = 0, expected_first = 0;
                    size_t count = dq_window_overlap(origin, kernel, step, 0, high, &first), expected = 0;
                    for (int64_t k = kernel; k-- > 0;) {
                        const int64_t at = origin + k * step;
                        if (at >= 0 && at < high) {
                            expected++;
                            expected_first = at;
                        }
                    }
                    ck_assert_uint_eq(count, expected);
                    if (count)
                        ck_assert_int_eq(first, expected_first);
                }
}
END_TEST

/* Dilated windows begin on padding, at each place between the elements that they skip. */
START_TEST(dilated_over_padding)
{
    ops_case c;
    ops_begin(&c, "", "AveragePool", 22);
    ops_ints(&c, "kernel_shape", INTS(1, 3));
    ops_ints(&c, "dilations", INTS(1, 3));
    ops_ints(&c, "pads", INTS(0, 4, 0, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 3), OPS_VALUES(2, 4, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 1, 5), OPS_VALUES(8, 2, 4, 8, 2));
    ops_end(&c);
}
END_TEST

START_TEST(averages)
{
    for (int64_t pads = 0; pads < 2; pads++) {
        ops_case c;
        ops_begin(&c, "", "AveragePool", 22);
        ops_ints(&c, "kernel_shape", INTS(2, 2));
        ops_ints(&c, "strides", INTS(2, 2));
        ops_ints(&c, "pads", INTS(1, 1, 0, 0));
        ops_int(&c, "count_include_pad", pads);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 3), NINE);
        ops_must_run(&c);
        if (pads)
            ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(0.25, 1.25, 2.75, 7));
        else
            ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(1, 2.5, 5.5, 7));
        ops_end(&c);
    }
    ops_case c;
    ops_begin(&c, "", "AveragePool", 22); /* what hangs over the pads is not counted */
    ops_ints(&c, "kernel_shape", INTS(3));
    ops_ints(&c, "strides", INTS(2));
    ops_ints(&c, "pads", INTS(0, 1));
    ops_int(&c, "count_include_pad", 1);
    ops_int(&c, "ceil_mode", 1);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 1, 5), OPS_VALUES(1, 2, 3, 4, 5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(1, 1, 3), OPS_VALUES(2, 4, 2.5));
    ops_end(&c);
}
END_TEST

START_TEST(global_pools)
{
    static const struct {
        const char *name;
        double want[2];
    } cases[] = {{"GlobalAveragePool", {2.5, -2.5}}, {"GlobalMaxPool", {4, -1}}, {"GlobalLpPool", {10, 10}}};
    for (size_t i = 0; i < 3; i++) {
        ops_case c;
        ops_begin(&c, "", cases[i].name, i == 2 ? 2 : 1);
        if (i == 2)
            ops_int(&c, "p", 1);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2, 2), OPS_VALUES(1, 2, 3, 4, -1, -2, -3, -4));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 1, 1), cases[i].want);
        ops_end(&c);
    }
}
END_TEST

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

    ops_begin(&c, "", "LogSoftmax", 13);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(0, 2000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(-2000, 0));
    ops_end(&c);

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

/* Those of narrower types are near those of double, whatever way the shape makes them go. */
/* Norms and deviations of floats beside those of doubles. */
START_TEST(norms)
{
    static const int64_t dims[][3] = {{2, 70, 5}, {1, 3, 300}, {3, 7, 17}, {2, 1, 1}};
    static double x[MAX], y[MAX], z[MAX];
    for (size_t i = 0; i < MAX; i++)
        x[i] = i % 70 < 5 ? 0 : (double)(i * 7 % 113) / 16 - 3;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (int64_t axis = 0; axis < 3; axis++)
            for (int form = 0; form < 4; form++) {
                size_t n = (size_t)(dims[d][0] * dims[d][1] * dims[d][2]);
                for (int narrow = 0; narrow < 2; narrow++) {
                    const int64_t axes[] = {axis, axis ? axis - 1 : 2};
                    ops_case c;
                    ops_begin(&c, "", form < 2 ? "LpNormalization" : "MeanVarianceNormalization",
                              form < 2 ? 22 : 13);
                    if (form < 2) {
                        ops_int(&c, "axis", axis);
                        ops_int(&c, "p", form + 1);
                    } else {
                        ops_ints(&c, "axes", form == 2 ? 1 : 2, axes);
                    }
                    ops_in(&c, narrow ? DQ_FLOAT : DQ_DOUBLE, OPS_DIMS(dims[d][0], dims[d][1], dims[d][2]),
                           x);
                    ops_must_run(&c);
                    for (size_t i = 0; i < n; i++)
                        (narrow ? y : z)[i] = dq_tensor_get_double(c.out[0], i);
                    ops_end(&c);
                }
                for (size_t i = 0; i < n; i++)
                    if (!(fabs(y[i] - z[i]) <= 0x1p-21 * (fabs(z[i]) + 1)))
                        ck_abort_msg("form %d, case %zu, axis %d: element %zu is %g, expected %g", form, d,
                                     (int)axis, i, y[i], z[i]);
            }
}
END_TEST

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

START_TEST(normalizations)
{
    ops_case c;
    ops_begin(&c, "", "BatchNormalization", 15);
    ops_float(&c, "epsilon", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(2, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(10, 20));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(4, 0.25));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(10, 11, 20, 22));
    ops_end(&c);

    ops_begin(&c, "", "BatchNormalization", 15);
    ops_int(&c, "training_mode", 1);
    for (int i = 0; i < 5; i++)
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_must_refuse(&c, DQ_UNSUPPORTED, "is in training mode, expected inference");
    ops_end(&c);

    ops_begin(&c, "", "LayerNormalization", 17);
    c.out_count = 2;
    ops_int(&c, "axis", -1);
    ops_float(&c, "epsilon", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 3, 10, 30));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(2, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(-2, 4, -2, 4));
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(2, 20));
    ops_end(&c);

    ops_begin(&c, "", "LayerNormalization", 17); /* of nothing */
    c.out_count = 3;
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    for (uint32_t i = 1; i < 3; i++)
        ops_want(&c, i, DQ_FLOAT, OPS_DIMS(2, 1), (const double[]){(double)NAN, (double)NAN});
    ops_end(&c);

    ops_begin(&c, "", "GroupNormalization", 21);
    ops_int(&c, "num_groups", 1);
    ops_float(&c, "epsilon", 0);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, 2, 1), OPS_VALUES(1, 3));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(5, 7));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(1, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(1, 2, 1), OPS_VALUES(-4, 8));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("pools, softmax, normalization");
    add_test(&tests, max_with_indices);
    add_test(&tests, max_places);
    add_test(&tests, max_edges);
    add_test(&tests, overlaps);
    add_test(&tests, dilated_over_padding);
    add_test(&tests, averages);
    add_test(&tests, global_pools);
    add_test(&tests, softmax_axes);
    add_test(&tests, norms);
    add_test(&tests, softmax_shapes);
    add_test(&tests, normalizations);
    return run_suite(tests.suite);
}
