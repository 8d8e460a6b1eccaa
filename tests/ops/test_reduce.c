/* Reductions, and which axes they take. */
#include "harness.h"

#include <math.h>

#define INTS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})

/* All of x, as a list of n, to one element. */
static void all(const char *name, int version, dq_dtype dtype, int64_t n, const double *x, double want)
{
    ops_case c;
    ops_begin(&c, "", name, version);
    ops_int(&c, "keepdims", 0);
    ops_in(&c, dtype, OPS_DIMS(n), x);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_SCALAR, &want);
    ops_end(&c);
}

START_TEST(kinds)
{
    const double *x = OPS_VALUES(1, -2, 3, -4);
    all("ReduceMin", 20, DQ_FLOAT, 4, x, -4);
    all("ReduceMax", 20, DQ_FLOAT16, 4, x, 3);
    all("ReduceSum", 13, DQ_BFLOAT16, 4, x, -2);
    all("ReduceMean", 18, DQ_DOUBLE, 4, x, -0.5);
    all("ReduceProd", 18, DQ_INT32, 4, x, 24);
    all("ReduceL1", 18, DQ_INT64, 4, x, 10);
    all("ReduceL2", 18, DQ_FLOAT, 2, OPS_VALUES(3, -4), 5);
    all("ReduceL2", 18, DQ_INT32, 2, OPS_VALUES(3, -4), 5);
    all("ReduceSumSquare", 18, DQ_FLOAT, 4, x, 30);
    all("ReduceLogSum", 18, DQ_DOUBLE, 2, OPS_VALUES(0.25, 0.75), 0);
    all("ReduceLogSumExp", 18, DQ_FLOAT, 1, OPS_VALUES(1000), 1000);
    all("ReduceLogSumExp", 18, DQ_FLOAT, 2, OPS_VALUES(-INFINITY, -INFINITY), -INFINITY);
    all("ReduceMean", 18, DQ_INT32, 2, OPS_VALUES(-3, -4), -3);
    all("ReduceSum", 13, DQ_UINT32, 2, OPS_VALUES(4294967295.0, 2), 1);
}
END_TEST

START_TEST(extremes)
{
    all("ReduceMax", 20, DQ_FLOAT, 3, OPS_VALUES(1, NAN, 3), NAN);
    all("ReduceMin", 20, DQ_FLOAT, 3, OPS_VALUES(NAN, 1, 3), NAN);
    all("ReduceMax", 20, DQ_INT8, 3, OPS_VALUES(-128, -1, -5), -1);
    all("ReduceMin", 20, DQ_UINT64, 2, OPS_VALUES(9223372036854775808.0, 18446744073709549568.0),
        9223372036854775808.0);
    all("ReduceMax", 20, DQ_BOOL, 2, OPS_VALUES(0, 1), 1);
    all("ReduceMax", 20, DQ_FLOAT, 0, NULL, -INFINITY);
    all("ReduceMin", 20, DQ_INT32, 0, NULL, 2147483647);
    all("ReduceMin", 20, DQ_BOOL, 0, NULL, 1);
    all("ReduceProd", 18, DQ_FLOAT, 0, NULL, 1);
    all("ReduceMean", 18, DQ_FLOAT, 0, NULL, NAN);
}
END_TEST

START_TEST(axes_by_attribute_and_input)
{
    const double *x = OPS_VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    ops_case c;
    ops_begin(&c, "", "ReduceSum", 11);
    ops_ints(&c, "axes", INTS(-3, 2));
    ops_int(&c, "keepdims", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3, 2), x);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 3, 1), OPS_VALUES(14, 22, 30));
    ops_end(&c);

    ops_begin(&c, "", "ReduceSum", 13);
    ops_int(&c, "keepdims", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3, 2), x);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(6, 9, 24, 27));
    ops_end(&c);

    ops_begin(&c, "", "ReduceSumSquare", 18); /* no axes: only the square is left */
    ops_int(&c, "noop_with_empty_axes", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(3, -4));
    ops_in(&c, DQ_INT64, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(9, 16));
    ops_end(&c);

    ops_begin(&c, "", "ReduceSum", 13); /* rows of nothing */
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(0, 0));
    ops_end(&c);

    ops_begin(&c, "", "ReduceMax", 13);
    ops_ints(&c, "axes", INTS(2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "axis 2 is outside a tensor of rank 2");
    ops_end(&c);
}
END_TEST

START_TEST(long_sums)
{
    enum { ROWS = 50, COLS = 1000 };
    static double x[ROWS * COLS], by_row[ROWS], by_col[COLS];
    for (size_t i = 0; i < ROWS * COLS; i++) {
        x[i] = (double)(i * 31 % 101);
        by_row[i / COLS] += x[i];
        by_col[i % COLS] += x[i];
    }
    for (int64_t axis = 0; axis < 2; axis++) {
        ops_case c;
        ops_begin(&c, "", "ReduceSum", 11);
        ops_ints(&c, "axes", 1, &axis);
        ops_int(&c, "keepdims", 0);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(ROWS, COLS), x);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(axis ? ROWS : COLS), axis ? by_row : by_col);
        ops_end(&c);
    }
}
END_TEST

static void finds(const char *name, int version, bool last, dq_dtype dtype, double first_row,
                  double second_row)
{
    ops_case c;
    ops_begin(&c, "", name, version);
    ops_int(&c, "axis", -1);
    ops_int(&c, "keepdims", 0);
    ops_int(&c, "select_last_index", last);
    ops_in(&c, dtype, OPS_DIMS(2, 4), OPS_VALUES(3, 1, 3, 1, 5, 5, 5, 5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2), OPS_VALUES(first_row, second_row));
    ops_end(&c);
}

START_TEST(where_extremes_are)
{
    finds("ArgMax", 13, false, DQ_FLOAT, 0, 0);
    finds("ArgMax", 13, true, DQ_INT8, 2, 3);
    finds("ArgMin", 13, false, DQ_UINT64, 1, 0);
    finds("ArgMin", 12, true, DQ_BFLOAT16, 3, 3);
    ops_case c;
    ops_begin(&c, "", "ArgMax", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, NAN, 2, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(1, 2), OPS_VALUES(1, 0));
    ops_end(&c);
}
END_TEST

/* Floats have ways of their own, along rows and along columns; other types go element by element. */
START_TEST(where_extremes_of_floats_are)
{
    enum { ROWS = 9, COLS = 300 };
    static double x[ROWS * COLS];
    for (size_t i = 0; i < ROWS * COLS; i++)
        x[i] = i % 41 == 7 ? (double)NAN : i % 29 == 3 ? -(double)INFINITY : (double)(i * i % 23) - 11;
    for (int bits = 0; bits < 8; bits++) {
        ops_case c[2];
        for (int wide = 0; wide < 2; wide++) {
            ops_begin(&c[wide], "", bits & 1 ? "ArgMax" : "ArgMin", 13);
            ops_int(&c[wide], "axis", bits >> 1 & 1);
            ops_int(&c[wide], "keepdims", 0);
            ops_int(&c[wide], "select_last_index", bits >> 2);
            ops_in(&c[wide], wide ? DQ_DOUBLE : DQ_FLOAT, OPS_DIMS(ROWS, COLS), x);
            ops_must_run(&c[wide]);
        }
        for (size_t i = 0; i < c[1].out[0]->count; i++)
            ck_assert_int_eq(dq_data(c[0].out[0], int64_t)[i], dq_data(c[1].out[0], int64_t)[i]);
        ops_end(&c[0]);
        ops_end(&c[1]);
    }
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("reductions");
    tcase_add_test(tests, kinds);
    tcase_add_test(tests, extremes);
    tcase_add_test(tests, axes_by_attribute_and_input);
    tcase_add_test(tests, long_sums);
    tcase_add_test(tests, where_extremes_are);
    tcase_add_test(tests, where_extremes_of_floats_are);
    return ops_main(tests);
}
