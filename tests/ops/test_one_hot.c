/* SPDX-License-Identifier: Apache-2.0 */
/* OneHot. */
#include "harness.h"

#include <math.h>

START_TEST(indices_of_every_kind)
{
    for (int version = 9; version <= 11; version += 2) {
        ops_case c;
        ops_begin(&c, "", "OneHot", version);
        ops_int(&c, "axis", 0);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(1.9, -1, 3, (double)NAN));
        ops_in(&c, DQ_INT8, OPS_SCALAR, OPS_VALUES(2));
        ops_in(&c, DQ_UINT8, OPS_DIMS(2), OPS_VALUES(5, 6));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 4),
                 version == 9 ? OPS_VALUES(5, 5, 5, 5, 6, 5, 5, 5) : OPS_VALUES(5, 5, 5, 5, 6, 6, 5, 5));
        ops_end(&c);
    }
    ops_case c;
    ops_begin(&c, "", "OneHot", 11);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), NULL);
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(-1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 is -1, expected 1 or more");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("one_hot", NULL, NULL);
    add_test(&tests, indices_of_every_kind);
    return test_program_run(&tests);
}
