/* SPDX-License-Identifier: Apache-2.0 */
/* Reshape and Flatten. */
#include "harness.h"

static const double SIX[] = {1, 2, 3, 4, 5, 6};

START_TEST(reshapes)
{
    ops_case c;
    ops_begin(&c, "", "Reshape", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, OPS_VECTOR(0, -1, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 3, 1), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Reshape", 14); /* zeros that are zeros */
    ops_int(&c, "allowzero", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_in(&c, DQ_INT64, OPS_VECTOR(3, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3, 0), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Reshape", 1);
    ops_ints(&c, "shape", OPS_INTS(3, 2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3, 2), SIX);
    ops_end(&c);

    ops_begin(&c, "", "Reshape", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), SIX);
    ops_in(&c, DQ_INT64, OPS_VECTOR(-1, 4));
    ops_must_refuse(&c, DQ_BAD_MODEL, "cannot reshape [2,3] to [?,4]");
    ops_end(&c);
}
END_TEST

START_TEST(flattens)
{
    static const int64_t axes[] = {0, 1, -1, 3}, want[4][2] = {{1, 6}, {2, 3}, {2, 3}, {6, 1}};
    for (size_t i = 0; i < 4; i++) {
        ops_case c;
        ops_begin(&c, "", "Flatten", 13);
        ops_int(&c, "axis", axes[i]);
        ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1, 3), SIX);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_UINT8, 2, want[i], SIX);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("reshape", NULL, NULL);
    add_test(&tests, reshapes);
    add_test(&tests, flattens);
    return test_program_run(&tests);
}
