/* SPDX-License-Identifier: Apache-2.0 */
/* RoiAlign. The largest sampling ratio costs no more than the pixels: sampled one by one it takes hours, and
 * the test ends by its time limit. */
#include "harness.h"

#include <math.h>

enum { HIGH = 6, WIDE = 5, CHANNELS = 2, BINS_HIGH = 2, BINS_WIDE = 3 };

/* The weights of the pixels around a place on an axis; false: it is outside. */
static bool around(double place, size_t size, size_t at[2], double weight[2])
{
    if (!(place >= -1 && place <= (double)size))
        return false;
    place = fmax(place, 0);
    const bool last = (size_t)place + 1 >= size;
    at[0] = last ? size - 1 : (size_t)place;
    at[1] = last ? at[0] : at[0] + 1;
    weight[1] = last ? 0 : place - (double)at[0];
    weight[0] = 1 - weight[1];
    return true;
}

static double bin_of(const double *x, const double edge[4], size_t row, size_t col, int ratio, bool max)
{
    const double bin[2] = {(edge[3] - edge[1]) / BINS_HIGH, (edge[2] - edge[0]) / BINS_WIDE};
    double sum = 0, most = -(double)INFINITY;
    for (int i = 0; i < ratio; i++)
        for (int k = 0; k < ratio; k++) {
            size_t y_at[2], x_at[2];
            double high[2], wide[2], value = 0, largest = -(double)INFINITY;
            if (!around(edge[1] - 0.5 + ((double)row + (i + 0.5) / ratio) * bin[0], HIGH, y_at, high) ||
                !around(edge[0] - 0.5 + ((double)col + (k + 0.5) / ratio) * bin[1], WIDE, x_at, wide)) {
                most = fmax(most, 0);
                continue;
            }
            for (int n = 0; n < 4; n++) {
                const double part = high[n / 2] * wide[n % 2] * x[y_at[n / 2] * WIDE + x_at[n % 2]];
                value += part;
                largest = isnan(part) ? largest : fmax(largest, part);
            }
            sum += value;
            most = fmax(most, largest);
        }
    return max ? most : sum / ratio / ratio;
}

START_TEST(many_samples_of_a_region_are_those_of_its_rows_and_columns)
{
    enum { RATIO = 41 };
    static const double regions[3][4] = {{1, 0.5, 4, 5.25}, {-3, -2, 9, 8}, {0, 0, 5, 6}};
    double x[CHANNELS * HIGH * WIDE];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = (double)(i * 37 % 61) - 30;
    for (int odd = 0; odd < 2; odd++)
        for (int max = 0; max < 2; max++) {
            ops_case c;
            if (odd)
                x[17] = (double)INFINITY;
            ops_begin(&c, "", "RoiAlign", 22);
            ops_int(&c, "output_height", BINS_HIGH);
            ops_int(&c, "output_width", BINS_WIDE);
            ops_int(&c, "sampling_ratio", RATIO);
            ops_string(&c, "mode", max ? "max" : "avg");
            ops_in(&c, DQ_DOUBLE, OPS_DIMS(1, CHANNELS, HIGH, WIDE), x);
            ops_in(&c, DQ_DOUBLE, OPS_DIMS(3, 4), regions[0]);
            ops_in(&c, DQ_INT64, OPS_DIMS(3), OPS_VALUES(0, 0, 0));
            ops_must_run(&c);
            for (size_t i = 0; i < 3 * CHANNELS * BINS_HIGH * BINS_WIDE; i++) {
                const size_t bin = i % (BINS_HIGH * BINS_WIDE), plane = i / (BINS_HIGH * BINS_WIDE);
                const double want = bin_of(x + plane % CHANNELS * HIGH * WIDE, regions[plane / CHANNELS],
                                           bin / BINS_WIDE, bin % BINS_WIDE, RATIO, max);
                const double got = dq_data(c.out[0], double)[i];
                if (isfinite(want))
                    ck_assert_double_eq_tol(got, want, (max ? 1e-300 : 1e-12));
                else
                    ck_assert_int_eq(isnan(got), isnan(want));
            }
            ops_end(&c);
        }
}
END_TEST

/* 4,000,000,000 samples in each bin. */
START_TEST(the_most_samples_take_as_long_as_the_pixels)
{
    ops_case c;
    double x[HIGH * WIDE], want[BINS_HIGH * BINS_WIDE];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = 3;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        want[i] = 3;
    ops_begin(&c, "", "RoiAlign", 22);
    ops_int(&c, "output_height", BINS_HIGH);
    ops_int(&c, "output_width", BINS_WIDE);
    ops_int(&c, "sampling_ratio", 65536);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, HIGH, WIDE), x);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(1, 1, 4, 4));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, BINS_HIGH, BINS_WIDE), want);
    ops_end(&c);
}
END_TEST

START_TEST(regions_outside_are_refused)
{
    ops_case c;
    ops_begin(&c, "", "RoiAlign", 22);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(0, 0, 1, 1));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_refuse(&c, DQ_BAD_INPUT, "has a region of image 1, expected 0 to 0");
    ops_end(&c);

    ops_begin(&c, "", "RoiAlign", 22); /* a region as large as a float can say does not run for ever */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4), OPS_VALUES(0, 0, 1048576, 1));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(0));
    ops_must_refuse(&c, DQ_BAD_INPUT, "takes 1.04858e+06 samples of a bin, and at most 65536 run");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("roi_align", NULL, NULL);
    add_test(&tests, many_samples_of_a_region_are_those_of_its_rows_and_columns);
    add_test(&tests, the_most_samples_take_as_long_as_the_pixels);
    add_test(&tests, regions_outside_are_refused);
    return test_program_run(&tests);
}
