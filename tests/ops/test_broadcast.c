/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of operators element by element, of operands of different shapes. */
#include "harness.h"

/* Many short rows: of values that stay along them, of one row that comes again, and of both; pieces of work
 * begin in the midst of a row. */
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
    test_group tests = ops_group("broadcast");
    add_test(&tests, short_rows);
    return run_suite(tests.suite);
}
