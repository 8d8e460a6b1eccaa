/* SPDX-License-Identifier: Apache-2.0 */
/* Expand. */
#include "harness.h"

START_TEST(expands)
{
    ops_case c;
    ops_begin(&c, "", "Expand", 13);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT64, OPS_VECTOR(2, 1, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(2, 2, 3), OPS_VALUES(1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0));
    ops_end(&c);
}
END_TEST

/* Each row repeats one element, of each width. */
START_TEST(one_element_of_each_row)
{
    enum { N = 37 };
    static const dq_dtype types[] = {DQ_UINT4, DQ_INT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        double rows[2 * N];
        for (size_t i = 0; i < 2 * N; i++)
            rows[i] = (double)(i / N);
        ops_case c;
        ops_begin(&c, "", "Expand", 13);
        ops_in(&c, types[t], OPS_DIMS(2, 1), OPS_VALUES(0, 1));
        ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(2, N));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, N), rows);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("expand", NULL, NULL);
    add_test(&tests, expands);
    add_test(&tests, one_element_of_each_row);
    return test_program_run(&tests);
}
