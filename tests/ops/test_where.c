/* SPDX-License-Identifier: Apache-2.0 */
/* Where. */
#include "harness.h"

START_TEST(where_of_any_width)
{
    ops_case c;
    ops_begin(&c, "", "Where", 16);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT64, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(9));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 9, 9, 9));
    ops_end(&c);

    ops_begin(&c, "", "Where", 9);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2), OPS_VALUES(1, 0));
    ops_in_strings(&c, OPS_DIMS(2), (const char *const[]){"a", "b"});
    ops_in_strings(&c, OPS_DIMS(1), (const char *const[]){"other"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(2), (const char *const[]){"a", "other"});
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("where", NULL, NULL);
    add_test(&tests, where_of_any_width);
    return test_program_run(&tests);
}
