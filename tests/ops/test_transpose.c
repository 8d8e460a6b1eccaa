/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose. */
#include "harness.h"

START_TEST(transposes)
{
    ops_case c;
    ops_begin(&c, "", "Transpose", 25);
    ops_ints(&c, "perm", OPS_INTS(1, 2, 0));
    ops_in(&c, DQ_INT16, OPS_DIMS(2, 2, 3), OPS_VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(2, 3, 2), OPS_VALUES(0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11));
    ops_end(&c);

    ops_begin(&c, "", "Transpose", 25); /* an odd number of packed elements, axes in reverse */
    ops_in(&c, DQ_INT4, OPS_DIMS(3, 3), OPS_VALUES(-8, -7, -6, -5, -4, -3, 5, 6, 7));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(3, 3), OPS_VALUES(-8, -5, 5, -7, -4, 6, -6, -3, 7));
    ops_end(&c);

    ops_begin(&c, "", "Transpose", 13);
    ops_in_strings(&c, OPS_DIMS(2, 2), (const char *const[]){"a", "b", "c", "d"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(2, 2), (const char *const[]){"a", "c", "b", "d"});
    ops_end(&c);

    ops_begin(&c, "", "Transpose", 13);
    ops_ints(&c, "perm", OPS_INTS(0, 0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "axis 0 is named twice");
    ops_end(&c);
}
END_TEST

START_TEST(transposes_in_many_tasks)
{
    enum { A = 70, B = 3, C = 190 };
    static double x[A * B * C], want[A * B * C];
    for (size_t i = 0; i < A * B * C; i++)
        x[i] = (double)i;
    for (size_t a = 0; a < A; a++)
        for (size_t b = 0; b < B; b++)
            for (size_t k = 0; k < C; k++)
                want[(k * B + b) * A + a] = x[(a * B + b) * C + k];
    ops_case c;
    ops_begin(&c, "", "Transpose", 13);
    ops_in(&c, DQ_INT32, OPS_DIMS(A, B, C), x);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(C, B, A), want);
    ops_end(&c);
}
END_TEST

/* Columns of pairs take every second element, of each width. */
START_TEST(columns_of_pairs)
{
    enum { N = 37 };
    static const dq_dtype types[] = {DQ_UINT4, DQ_INT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        double x[2 * N], columns[2 * N];
        for (size_t i = 0; i < 2 * N; i++) {
            x[i] = (double)(i * i % 7);
            columns[i % 2 * N + i / 2] = x[i];
        }
        ops_case c;
        ops_begin(&c, "", "Transpose", 25);
        ops_in(&c, types[t], OPS_DIMS(N, 2), x);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, N), columns);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("transpose", NULL, NULL);
    add_test(&tests, transposes);
    add_test(&tests, transposes_in_many_tasks);
    add_test(&tests, columns_of_pairs);
    return test_program_run(&tests);
}
