/* SPDX-License-Identifier: Apache-2.0 */
/* The Reduce operators: kinds, types and axes. */
#include "harness.h"

#include <math.h>
#include <string.h>

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
    all("ReduceLogSumExp", 18, DQ_FLOAT, 2, OPS_VALUES(-(double)INFINITY, -(double)INFINITY),
        -(double)INFINITY);
    all("ReduceMean", 18, DQ_INT32, 2, OPS_VALUES(-3, -4), -3);
    all("ReduceSum", 13, DQ_UINT32, 2, OPS_VALUES(4294967295.0, 2), 1);
}
END_TEST

START_TEST(extremes)
{
    all("ReduceMax", 20, DQ_FLOAT, 3, OPS_VALUES(1, (double)NAN, 3), (double)NAN);
    all("ReduceMin", 20, DQ_FLOAT, 3, OPS_VALUES((double)NAN, 1, 3), (double)NAN);
    all("ReduceMax", 20, DQ_INT8, 3, OPS_VALUES(-128, -1, -5), -1);
    all("ReduceMin", 20, DQ_UINT64, 2, OPS_VALUES(9223372036854775808.0, 18446744073709549568.0),
        9223372036854775808.0);
    all("ReduceMax", 20, DQ_BOOL, 2, OPS_VALUES(0, 1), 1);
    all("ReduceMax", 20, DQ_FLOAT, 0, NULL, -(double)INFINITY);
    all("ReduceMin", 20, DQ_INT32, 0, NULL, 2147483647);
    all("ReduceMin", 20, DQ_BOOL, 0, NULL, 1);
    all("ReduceProd", 18, DQ_FLOAT, 0, NULL, 1);
    all("ReduceMean", 18, DQ_FLOAT, 0, NULL, (double)NAN);
}
END_TEST

START_TEST(axes_by_attribute_and_input)
{
    const double *x = OPS_VALUES(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    ops_case c;
    ops_begin(&c, "", "ReduceSum", 11);
    ops_ints(&c, "axes", OPS_INTS(-3, 2));
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
    ops_ints(&c, "axes", OPS_INTS(2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "axis 2 is outside a tensor of rank 2");
    ops_end(&c);
}
END_TEST

/* Just above the middle of two numbers of the type: a float between sum and result would be the middle. */
START_TEST(sums_are_rounded_once)
{
    static double x[2 * 300] = {2048, 1, 0x1p-14};
    x[300] = -2048;
    x[301] = -1;
    x[302] = -0x1p-14;
    for (int64_t n = 3; n <= 300; n += 297) {
        ops_case c;
        ops_begin(&c, "", "ReduceSum", 13);
        ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, n), x);
        ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1, 1), OPS_VALUES(2050));
        ops_end(&c);
        ops_begin(&c, "", "ReduceSum", 13);
        ops_in(&c, DQ_FLOAT16, OPS_DIMS(1, n), x + 300);
        ops_in(&c, DQ_INT64, OPS_DIMS(1), OPS_VALUES(1));
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1, 1), OPS_VALUES(-2050));
        ops_end(&c);
    }
}
END_TEST

enum { MAX = 270 * 2 };

static double scaled(dq_dtype dtype, size_t i)
{
    double v = (double)(i * 7 % 113) - 56; /* a number of all float types */
    switch (dtype) {
    case DQ_UINT8:
        return v + 128;
    case DQ_UINT32:
        return (v + 128) * 0x1p24; /* on both sides of the sign bit */
    case DQ_UINT64:
        return (v + 128) * 0x1p56;
    case DQ_INT32:
        return v * 0x1p24; /* sums beyond 32 bits */
    default:
        return v;
    }
}

static size_t reduce(const char *name, dq_dtype dtype, const int64_t dims[3], int axes, const double *x,
                     double *y)
{
    int64_t list[3];
    size_t count = 0;
    for (int64_t d = 0; d < 3; d++)
        if (axes >> d & 1)
            list[count++] = d;
    ops_case c;
    ops_begin(&c, "", name, 12);
    ops_ints(&c, "axes", count, list);
    ops_in(&c, dtype, OPS_DIMS(dims[0], dims[1], dims[2]), x);
    ops_must_run(&c);
    size_t n = c.out[0]->count;
    for (size_t i = 0; i < n; i++)
        y[i] = dq_tensor_get_double(c.out[0], i);
    ops_end(&c);
    return n;
}

/* One kind over all sets of axes, near what doubles give. */
static void near_doubles(const char *name, dq_dtype dtype, double unit)
{
    static const int64_t dims[][3] = {{2, 35, 3}, {2, 5, 17}, {270, 1, 2}, {1, 2, 65},
                                      {2, 3, 1},  {3, 2, 41}, {1, 2, 270}, {9, 1, 60}};
    static double x[MAX], y[MAX], z[MAX];
    for (size_t i = 0; i < MAX; i++)
        x[i] = strcmp(name, "ReduceProd") ? scaled(dtype, i) : 1 + scaled(dtype, i) / 512;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (int axes = 1; axes < 8; axes++) {
            size_t n = reduce(name, DQ_DOUBLE, dims[d], axes, x, z);
            ck_assert_uint_eq(reduce(name, dtype, dims[d], axes, x, y), n);
            for (size_t i = 0; i < n; i++)
                if (!((isnan(y[i]) && isnan(z[i])) || y[i] == z[i] ||
                      fabs(y[i] - z[i]) <= unit * (fabs(z[i]) + 0x1p-3)))
                    ck_abort_msg("%s of type %s, case %zu, axes %d: element %zu is %g, expected %g", name,
                                 dq_dtype_name(dtype), d, axes, i, y[i], z[i]);
        }
}

/* Sums of integers are those in 64 bits, and of 32 bits what is left of them; means are cut toward zero. */
static void integers_by_columns(const char *name)
{
    static const int64_t dims[][3] = {{2, 35, 3}, {2, 5, 17},  {270, 1, 2},
                                      {9, 1, 60}, {1, 2, 270}, {3, 2, 41}};
    static double x[MAX], y[MAX];
    bool mean = name[6] == 'M';
    for (size_t i = 0; i < MAX; i++)
        x[i] = (double)(int64_t)(i * 2654435761 % 4294967296) - 2147483648.0;
    for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
        for (int axes = 1; axes < 8; axes++)
            for (int bits = 32; bits <= 64; bits += 32) {
                int64_t sums[MAX] = {0};
                size_t n = reduce(name, bits == 32 ? DQ_INT32 : DQ_INT64, dims[d], axes, x, y), count = 0;
                for (size_t i = 0; i < (size_t)(dims[d][0] * dims[d][1] * dims[d][2]); i++, count++) {
                    size_t at[3] = {i / (size_t)(dims[d][1] * dims[d][2]),
                                    i / (size_t)dims[d][2] % (size_t)dims[d][1], i % (size_t)dims[d][2]},
                           to = 0;
                    for (int k = 0; k < 3; k++)
                        to = axes >> k & 1 ? to : to * (size_t)dims[d][k] + at[k];
                    sums[to] += (int64_t)x[i];
                }
                for (size_t i = 0; i < n; i++) {
                    int64_t sum = mean ? sums[i] / (int64_t)(count / n) : sums[i];
                    ck_assert_int_eq((int64_t)y[i], bits == 32 && !mean ? (int32_t)(uint32_t)sum : sum);
                }
            }
}

START_TEST(shapes_and_types)
{
    static const char *const names[] = {"ReduceMax",       "ReduceMin", "ReduceSum",       "ReduceMean",
                                        "ReduceL1",        "ReduceL2",  "ReduceSumSquare", "ReduceLogSum",
                                        "ReduceLogSumExp", "ReduceProd"};
    static const dq_dtype integers[] = {DQ_UINT8, DQ_INT8, DQ_INT32, DQ_UINT32, DQ_INT64, DQ_UINT64};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        near_doubles(names[k], DQ_FLOAT, 0x1p-22);
        if (k == 0 || k == 3 || k == 8) /* the others share their way */
            near_doubles(names[k], k ? DQ_BFLOAT16 : DQ_FLOAT16, 0x1p-8);
    }
    for (size_t k = 0; k < 2; k++)
        for (size_t t = 0; t < sizeof integers / sizeof *integers; t++)
            near_doubles(names[k], integers[t], 0);
    integers_by_columns("ReduceSum");
    integers_by_columns("ReduceMean");
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

int main(void)
{
    test_program tests = test_program_begin("reduce", NULL, NULL);
    add_test(&tests, kinds);
    add_test(&tests, extremes);
    add_test(&tests, axes_by_attribute_and_input);
    add_test(&tests, sums_are_rounded_once);
    add_test(&tests, shapes_and_types);
    add_test(&tests, long_sums);
    return test_program_run(&tests);
}
