/* SPDX-License-Identifier: Apache-2.0 */
/* CumSum and CumProd. */
#include "harness.h"

START_TEST(cumulative_sums)
{
    static const double want[4][4] = {{1, 3, 6, 10}, {0, 1, 3, 6}, {10, 9, 7, 4}, {9, 7, 4, 0}};
    for (int i = 0; i < 4; i++) {
        ops_case c;
        ops_begin(&c, "", "CumSum", 14);
        ops_int(&c, "exclusive", i & 1);
        ops_int(&c, "reverse", i >> 1);
        ops_in(&c, i == 0 ? DQ_FLOAT16 : DQ_INT32, OPS_DIMS(4, 1), OPS_VALUES(1, 2, 3, 4));
        ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES(-2));
        ops_must_run(&c);
        ops_want(&c, 0, i == 0 ? DQ_FLOAT16 : DQ_INT32, OPS_DIMS(4, 1), want[i]);
        ops_end(&c);
    }
}
END_TEST

START_TEST(cumulative_products)
{
    ops_case c;
    ops_begin(&c, "", "CumProd", 26);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(3), OPS_VALUES(2, 3, 4));
    ops_in(&c, DQ_INT32, OPS_SCALAR, OPS_VALUES(0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(3), OPS_VALUES(2, 6, 24));
    ops_end(&c);

    for (int exclusive = 0; exclusive < 2; exclusive++)
        for (int axis = 0; axis < 2; axis++) {
            ops_begin(&c, "", "CumProd", 26);
            ops_int(&c, "exclusive", exclusive);
            ops_int(&c, "reverse", axis);
            ops_in(&c, DQ_UINT32, OPS_DIMS(2, 2), OPS_VALUES(2, 3, 65536, 65537));
            ops_in(&c, DQ_INT32, OPS_SCALAR, OPS_VALUES(axis));
            ops_must_run(&c);
            ops_want(&c, 0, DQ_UINT32, OPS_DIMS(2, 2),
                     axis        ? exclusive ? OPS_VALUES(3, 1, 65537, 1) : OPS_VALUES(6, 3, 65536, 65537)
                            : exclusive ? OPS_VALUES(1, 1, 2, 3)
                                 : OPS_VALUES(2, 3, 131072, 196611));
            ops_end(&c);
        }
}
END_TEST

/* Lines longer than one block, and more of them: along axis 0 and 1 of N x M. */
START_TEST(long_and_many_lines)
{
    enum { N = 6, M = 600 };
    static const dq_dtype types[] = {DQ_FLOAT, DQ_DOUBLE, DQ_INT32, DQ_INT64};
    for (size_t t = 0; t < 4 * 2 * 4; t++) {
        size_t exclusive = t & 1, reverse = t >> 1 & 1, axis = t >> 2 & 1, length = axis ? M : N;
        double x[N * M], want[N * M];
        for (size_t i = 0; i < N * M; i++)
            x[i] = (double)(i * 29 % 31) - 9;
        for (size_t line = 0; line < N * M / length; line++) {
            double total = 0;
            for (size_t i = 0; i < length; i++) {
                size_t along = reverse ? length - 1 - i : i, at = axis ? line * M + along : along * M + line;
                want[at] = exclusive ? total : total + x[at];
                total += x[at];
            }
        }
        ops_case c;
        ops_begin(&c, "", "CumSum", 14);
        ops_int(&c, "exclusive", (int64_t)exclusive);
        ops_int(&c, "reverse", (int64_t)reverse);
        ops_in(&c, types[t >> 3], OPS_DIMS(N, M), x);
        ops_in(&c, DQ_INT64, OPS_SCALAR, OPS_VALUES((double)axis));
        ops_must_run(&c);
        ops_want(&c, 0, types[t >> 3], OPS_DIMS(N, M), want);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("cum_sum", NULL, NULL);
    add_test(&tests, cumulative_sums);
    add_test(&tests, cumulative_products);
    add_test(&tests, long_and_many_lines);
    return test_program_run(&tests);
}
