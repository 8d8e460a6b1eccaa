/* SPDX-License-Identifier: Apache-2.0 */
/* Concat and Split. */
#include "harness.h"

#include <math.h>

#define LIST(...) OPS_DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), OPS_VALUES(__VA_ARGS__)

#define INTS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})

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

START_TEST(splits)
{
    ops_case c;
    ops_begin(&c, "", "Split", 13);
    c.out_count = 3;
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 4), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    ops_in(&c, DQ_INT64, LIST(1, 0, 3));
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
    ops_ints(&c, "split", INTS(1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has lengths that sum to 2, expected the 3 of axis 0");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("concat_split");
    add_test(&tests, concatenates);
    add_test(&tests, splits);
    return run_suite(tests.suite);
}
