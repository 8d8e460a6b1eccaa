/* SPDX-License-Identifier: Apache-2.0 */
/* Squeeze and Unsqueeze. */
#include "harness.h"

static const double SIX[] = {1, 2, 3, 4, 5, 6};

START_TEST(squeezes)
{
    ops_case c;
    ops_begin(&c, "", "Squeeze", 13);
    ops_in(&c, DQ_INT4, OPS_DIMS(1, 3, 1, 2), SIX);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3, 2), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Squeeze", 11);
    ops_ints(&c, "axes", OPS_INTS(-2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3, 1, 2), SIX);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 3, 2), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Squeeze", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, OPS_VECTOR(1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has dimension 3 at axis 1, expected 1");
    ops_end(&c);
}
END_TEST

START_TEST(unsqueezes)
{
    ops_case c;
    ops_begin(&c, "", "Unsqueeze", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, OPS_VECTOR(-1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2, 3, 1), SIX);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("squeeze", NULL, NULL);
    add_test(&tests, squeezes);
    add_test(&tests, unsqueezes);
    return test_program_run(&tests);
}
