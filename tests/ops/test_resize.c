/* SPDX-License-Identifier: Apache-2.0 */
/* Resize: coordinates, rounding, types. */
#include "harness.h"

#include <math.h>

static void resize_row(const char *mode, const char *coordinate, dq_dtype dtype, double scale, int64_t n,
                       const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Resize", 19);
    ops_string(&c, "mode", mode);
    ops_string(&c, "coordinate_transformation_mode", coordinate);
    ops_in(&c, dtype, OPS_DIMS(1, 4), OPS_VALUES(10, 20, 30, 40));
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, scale));
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(1, n), want);
    ops_end(&c);
}

START_TEST(rows)
{
    resize_row("nearest", "half_pixel", DQ_UINT8, 2, 8, OPS_VALUES(10, 10, 20, 20, 30, 30, 40, 40));
    resize_row("nearest", "asymmetric", DQ_FLOAT16, 2, 8, OPS_VALUES(10, 10, 20, 20, 30, 30, 40, 40));
    resize_row("linear", "half_pixel", DQ_FLOAT, 2, 8,
               OPS_VALUES(10, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 40));
    resize_row("linear", "half_pixel", DQ_UINT8, 2, 8, OPS_VALUES(10, 12, 17, 22, 27, 32, 37, 40));
    resize_row("linear", "align_corners", DQ_FLOAT, 1.75, 7, OPS_VALUES(10, 15, 20, 25, 30, 35, 40));
    resize_row("linear", "half_pixel", DQ_DOUBLE, 0.5, 2, OPS_VALUES(15, 35));
    resize_row("cubic", "asymmetric", DQ_FLOAT, 1, 4, OPS_VALUES(10, 20, 30, 40));
}
END_TEST

/* Pixels of two channels, and of more than go along with them. */
START_TEST(channels_last)
{
    const double twice[] = {0, 1, 3, 4};
    for (int n = 2; n <= 20; n += 18) {
        double x[2 * 20], want[4 * 20], nearest[4 * 20];
        for (int c = 0; c < n; c++) {
            x[c] = 10 * c;
            x[n + c] = 10 * c + 4;
            for (int i = 0; i < 4; i++) {
                want[i * n + c] = 10 * c + twice[i];
                nearest[i * n + c] = x[i / 2 * n + c];
            }
        }
        for (int linear = 0; linear < 2; linear++) {
            ops_case c;
            ops_begin(&c, "", "Resize", 19);
            ops_string(&c, "mode", linear ? "linear" : "nearest");
            ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, n), x);
            ops_skip(&c);
            ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 2, 1));
            ops_must_run(&c);
            ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 4, n), linear ? want : nearest);
            ops_end(&c);
        }
    }
}
END_TEST

/* Halving one axis, or both, after an unchanged one, gives means. */
START_TEST(halves)
{
    enum { PLANES = 3, ROWS = 7, COLS = 90 };
    double x[PLANES * ROWS * COLS], want[PLANES * ROWS * COLS];
    for (size_t i = 0; i < PLANES * ROWS * COLS; i++)
        x[i] = (double)(i * 37 % 101) - 50;
    for (size_t down = 1; down < 3; down++) {
        const size_t height = ROWS / down, width = COLS / 2;
        for (size_t i = 0; i < PLANES * height * width; i++) {
            const size_t row = i / width % height * down,
                         at = (i / width / height * ROWS + row) * COLS + i % width * 2;
            const double other = down > 1 ? (x[at + COLS] + x[at + COLS + 1]) / 2 : 0;
            want[i] = ((x[at] + x[at + 1]) / 2 + other) / (double)down;
        }
        ops_case c;
        ops_begin(&c, "", "Resize", 19);
        ops_string(&c, "mode", "linear");
        ops_in(&c, DQ_FLOAT, OPS_DIMS(PLANES, ROWS, COLS), x);
        ops_skip(&c);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 1 / (double)down, 0.5));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(PLANES, (int64_t)height, (int64_t)width), want);
        ops_end(&c);
    }
}
END_TEST

/* Rows from the last to the first, more of them than are kept resampled, and integers past the type's ends.
 */
START_TEST(planes)
{
    static const dq_dtype types[] = {DQ_INT8, DQ_UINT16, DQ_UINT32, DQ_INT64, DQ_FLOAT};
    static const double want[] = {100, 101, 102, 85, 86, 87, 70, 71, 72, 55, 56,
                                  57,  40,  41,  42, 25, 26, 27, 10, 11, 12};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        ops_case c;
        ops_begin(&c, "", "Resize", 19);
        ops_string(&c, "mode", "linear");
        ops_string(&c, "coordinate_transformation_mode", "tf_crop_and_resize");
        ops_in(&c, types[t], OPS_DIMS(10, 2),
               OPS_VALUES(10, 12, 20, 22, 30, 32, 40, 42, 50, 52, 60, 62, 70, 72, 80, 82, 90, 92, 100, 102));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(1, 0, 0, 1));
        ops_skip(&c);
        ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(7, 3));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(7, 3), want);
        ops_end(&c);
    }
    static const struct {
        dq_dtype dtype;
        double low, high;
    } ends[] = {{DQ_UINT8, 0, 255},
                {DQ_INT8, -128, 127},
                {DQ_INT16, -32768, 32767},
                {DQ_INT32, INT32_MIN, INT32_MAX}};
    for (size_t t = 0; t < sizeof ends / sizeof ends[0]; t++) {
        double low = ends[t].low, high = ends[t].high;
        ops_case c;
        ops_begin(&c, "", "Resize", 19);
        ops_string(&c, "mode", "cubic");
        ops_string(&c, "coordinate_transformation_mode", "asymmetric");
        ops_in(&c, ends[t].dtype, OPS_DIMS(6), OPS_VALUES(low, low, low, high, high, high));
        ops_skip(&c);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(2));
        ops_must_run(&c);
        double middle =
            trunc((low + high) / 2) + 0.0; /* what rises there goes below and above at its sides */
        ops_want(&c, 0, ends[t].dtype, OPS_DIMS(12),
                 OPS_VALUES(low, low, low, low, low, middle, high, high, high, high, high, high));
        ops_end(&c);
    }
}
END_TEST

/* Fewer rows, at and between those of the input, of fewer and of more columns. */
START_TEST(shrunk_planes)
{
    enum { PLANES = 3, ROWS = 13, COLS = 9, FEWER = 9 };
    static const int64_t widths[] = {5, 17};
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE};
    for (size_t t = 0; t < 6; t++) {
        const int64_t n = widths[t / 3];
        double x[PLANES * ROWS * COLS], want[PLANES * FEWER * 17];
        for (size_t i = 0; i < PLANES * ROWS * COLS; i++)
            x[i] = (double)(i % COLS) + 16 * (double)(i / COLS);
        for (int64_t i = 0; i < PLANES * FEWER * n; i++)
            want[i] = (double)(i % n) * 8 / (double)(n - 1) + 16 * (double)(i / n % FEWER) * 1.5 +
                      16 * ROWS * (double)(i / n / FEWER);
        ops_case c;
        ops_begin(&c, "", "Resize", 19);
        ops_string(&c, "mode", "linear");
        ops_string(&c, "coordinate_transformation_mode", "align_corners");
        ops_in(&c, types[t % 3], OPS_DIMS(PLANES, ROWS, COLS), x);
        ops_skip(&c);
        ops_skip(&c);
        ops_in(&c, DQ_INT64, OPS_DIMS(3), OPS_VALUES(PLANES, FEWER, (double)n));
        ops_must_run(&c);
        ops_want(&c, 0, types[t % 3], OPS_DIMS(PLANES, FEWER, n), want);
        ops_end(&c);
    }
}
END_TEST

START_TEST(by_sizes_on_some_axes)
{
    ops_case c;
    ops_begin(&c, "", "Resize", 18);
    ops_ints(&c, "axes", 1, (const int64_t[]){-1});
    ops_string(&c, "mode", "linear");
    ops_string(&c, "coordinate_transformation_mode", "asymmetric");
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(0, 8, 100, 108));
    ops_skip(&c);
    ops_skip(&c);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 4), OPS_VALUES(0, 4, 8, 8, 100, 104, 108, 108));
    ops_end(&c);
}
END_TEST

START_TEST(crops)
{
    ops_case c;
    ops_begin(&c, "", "Resize", 13);
    ops_string(&c, "mode", "linear");
    ops_string(&c, "coordinate_transformation_mode", "tf_crop_and_resize");
    ops_float(&c, "extrapolation_value", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 10, 20));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0.5, 1.5));
    ops_skip(&c);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(5), OPS_VALUES(10, 15, 20, -1, -1));
    ops_end(&c);
}
END_TEST

START_TEST(version_10)
{
    ops_case c;
    ops_begin(&c, "", "Resize", 10);
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 4), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0.6, 0.6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, 2), OPS_VALUES(1, 3));
    ops_end(&c);
}
END_TEST

START_TEST(refusals)
{
    ops_case c;
    ops_begin(&c, "", "Resize", 19);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(-1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "has scale -1 for axis 0, expected more than 0");
    ops_end(&c);

    ops_begin(&c, "", "Resize", 19);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has 2 scales or sizes, expected 1 (one for each axis)");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("resize", NULL, NULL);
    add_test(&tests, rows);
    add_test(&tests, channels_last);
    add_test(&tests, halves);
    add_test(&tests, planes);
    add_test(&tests, shrunk_planes);
    add_test(&tests, by_sizes_on_some_axes);
    add_test(&tests, crops);
    add_test(&tests, version_10);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
