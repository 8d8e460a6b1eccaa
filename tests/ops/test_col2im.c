/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im. */
#include "harness.h"

START_TEST(blocks_that_do_not_fit_are_refused)
{
    ops_case c;
    ops_begin(&c, "", "Col2Im", 18);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 4, 1), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(4));
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "has blocks of 4 for an image of 3 along spatial axis 0, which do not fit");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("col2im", NULL, NULL);
    add_test(&tests, blocks_that_do_not_fit_are_refused);
    return test_program_run(&tests);
}
