/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout. */
#include "harness.h"

START_TEST(inference_copies_its_input)
{
    ops_case c;
    ops_begin(&c, "", "Dropout", 13);
    c.out_count = 2;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_want(&c, 1, DQ_BOOL, OPS_DIMS(2), OPS_VALUES(1, 1));
    ops_end(&c);

    ops_begin(&c, "", "Dropout", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_skip(&c);
    ops_in(&c, DQ_BOOL, OPS_SCALAR, OPS_VALUES(1));
    ops_must_refuse(&c, DQ_UNSUPPORTED, "is in training mode, expected inference");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("dropout", NULL, NULL);
    add_test(&tests, inference_copies_its_input);
    return test_program_run(&tests);
}
