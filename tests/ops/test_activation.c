/* SPDX-License-Identifier: Apache-2.0 */
/* Activations with parameters: PRelu, LeakyRelu, ThresholdedRelu, Shrink, HardSigmoid. */
#include "harness.h"

#include <math.h>

START_TEST(prelu_slopes_of_channels_before_opset_7)
{
    ops_case c;
    for (int version = 1; version <= 7; version++) {
        if (version > 1 && version < 6)
            continue;
        ops_begin(&c, "", "PRelu", version);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), OPS_VALUES(-1, -2, -3, 4));
        ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(10, 100));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 2),
                 version < 7 ? OPS_VALUES(-10, -20, -300, 4) : OPS_VALUES(-10, -200, -30, 4));
        ops_end(&c);
    }
    ops_begin(&c, "", "PRelu", 6);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(3, 1, 2), OPS_VALUES(-1, 1, -2, 2, -3, 3));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(1), OPS_VALUES(0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(3, 1, 2), OPS_VALUES(-0.5, 1, -1, 2, -1.5, 3));
    ops_end(&c);

    ops_begin(&c, "", "PRelu", 6);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected 1 or 3 (axis 1 of input 0)");
    ops_end(&c);
}
END_TEST

START_TEST(alpha_and_beta)
{
    ops_case c;
    ops_begin(&c, "", "LeakyRelu", 16);
    ops_float(&c, "alpha", 0.25f);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(-8, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(-2, 8));
    ops_end(&c);

    for (int narrow = 0; narrow < 2; narrow++) { /* NaN is not over the threshold */
        ops_begin(&c, "", "ThresholdedRelu", 22);
        ops_float(&c, "alpha", 0.5f);
        ops_in(&c, narrow ? DQ_FLOAT : DQ_DOUBLE, OPS_DIMS(4),
               OPS_VALUES((double)NAN, 0.5, 1, (double)INFINITY));
        ops_must_run(&c);
        ops_want(&c, 0, narrow ? DQ_FLOAT : DQ_DOUBLE, OPS_DIMS(4), OPS_VALUES(0, 0, 1, (double)INFINITY));
        ops_end(&c);
    }

    ops_begin(&c, "", "Shrink", 9); /* beyond int64 */
    ops_float(&c, "lambd", 0.5f);
    ops_float(&c, "bias", 4096);
    ops_in(&c, DQ_UINT64, OPS_DIMS(2), OPS_VALUES(18446744073709547520.0, 5000));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT64, OPS_DIMS(2), OPS_VALUES(18446744073709543424.0, 904));
    ops_end(&c);

    ops_begin(&c, "", "HardSigmoid", 22);
    ops_float(&c, "alpha", 0.25f);
    ops_float(&c, "beta", 0.5f);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-8, 1, 8));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 0.75, 1));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("activation", NULL, NULL);
    add_test(&tests, prelu_slopes_of_channels_before_opset_7);
    add_test(&tests, alpha_and_beta);
    return test_program_run(&tests);
}
