/* SPDX-License-Identifier: Apache-2.0 */
/* Concat. */
#include "harness.h"

START_TEST(concatenates)
{
    ops_case c;
    ops_begin(&c, "", "Concat", 13);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 2), OPS_VALUES(3, 4, 5, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(1, 3, 4, 2, 5, 6));
    ops_end(&c);

    ops_begin(&c, "", "Concat", 4);
    ops_int(&c, "axis", 0);
    ops_in_strings(&c, OPS_DIMS(1), (const char *const[]){"one"});
    ops_in_strings(&c, OPS_DIMS(2), (const char *const[]){"", "three"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(3), (const char *const[]){"one", "", "three"});
    ops_end(&c);

    ops_begin(&c, "", "Concat", 13);
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 4), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [2,4], expected [2,3] but for axis 0");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("concat", NULL, NULL);
    add_test(&tests, concatenates);
    return test_program_run(&tests);
}
