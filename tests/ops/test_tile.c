/* SPDX-License-Identifier: Apache-2.0 */
/* Tile. */
#include "harness.h"

START_TEST(tiles)
{
    ops_case c;
    ops_begin(&c, "", "Tile", 13);
    ops_in(&c, DQ_UINT16, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_INT64, OPS_VECTOR(2, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(4, 4), OPS_VALUES(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
    ops_end(&c);

    ops_begin(&c, "", "Tile", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 1, 1, 2, 2, 2));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("tile", NULL, NULL);
    add_test(&tests, tiles);
    return test_program_run(&tests);
}
