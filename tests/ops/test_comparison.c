/* SPDX-License-Identifier: Apache-2.0 */
/* Less, Greater, LessOrEqual, GreaterOrEqual and Equal. */
#include "harness.h"

#include <math.h>

START_TEST(comparisons)
{
    ops_check_binary("Less", 13, DQ_FLOAT, 4, OPS_VALUES(1, 2, (double)NAN, -0.0), OPS_VALUES(2, 1, 1, 0),
                     DQ_BOOL, OPS_VALUES(1, 0, 0, 0));
    ops_check_binary("Greater", 13, DQ_INT8, 3, OPS_VALUES(-1, 5, 5), OPS_VALUES(1, 5, 4), DQ_BOOL,
                     OPS_VALUES(0, 0, 1));
    ops_check_binary("GreaterOrEqual", 16, DQ_UINT8, 3, OPS_VALUES(255, 5, 4), OPS_VALUES(1, 5, 5), DQ_BOOL,
                     OPS_VALUES(1, 1, 0));
    ops_check_binary("LessOrEqual", 16, DQ_BFLOAT16, 3, OPS_VALUES(1, (double)NAN, 3), OPS_VALUES(1, 1, 2),
                     DQ_BOOL, OPS_VALUES(1, 0, 0));
    ops_check_binary("Equal", 19, DQ_FLOAT16, 3, OPS_VALUES(-0.0, (double)NAN, 3),
                     OPS_VALUES(0, (double)NAN, 3), DQ_BOOL, OPS_VALUES(1, 0, 1));
    ops_case c;
    ops_begin(&c, "", "Greater", 13); /* swapped operands broadcast as given */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(1, 5));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(0, 3, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(2, 3), OPS_VALUES(1, 0, 0, 1, 1, 0));
    ops_end(&c);

    ops_begin(&c, "", "Equal", 19);
    ops_in_strings(&c, OPS_DIMS(3), (const char *const[]){"a", "", "abc"});
    ops_in_strings(&c, OPS_DIMS(3), (const char *const[]){"a", "", "abd"});
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(3), OPS_VALUES(1, 1, 0));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("comparison", NULL, NULL);
    add_test(&tests, comparisons);
    return test_program_run(&tests);
}
