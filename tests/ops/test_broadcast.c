/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting of the elementwise operators. */
#include "harness.h"

START_TEST(broadcasts_both_ways)
{
    ops_case c;
    ops_begin(&c, "", "Add", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(10, 20));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2, 3), OPS_VALUES(11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26));
    ops_end(&c);

    ops_begin(&c, "", "Add", 14); /* the second operand has the higher rank */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1, 2, 1), OPS_VALUES(10, 20, 30, 40));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2, 3),
             OPS_VALUES(11, 12, 13, 24, 25, 26, 31, 32, 33, 44, 45, 46));
    ops_end(&c);

    ops_begin(&c, "", "Sub", 14);
    ops_in(&c, DQ_INT32, OPS_SCALAR, OPS_VALUES(100));
    ops_in(&c, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(2, 2), OPS_VALUES(99, 98, 97, 96));
    ops_end(&c);
}
END_TEST

START_TEST(broadcasts_to_nothing)
{
    ops_case c;
    ops_begin(&c, "", "Mul", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0, 1), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0, 3), NULL);
    ops_end(&c);
}
END_TEST

START_TEST(refuses_shapes_that_do_not_match)
{
    ops_case c;
    ops_begin(&c, "", "Add", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [2], which does not broadcast with [2,3]");
    ops_end(&c);

    ops_begin(&c, "", "Add", 14);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [2,0], which does not broadcast with [2,3]");
    ops_end(&c);
}
END_TEST

START_TEST(axes_before_opset_7)
{
    ops_case c;
    ops_begin(&c, "", "Add", 6);
    ops_int(&c, "broadcast", 1);
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(10, 20));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(11, 12, 23, 24));
    ops_end(&c);

    ops_begin(&c, "", "Add", 6);
    ops_int(&c, "broadcast", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has another shape than input 0, and broadcast is 0");
    ops_end(&c);
}
END_TEST

/* One value a row, broadcast along rows longer than one block; types with and without a loop of their own. */
START_TEST(long_rows_with_one_value_each)
{
    enum { ROWS = 2, N = 5000 };
    static const dq_dtype dtypes[] = {DQ_UINT16, DQ_INT16,  DQ_UINT32, DQ_UINT64,
                                      DQ_INT32,  DQ_DOUBLE, DQ_FLOAT16};
    static double x[ROWS * N], sides[2][ROWS * N];
    const double stays[ROWS] = {7, 90};
    for (size_t i = 0; i < ROWS * N; i++) {
        x[i] = (double)(i * 37 % 101);
        for (int side = 0; side < 2; side++) {
            double a = side ? stays[i / N] : x[i], b = side ? x[i] : stays[i / N];
            sides[side][i] = a < b;
        }
    }
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (int side = 0; side < 2; side++) {
            ops_case c;
            ops_begin(&c, "", "Less", 13);
            if (side)
                ops_in(&c, dtypes[t], OPS_DIMS(ROWS, 1), stays);
            ops_in(&c, dtypes[t], OPS_DIMS(ROWS, N), x);
            if (!side)
                ops_in(&c, dtypes[t], OPS_DIMS(ROWS, 1), stays);
            ops_must_run(&c);
            ops_want(&c, 0, DQ_BOOL, OPS_DIMS(ROWS, N), sides[side]);
            ops_end(&c);
        }
}
END_TEST

START_TEST(long_operands_in_many_tasks)
{
    enum { ROWS = 300, COLS = 257 };
    static double a[ROWS * COLS], b[ROWS], want[ROWS * COLS];
    for (int i = 0; i < ROWS * COLS; i++)
        a[i] = i % 1009;
    for (int i = 0; i < ROWS; i++)
        b[i] = 3 * i;
    for (int i = 0; i < ROWS * COLS; i++)
        want[i] = a[i] + b[i / COLS];
    static const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_INT16, DQ_DOUBLE};
    for (size_t t = 0; t < 4; t++) {
        ops_case c;
        ops_begin(&c, "", "Add", 14);
        ops_in(&c, types[t], OPS_DIMS(ROWS, COLS), a);
        ops_in(&c, types[t], OPS_DIMS(ROWS, 1), b);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(ROWS, COLS), want);
        ops_end(&c);
    }
}
END_TEST

/* Many short rows: one value a row, one row for all, and both; tasks begin in the middle of a row. */
START_TEST(short_rows)
{
    enum { ROWS = 13001, MAX_ROW = 5 };
    const dq_dtype types[] = {DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE, DQ_INT64, DQ_INT32, DQ_UINT8};
    static double column[ROWS], whole[ROWS * MAX_ROW], sums[ROWS * MAX_ROW], outer[ROWS * MAX_ROW];
    const double row[MAX_ROW] = {1, 2, 3, 4, 5};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int n = 2; n <= MAX_ROW; n++) {
            for (int i = 0; i < ROWS; i++) {
                column[i] = i % 99;
                for (int k = 0; k < n; k++) {
                    whole[i * n + k] = (i + k) % 101;
                    sums[i * n + k] = column[i] + whole[i * n + k];
                    outer[i * n + k] = column[i] + row[k];
                }
            }
            ops_case c;
            ops_begin(&c, "", "Add", 14);
            ops_in(&c, types[t], OPS_DIMS(ROWS, n), whole);
            ops_in(&c, types[t], OPS_DIMS(ROWS, 1), column);
            ops_must_run(&c);
            ops_want(&c, 0, types[t], OPS_DIMS(ROWS, n), sums);
            ops_end(&c);

            ops_begin(&c, "", "Add", 14);
            ops_in(&c, types[t], OPS_DIMS(ROWS, 1), column);
            ops_in(&c, types[t], OPS_DIMS(n), row);
            ops_must_run(&c);
            ops_want(&c, 0, types[t], OPS_DIMS(ROWS, n), outer);
            ops_end(&c);
        }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("broadcast", NULL, NULL);
    add_test(&tests, broadcasts_both_ways);
    add_test(&tests, broadcasts_to_nothing);
    add_test(&tests, refuses_shapes_that_do_not_match);
    add_test(&tests, axes_before_opset_7);
    add_test(&tests, long_rows_with_one_value_each);
    add_test(&tests, long_operands_in_many_tasks);
    add_test(&tests, short_rows);
    return test_program_run(&tests);
}
