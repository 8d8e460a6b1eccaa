/* SPDX-License-Identifier: Apache-2.0 */
/* Slice with starts, ends, axes and steps. */
#include "harness.h"

#include <math.h>

#define LIST(...) OPS_DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), OPS_VALUES(__VA_ARGS__)

#define INTS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})

/* Every second element, from both columns of pairs, and one element for a row, of each width. */
START_TEST(second_elements)
{
    enum { N = 37 };
    static const dq_dtype types[] = {DQ_UINT4, DQ_INT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        double x[2 * N], columns[2 * N], rows[2 * N];
        for (size_t i = 0; i < 2 * N; i++) {
            x[i] = (double)(i * i % 7);
            columns[i % 2 * N + i / 2] = x[i];
        }
        for (size_t i = 0; i < 2 * N; i++)
            rows[i] = x[i / N];
        ops_case c;
        ops_begin(&c, "", "Transpose", 25);
        ops_in(&c, types[t], OPS_DIMS(N, 2), x);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, N), columns);
        ops_end(&c);
        ops_begin(&c, "", "Expand", 13);
        ops_in(&c, types[t], OPS_DIMS(2, 1), x);
        ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(2, N));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, N), rows);
        ops_end(&c);
    }
}
END_TEST

/* starts, ends, axes and steps of one axis */
static void bounds(ops_case *c, double start, double end, double axis, double step)
{
    ops_in(c, DQ_INT64, LIST(start));
    ops_in(c, DQ_INT64, LIST(end));
    ops_in(c, DQ_INT64, LIST(axis));
    ops_in(c, DQ_INT64, LIST(step));
}

START_TEST(slices)
{
    ops_case c;
    ops_begin(&c, "", "Slice", 13); /* backwards, and past the ends */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 4), OPS_VALUES(0, 1, 2, 3, 4, 5, 6, 7));
    ops_in(&c, DQ_INT64, LIST(100, -100));
    ops_in(&c, DQ_INT64, LIST(-100, 100));
    ops_in(&c, DQ_INT64, LIST(-1, 0));
    ops_in(&c, DQ_INT64, LIST(-2, 1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(3, 1, 7, 5));
    ops_end(&c);

    ops_begin(&c, "", "Slice", 13); /* back from before the first; there is none to begin at */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    bounds(&c, -30, -30, 0, -1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(1));
    ops_end(&c);
    ops_begin(&c, "", "Slice", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(0), NULL);
    bounds(&c, -30, -30, 0, -1);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Slice", 13); /* the extreme numbers */
    ops_in(&c, DQ_INT8, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, LIST(2));
    ops_in(&c, DQ_INT64, LIST(-9223372036854775808.0));
    ops_skip(&c);
    ops_in(&c, DQ_INT64, LIST(-9223372036854775808.0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1), OPS_VALUES(3));
    ops_end(&c);

    ops_begin(&c, "", "Slice", 1);
    ops_ints(&c, "starts", INTS(1));
    ops_ints(&c, "ends", INTS(-1));
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(4), OPS_VALUES(1, 2, 3, 4));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_DOUBLE, OPS_DIMS(2), OPS_VALUES(2, 3));
    ops_end(&c);

    ops_begin(&c, "", "Slice", 10); /* nothing left */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_in(&c, DQ_INT32, LIST(1));
    ops_in(&c, DQ_INT32, LIST(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(0, 2), NULL);
    ops_end(&c);

    ops_begin(&c, "", "Slice", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    bounds(&c, 0, 1, 0, 0);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has a step of 0 along axis 0");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("slice");
    add_test(&tests, second_elements);
    add_test(&tests, slices);
    return run_suite(tests.suite);
}
