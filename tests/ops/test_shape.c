/* SPDX-License-Identifier: Apache-2.0 */
/* Shape and Size. */
#include "harness.h"

START_TEST(shapes_and_sizes)
{
    ops_case c;
    ops_begin(&c, "", "Shape", 15);
    ops_int(&c, "start", -2);
    ops_int(&c, "end", 99);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4, 0, 3), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2), OPS_VALUES(0, 3));
    ops_end(&c);

    ops_begin(&c, "", "Shape", 1);
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(0), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Size", 13);
    ops_in(&c, DQ_INT2, OPS_DIMS(2, 3), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_SCALAR, OPS_VALUES(6));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("shape", NULL, NULL);
    add_test(&tests, shapes_and_sizes);
    return test_program_run(&tests);
}
