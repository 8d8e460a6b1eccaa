/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool, the global pools and MaxUnpool. */
#include "harness.h"
#include "ops/window.h"

#include <math.h>

static const double NINE[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

START_TEST(max_with_indices)
{
    ops_case c;
    ops_begin(&c, "", "MaxPool", 12);
    c.out_count = 2;
    ops_ints(&c, "kernel_shape", OPS_INTS(2, 2));
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 2, 3), OPS_VALUES(-1, -2, -3, -4, -5, -6, 1, 9, 9, 4, 9, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 2, 1, 2), OPS_VALUES(-1, -2, 9, 9));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, 2, 1, 2), OPS_VALUES(0, 1, 7, 7));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 8);
    c.out_count = 2;
    ops_int(&c, "storage_order", 1);
    ops_ints(&c, "kernel_shape", OPS_INTS(3, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 3), OPS_VALUES(0, 0, 0, 7, 0, 0, 0, 0, 0));
    ops_must_run(&c);
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, 1, 1, 1), OPS_VALUES(1));
    ops_end(&c);
}
END_TEST

/* Rows of windows in many pieces, with pads, equals and NaNs, against the definition. */
START_TEST(max_positions)
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
        ops_ints(&c, "kernel_shape", OPS_INTS(3, 3));
        ops_ints(&c, "pads", OPS_INTS(1, 1, 1, 1));
        ops_ints(&c, "strides", OPS_INTS(step, step));
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
    ops_ints(&c, "kernel_shape", OPS_INTS(2));
    ops_ints(&c, "pads", OPS_INTS(1, 1));
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, 1, 4), OPS_VALUES(-3, -2, (double)NAN, -1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1, 1, 5), OPS_VALUES(-3, -2, (double)NAN, (double)NAN, -1));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 12); /* the last window lies on padding only */
    c.out_count = 2;
    ops_ints(&c, "kernel_shape", OPS_INTS(2));
    ops_ints(&c, "pads", OPS_INTS(0, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(-1, -3, -2, -2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 4),
             OPS_VALUES(-1, -3, -(double)INFINITY, -(double)INFINITY, -2, -2, -(double)INFINITY,
                        -(double)INFINITY));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(1, 2, 4), OPS_VALUES(0, 1, 0, 0, 2, 3, 2, 2));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 22); /* rounded up, dilated */
    ops_ints(&c, "kernel_shape", OPS_INTS(2, 2));
    ops_ints(&c, "strides", OPS_INTS(2, 1));
    ops_ints(&c, "dilations", OPS_INTS(1, 2));
    ops_int(&c, "ceil_mode", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 3, 3), NINE);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1, 2, 1), OPS_VALUES(6, 9));
    ops_end(&c);

    ops_begin(&c, "", "MaxPool", 22);
    ops_ints(&c, "kernel_shape", OPS_INTS(5, 1));
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
    ops_ints(&c, "kernel_shape", OPS_INTS(1, 3));
    ops_ints(&c, "dilations", OPS_INTS(1, 3));
    ops_ints(&c, "pads", OPS_INTS(0, 4, 0, 4));
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
        ops_ints(&c, "kernel_shape", OPS_INTS(2, 2));
        ops_ints(&c, "strides", OPS_INTS(2, 2));
        ops_ints(&c, "pads", OPS_INTS(1, 1, 0, 0));
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
    ops_ints(&c, "kernel_shape", OPS_INTS(3));
    ops_ints(&c, "strides", OPS_INTS(2));
    ops_ints(&c, "pads", OPS_INTS(0, 1));
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

START_TEST(unpool_refuses_positions_outside)
{
    ops_case c;
    ops_begin(&c, "", "MaxUnpool", 22);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1, 1, 1), OPS_VALUES(2));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds index 2, expected 0 to 1");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("pool", NULL, NULL);
    add_test(&tests, max_with_indices);
    add_test(&tests, max_positions);
    add_test(&tests, max_edges);
    add_test(&tests, overlaps);
    add_test(&tests, dilated_over_padding);
    add_test(&tests, averages);
    add_test(&tests, global_pools);
    add_test(&tests, unpool_refuses_positions_outside);
    return test_program_run(&tests);
}
