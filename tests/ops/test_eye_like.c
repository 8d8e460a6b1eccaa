/* SPDX-License-Identifier: Apache-2.0 */
/* EyeLike. */
#include "harness.h"

START_TEST(diagonals)
{
    ops_case c;
    ops_begin(&c, "", "EyeLike", 22);
    ops_int(&c, "dtype", DQ_INT64);
    ops_int(&c, "k", -1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3, 2), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(3, 2), OPS_VALUES(0, 0, 1, 0, 0, 1));
    ops_end(&c);
    ops_begin(&c, "", "EyeLike", 22);
    ops_int(&c, "k", INT64_MIN);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 2), OPS_VALUES(0, 0));
    ops_end(&c);
}
END_TEST

/* EyeLike writes ones of the type of its input. */
START_TEST(diagonals_of_other_types)
{
    static const dq_dtype types[] = {DQ_BOOL, DQ_UINT64, DQ_FLOAT16, DQ_BFLOAT16, DQ_DOUBLE};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        ops_case c;
        ops_begin(&c, "", "EyeLike", 22);
        ops_int(&c, "k", 1);
        ops_in(&c, types[t], OPS_DIMS(2, 3), NULL);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, 3), OPS_VALUES(0, 1, 0, 0, 0, 1));
        ops_end(&c);
    }
}
END_TEST

START_TEST(refusals)
{
    ops_case c;
    ops_begin(&c, "", "EyeLike", 22);
    ops_int(&c, "dtype", 99);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'dtype' is 99, which is no type");
    ops_end(&c);
    ops_begin(&c, "", "EyeLike", 22);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has rank 1, expected 2");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("eye_like", NULL, NULL);
    add_test(&tests, diagonals);
    add_test(&tests, diagonals_of_other_types);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
