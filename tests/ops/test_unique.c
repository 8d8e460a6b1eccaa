/* SPDX-License-Identifier: Apache-2.0 */
/* Unique. */
#include "harness.h"

#include <math.h>

START_TEST(different_elements)
{
    ops_case c; /* NaNs are one, and last; -0 is 0 */
    ops_begin(&c, "", "Unique", 11);
    c.out_count = 4;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(5), OPS_VALUES((double)NAN, 0, -1, -0.0, (double)NAN));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(-1, 0, (double)NAN));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(3), OPS_VALUES(2, 1, 0));
    ops_want(&c, 2, DQ_INT64, OPS_DIMS(5), OPS_VALUES(2, 1, 0, 1, 2));
    ops_want(&c, 3, DQ_INT64, OPS_DIMS(3), OPS_VALUES(1, 2, 2));
    ops_end(&c);
    ops_begin(&c, "", "Unique", 11);
    ops_in(&c, DQ_INT32, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(0), NULL);
    ops_end(&c);
}
END_TEST

START_TEST(different_slices)
{
    ops_case c;
    ops_begin(&c, "", "Unique", 11);
    c.out_count = 3;
    ops_int(&c, "sorted", 0);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 4), OPS_VALUES(9, 1, 9, 1, 0, 2, 0, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(9, 1, 1, 0, 2, 3));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(3), OPS_VALUES(0, 1, 3));
    ops_want(&c, 2, DQ_INT64, OPS_DIMS(4), OPS_VALUES(0, 1, 0, 2));
    ops_end(&c);

    ops_begin(&c, "", "Unique", 11);
    ops_in_strings(&c, OPS_DIMS(4), (const char *const[]){"b", "", "ab", "b"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(3), (const char *const[]){"", "ab", "b"});
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("unique", NULL, NULL);
    add_test(&tests, different_elements);
    add_test(&tests, different_slices);
    return test_program_run(&tests);
}
