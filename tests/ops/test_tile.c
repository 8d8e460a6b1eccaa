/* SPDX-License-Identifier: Apache-2.0 */
/* Tile and Expand. */
#include "harness.h"

#include <math.h>

#define LIST(...) OPS_DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), OPS_VALUES(__VA_ARGS__)

START_TEST(repeats)
{
    ops_case c;
    ops_begin(&c, "", "Expand", 13);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT64, LIST(2, 1, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(2, 2, 3), OPS_VALUES(1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0));
    ops_end(&c);

    ops_begin(&c, "", "Tile", 13);
    ops_in(&c, DQ_UINT16, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_INT64, LIST(2, 2));
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
    test_group tests = ops_group("tile");
    add_test(&tests, repeats);
    return run_suite(tests.suite);
}
