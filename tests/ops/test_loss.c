/* SPDX-License-Identifier: Apache-2.0 */
/* NegativeLogLikelihoodLoss. */
#include "harness.h"

START_TEST(classes_outside_are_refused)
{
    ops_case c;
    ops_begin(&c, "", "NegativeLogLikelihoodLoss", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(-1));
    ops_must_refuse(&c, DQ_BAD_INPUT, "input 1 holds class -1, expected 0 to 2");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("loss", NULL, NULL);
    add_test(&tests, classes_outside_are_refused);
    return test_program_run(&tests);
}
