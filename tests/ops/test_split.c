/* SPDX-License-Identifier: Apache-2.0 */
/* Split. */
#include "harness.h"

START_TEST(splits)
{
    ops_case c;
    ops_begin(&c, "", "Split", 13);
    c.out_count = 3;
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 4), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    ops_in(&c, DQ_INT64, OPS_VECTOR(1, 0, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 1), OPS_VALUES(1, 5));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(2, 0), NULL);
    ops_want(&c, 2, DQ_INT64, OPS_DIMS(2, 3), OPS_VALUES(2, 3, 4, 6, 7, 8));
    ops_end(&c);

    ops_begin(&c, "", "Split", 18); /* the last part is smaller */
    c.out_count = 3;
    ops_int(&c, "num_outputs", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(7), OPS_VALUES(1, 2, 3, 4, 5, 6, 7));
    ops_must_run(&c);
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(4, 5, 6));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(7));
    ops_end(&c);

    ops_begin(&c, "", "Split", 18);
    c.out_count = 2;
    ops_int(&c, "num_outputs", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(6), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'num_outputs' is 3, expected 2");
    ops_end(&c);

    ops_begin(&c, "", "Split", 2);
    c.out_count = 2;
    ops_ints(&c, "split", OPS_INTS(1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has lengths that sum to 2, expected the 3 of axis 0");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("split", NULL, NULL);
    add_test(&tests, splits);
    return test_program_run(&tests);
}
