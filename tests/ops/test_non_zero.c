/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero. */
#include "harness.h"

#include <math.h>

START_TEST(indices_of_non_zero_elements)
{
    ops_case c;
    ops_begin(&c, "", "NonZero", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(-0.0, 1, (double)NAN, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 2), OPS_VALUES(0, 1, 1, 0));
    ops_end(&c);
    ops_begin(&c, "", "NonZero", 13);
    ops_in(&c, DQ_BOOL, OPS_SCALAR, OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(0, 1), NULL);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("non_zero", NULL, NULL);
    add_test(&tests, indices_of_non_zero_elements);
    return test_program_run(&tests);
}
