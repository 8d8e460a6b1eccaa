/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample. */
#include "harness.h"

/* Several blocks of positions; the image is linear, so that interpolated values are exact. */
START_TEST(many_positions_on_planes)
{
    enum { SIDE = 9, PLACES = 150, IMAGES = 4 };
    static const dq_dtype types[] = {DQ_FLOAT, DQ_DOUBLE};
    for (size_t t = 0; t < 2; t++) {
        double x[IMAGES * SIDE * SIDE], grid[2 * PLACES * 2], want[IMAGES * PLACES];
        for (size_t i = 0; i < IMAGES * SIDE * SIDE; i++)
            x[i] = (double)(i % SIDE + 16 * (i / SIDE % SIDE) + 1000 * (i / SIDE / SIDE));
        for (size_t i = 0; i < 2 * PLACES * 2; i++)
            grid[i] = (double)(i * 37 % 129) / 64 - 1;
        for (size_t i = 0; i < IMAGES * PLACES; i++) { /* two channels of two batches */
            const double *place = grid + (i / PLACES / 2 * PLACES + i % PLACES) * 2;
            want[i] = (place[0] + 1) * 4 + 16 * (place[1] + 1) * 4 + 1000 * (double)(i / PLACES);
        }
        ops_case c;
        ops_begin(&c, "", "GridSample", 22);
        ops_int(&c, "align_corners", 1);
        ops_in(&c, types[t], OPS_DIMS(2, 2, SIDE, SIDE), x);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2, PLACES / 10, 10, 2), grid);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, 2, PLACES / 10, 10), want);
        ops_end(&c);
    }
}
END_TEST

/* Cubic interpolation a quarter of a pixel outside the centre of the border pixel: the grid's range ends at
 * the pixel's corner. */
START_TEST(cubic_at_the_border)
{
    for (int align = 0; align < 2; align++) {
        ops_case c;
        ops_begin(&c, "", "GridSample", 22);
        ops_string(&c, "mode", "cubic");
        ops_string(&c, "padding_mode", "border");
        ops_int(&c, "align_corners", align);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 1, 4), OPS_VALUES(0, 1, 5, 9));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 3, 2), OPS_VALUES(-0.875, 0, -1.5, 0, 1.5, 0));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 1, 1, 3),
                 align ? OPS_VALUES(0.0780029296875, 0, 9) : OPS_VALUES(-0.10546875, 0, 9));
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("grid_sample", NULL, NULL);
    add_test(&tests, many_positions_on_planes);
    add_test(&tests, cubic_at_the_border);
    return test_program_run(&tests);
}
