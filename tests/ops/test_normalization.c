/* SPDX-License-Identifier: Apache-2.0 */
/* BatchNormalization, GroupNormalization, LpNormalization, MeanVarianceNormalization and LRN. */
#include "harness.h"

#include <math.h>

START_TEST(batch_normalization)
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
}
END_TEST

START_TEST(group_normalization)
{
    ops_case c;
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

enum { MAX = 600 * 21 };

/* LpNormalization and MeanVarianceNormalization of floats against those of doubles. */
START_TEST(floats_are_near_doubles)
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

/* Channels 2 before and 3 after each one, as far as there are any. */
START_TEST(lrn_near_the_first_and_last_channels)
{
    enum { CHANNELS = 7 };
    const double x[CHANNELS] = {1, 2, 3, 4, 5, 6, 7};
    double y[CHANNELS];
    for (int i = 0; i < CHANNELS; i++) {
        double squares = 0;
        for (int k = i - 2; k <= i + 3; k++)
            squares += k >= 0 && k < CHANNELS ? x[k] * x[k] : 0;
        y[i] = (double)(float)(x[i] / (2 + squares));
    }
    ops_case c;
    ops_begin(&c, "", "LRN", 13);
    ops_int(&c, "size", 6);
    ops_float(&c, "alpha", 6);
    ops_float(&c, "beta", 1);
    ops_float(&c, "bias", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, CHANNELS, 1, 1), x);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, CHANNELS, 1, 1), y);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("normalization", NULL, NULL);
    add_test(&tests, batch_normalization);
    add_test(&tests, group_normalization);
    add_test(&tests, floats_are_near_doubles);
    add_test(&tests, lrn_near_the_first_and_last_channels);
    return test_program_run(&tests);
}
