/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin. */
#include "harness.h"

#include <math.h>

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
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), OPS_VALUES(1, (double)NAN, 2, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(1, 2), OPS_VALUES(1, 0));
    ops_end(&c);
}
END_TEST

/* The definition: NaN is more than any number, of equals the first stays, or the last. */
static double place_of_extreme(const double *x, size_t n, size_t step, bool max, bool last)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        const double e = x[i * step], most = x[best * step];
        const bool more = isnan(e) ? !isnan(most) : !isnan(most) && (max ? e > most : e < most);
        best = more || (last && (e == most || (isnan(e) && isnan(most)))) ? i : best;
    }
    return (double)best;
}

/* Types have ways of their own, along rows and along columns. */
static void finds_in(dq_dtype dtype, int64_t rows, int64_t cols, const double *x)
{
    double want[300];
    for (int bits = 0; bits < 8; bits++) {
        const bool max = bits & 1, by_rows = bits & 2, last = bits & 4;
        const int64_t n = by_rows ? rows : cols;
        for (int64_t i = 0; i < n; i++)
            want[i] = place_of_extreme(x + i * (by_rows ? cols : 1), (size_t)(by_rows ? cols : rows),
                                       by_rows ? 1 : (size_t)cols, max, last);
        ops_case c;
        ops_begin(&c, "", max ? "ArgMax" : "ArgMin", 13);
        ops_int(&c, "axis", by_rows);
        ops_int(&c, "keepdims", 0);
        ops_int(&c, "select_last_index", last);
        ops_in(&c, dtype, OPS_DIMS(rows, cols), x);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_INT64, OPS_DIMS(n), want);
        ops_end(&c);
    }
}

START_TEST(where_extremes_of_many_are)
{
    enum { MANY = 9 * 300 };
    static const int64_t shapes[][2] = {{9, 300}, {300, 9}, {100, 5}, {13, 1}, {2, 129}, {40, 40}};
    static const dq_dtype types[] = {DQ_FLOAT,  DQ_INT8,  DQ_UINT8,  DQ_INT32,   DQ_UINT32,
                                     DQ_DOUBLE, DQ_INT64, DQ_UINT64, DQ_FLOAT16, DQ_INT16};
    static double x[MANY];
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const bool floats = dq_dtype_is_float(types[t]);
        const bool natural = dq_dtype_get(types[t])->cls == DQ_CLASS_UINT;
        for (size_t i = 0; i < MANY; i++) {
            x[i] = (double)(i * i % 23) + (natural ? 117 : -11);
            x[i] = !floats ? x[i] : i % 41 == 7 ? (double)NAN : i % 29 == 3 ? -(double)INFINITY : x[i];
            x[i] *= types[t] == DQ_UINT32 ? 0x1p24 : types[t] == DQ_UINT64 ? 0x1p56 : 1;
        }
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            finds_in(types[t], shapes[s][0], shapes[s][1], x);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("arg_max", NULL, NULL);
    add_test(&tests, where_extremes_are);
    add_test(&tests, where_extremes_of_many_are);
    return test_program_run(&tests);
}
