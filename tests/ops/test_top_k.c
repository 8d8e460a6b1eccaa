/* SPDX-License-Identifier: Apache-2.0 */
/* TopK. */
#include "harness.h"

#include <math.h>

static void top(int64_t largest, dq_dtype dtype, const double *x, const double *want, const double *where)
{
    ops_case c;
    ops_begin(&c, "", "TopK", 24);
    c.out_count = 2;
    ops_int(&c, "axis", 0);
    ops_int(&c, "largest", largest);
    ops_in(&c, dtype, OPS_DIMS(6, 1), x);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(4));
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(4, 1), want);
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(4, 1), where);
    ops_end(&c);
}

START_TEST(top_elements)
{
    top(1, DQ_FLOAT, OPS_VALUES(2, 7, 1, 7, 9, 2), OPS_VALUES(9, 7, 7, 2), OPS_VALUES(4, 1, 3, 0));
    top(0, DQ_INT8, OPS_VALUES(2, -7, 1, 7, -7, 2), OPS_VALUES(-7, -7, 1, 2), OPS_VALUES(1, 4, 2, 0));
    top(1, DQ_FLOAT16, OPS_VALUES(2, (double)NAN, 1, (double)NAN, 9, 2),
        OPS_VALUES((double)NAN, (double)NAN, 9, 2), OPS_VALUES(1, 3, 4, 0));
    top(1, DQ_FLOAT, OPS_VALUES(-1, -0.0, 0, -(double)INFINITY, -0.0, -2), OPS_VALUES(-0.0, 0, -0.0, -1),
        OPS_VALUES(1, 2, 4, 0));
    top(0, DQ_FLOAT, OPS_VALUES((double)NAN, -1, (double)INFINITY, -(double)NAN, -3, 5),
        OPS_VALUES(-3, -1, 5, (double)INFINITY), OPS_VALUES(4, 1, 5, 2));
    top(1, DQ_DOUBLE, OPS_VALUES(1, 1 + 1e-15, 1e300, 2e300, -1e300, 1),
        OPS_VALUES(2e300, 1e300, 1 + 1e-15, 1), OPS_VALUES(3, 2, 1, 0));
    top(1, DQ_UINT64, OPS_VALUES(1, 0x1p63, 3, 0x1.8p63, 0x1p62, 2), OPS_VALUES(0x1.8p63, 0x1p63, 0x1p62, 3),
        OPS_VALUES(3, 1, 4, 2));
    top(0, DQ_INT64, OPS_VALUES(1, -0x1p62, 3, -0x1p63, 7, 0), OPS_VALUES(-0x1p63, -0x1p62, 0, 1),
        OPS_VALUES(3, 1, 5, 0));
    ops_case c;
    ops_begin(&c, "", "TopK", 11);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(3));
    ops_must_refuse(&c, DQ_BAD_MODEL, "wants 3 elements of an axis of 2");
    ops_end(&c);

    ops_begin(&c, "", "TopK", 11);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(1, 1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has 2 elements, expected 1");
    ops_end(&c);
}
END_TEST

/* Long columns with equal elements, against the definition: the rank of an element is the number of elements
 * before it. */
START_TEST(top_of_columns)
{
    enum { N = 600, COLUMNS = 3 };
    static const int64_t counts[] = {1, 17, 256, 300, N};
    static const dq_dtype types[] = {DQ_INT32, DQ_FLOAT, DQ_INT8, DQ_INT64, DQ_DOUBLE, DQ_FLOAT16};
    static double x[N * COLUMNS], want[N * COLUMNS], where[N * COLUMNS];
    for (size_t t = 0; t < 10; t++) {
        int64_t k = counts[t / 2], largest = t % 2;
        const dq_dtype dtype = types[t % 6];
        for (size_t i = 0; i < N * COLUMNS; i++)
            x[i] = (double)(i * i * 31 % 97) - 40;
        for (size_t i = 0; i < N * COLUMNS; i++) {
            size_t before = 0;
            for (size_t j = i % COLUMNS; j < N * COLUMNS; j += COLUMNS)
                before += x[j] == x[i] ? j < i : (x[j] > x[i]) == (largest == 1);
            if (before >= (size_t)k)
                continue;
            want[before * COLUMNS + i % COLUMNS] = x[i];
            where[before * COLUMNS + i % COLUMNS] = (double)(i / COLUMNS);
        }
        ops_case c;
        ops_begin(&c, "", "TopK", 24);
        c.out_count = 2;
        ops_int(&c, "axis", 0);
        ops_int(&c, "largest", largest);
        ops_in(&c, dtype, OPS_DIMS(N, COLUMNS), x);
        ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES((double)k));
        ops_must_run(&c);
        ops_want(&c, 0, dtype, OPS_DIMS(k, COLUMNS), want);
        ops_want(&c, 1, DQ_INT64, OPS_DIMS(k, COLUMNS), where);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("top_k", NULL, NULL);
    add_test(&tests, top_elements);
    add_test(&tests, top_of_columns);
    return test_program_run(&tests);
}
