/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

START_TEST(copies_every_kind)
{
    ops_case c;
    ops_begin(&c, "", "Identity", 25);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1.5, -0.0, 3, -4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1.5, -0.0, 3, -4));
    ops_end(&c);

    ops_begin(&c, "", "Identity", 25);
    ops_in(&c, DQ_INT4, OPS_DIMS(3), OPS_VALUES(-8, 7, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3), OPS_VALUES(-8, 7, 1));
    ops_end(&c);

    ops_begin(&c, "", "Identity", 25);
    ops_in_strings(&c, OPS_SCALAR, (const char *const[]){"a string"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_SCALAR, (const char *const[]){"a string"});
    ops_end(&c);
}
END_TEST

START_TEST(empty)
{
    ops_case c;
    ops_begin(&c, "", "Identity", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("identity", NULL, NULL);
    add_test(&tests, copies_every_kind);
    add_test(&tests, empty);
    return test_program_run(&tests);
}
