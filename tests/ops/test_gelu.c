/* SPDX-License-Identifier: Apache-2.0 */
/* BiasGelu, FastGelu and QuickGelu. */
#include "harness.h"

#include <math.h>

START_TEST(gelus)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "BiasGelu", 1);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2, 2), OPS_VALUES(0.5, 1, -0.5, -40));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(0.5, -1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2, 2),
             OPS_VALUES(0.5 * (1 + erf(0.70710678118654752440)), 0, 0, -0.0));
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "BiasGelu", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [1], expected [2] (last axis of input 0)");
    ops_end(&c);

    for (int skipped = 0; skipped < 2; skipped++) {
        ops_begin(&c, "com.microsoft", "FastGelu", 1);
        ops_in(&c, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(30, -30));
        if (skipped)
            ops_skip(&c);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(2), OPS_VALUES(30, -0.0));
        ops_end(&c);
    }

    ops_begin(&c, "com.microsoft", "QuickGelu", 1);
    ops_float(&c, "alpha", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(3, -5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1.5, -2.5));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("gelu", NULL, NULL);
    add_test(&tests, gelus);
    return test_program_run(&tests);
}
