/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move elements: of any width, packed types and strings too. */
#include "harness.h"

#include <math.h>

#define LIST(...) OPS_DIMS(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), OPS_VALUES(__VA_ARGS__)
#define INTS(...) sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), ((const int64_t[]){__VA_ARGS__})

START_TEST(transposes)
{
    ops_case c;
    ops_begin(&c, "", "Transpose", 25);
    ops_ints(&c, "perm", INTS(1, 2, 0));
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
    ops_ints(&c, "perm", INTS(0, 0));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "axis 0 is named twice");
    ops_end(&c);
}
END_TEST

START_TEST(transposes_in_many_pieces)
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

START_TEST(concatenates)
{
    ops_case c;
    ops_begin(&c, "", "Concat", 13);
    ops_int(&c, "axis", -1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 0), NULL);
    ops_in(&c, DQ_UINT8, OPS_DIMS(2, 2), OPS_VALUES(3, 4, 5, 6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(2, 3), OPS_VALUES(1, 3, 4, 2, 5, 6));
    ops_end(&c);

    ops_begin(&c, "", "Concat", 4);
    ops_int(&c, "axis", 0);
    ops_in_strings(&c, OPS_DIMS(1), (const char *const[]){"one"});
    ops_in_strings(&c, OPS_DIMS(2), (const char *const[]){"", "three"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS(3), (const char *const[]){"one", "", "three"});
    ops_end(&c);

    ops_begin(&c, "", "Concat", 13);
    ops_int(&c, "axis", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 4), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 has shape [2,4], expected [2,3] but for axis 0");
    ops_end(&c);
}
END_TEST

START_TEST(splits)
{
    ops_case c;
    ops_begin(&c, "", "Split", 13);
    c.out_count = 3;
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 4), OPS_VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    ops_in(&c, DQ_INT64, LIST(1, 0, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT64, OPS_DIMS(2, 1), OPS_VALUES(1, 5));
    ops_want(&c, 1, DQ_INT64, OPS_DIMS(2, 0), NULL);
    ops_want(&c, 2, DQ_INT64, OPS_DIMS(2, 3), OPS_VALUES(2, 3, 4, 6, 7, 8));
    ops_end(&c);

    ops_begin(&c, "", "Split", 18); /* the last part is smaller */
    c.out_count = 3;
    ops_int(&c, "num_outputs", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(7), OPS_VALUES(1, 2, 3, 4, 5, 6, 7));
    ops_must_run(&c);
    ops_want(&c, 1, DQ_FLOAT, OPS_DIMS(3), OPS_VALUES(4, 5, 6));
    ops_want(&c, 2, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(7));
    ops_end(&c);

    ops_begin(&c, "", "Split", 18);
    c.out_count = 2;
    ops_int(&c, "num_outputs", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(6), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'num_outputs' is 3, expected 2");
    ops_end(&c);

    ops_begin(&c, "", "Split", 2);
    c.out_count = 2;
    ops_ints(&c, "split", INTS(1, 1));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(3), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "has lengths that sum to 2, expected the 3 of axis 0");
    ops_end(&c);
}
END_TEST

START_TEST(repeats)
{
    ops_case c;
    ops_begin(&c, "", "Expand", 13);
    ops_in(&c, DQ_BOOL, OPS_DIMS(2, 1), OPS_VALUES(1, 0));
    ops_in(&c, DQ_INT64, LIST(2, 1, 3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(2, 2, 3), OPS_VALUES(1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0));
    ops_end(&c);

    ops_begin(&c, "", "Tile", 13);
    ops_in(&c, DQ_UINT16, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_INT64, LIST(2, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT16, OPS_DIMS(4, 4), OPS_VALUES(1, 2, 1, 2, 3, 4, 3, 4, 1, 2, 1, 2, 3, 4, 3, 4));
    ops_end(&c);

    ops_begin(&c, "", "Tile", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(3));
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1), OPS_VALUES(1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 1, 1, 2, 2, 2));
    ops_end(&c);
}
END_TEST

START_TEST(gathers)
{
    ops_case c;
    ops_begin(&c, "", "Gather", 13);
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 2), OPS_VALUES(-1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2, 1, 2), OPS_VALUES(3, 1, 6, 4));
    ops_end(&c);

    ops_begin(&c, "", "GatherElements", 13);
    ops_int(&c, "axis", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(1, 2, 3, 4));
    ops_in(&c, DQ_INT64, OPS_DIMS(2, 2), OPS_VALUES(0, 0, -1, 0));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(2, 2), OPS_VALUES(1, 1, 4, 3));
    ops_end(&c);

    ops_begin(&c, "", "Gather", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_INT64, LIST(2));
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 1 holds 2, outside an axis of 2");
    ops_end(&c);
}
END_TEST

/* More indices than are taken at a time, of elements of each width. */
START_TEST(gathers_many)
{
    static const dq_dtype types[] = {DQ_INT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    enum { N = 600 };
    static double data[2 * N], index[N], along[2 * N], across[2 * N];
    for (int i = 0; i < 2 * N; i++)
        data[i] = i * 37 % 101;
    for (int i = 0; i < N; i++) {
        int at = i * 7 % N;
        index[i] = i % 3 ? at : at - N;
        along[i] = data[at];
        along[N + i] = data[N + at];
        across[i] = data[i % 5 % 2 ? N + i : i];
    }
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        ops_case c;
        ops_begin(&c, "", "Gather", 13);
        ops_int(&c, "axis", 1);
        ops_in(&c, types[t], OPS_DIMS(2, N), data);
        ops_in(&c, t % 2 ? DQ_INT32 : DQ_INT64, OPS_DIMS(N), index);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, N), along);
        ops_end(&c);

        double row[N];
        ops_begin(&c, "", "GatherElements", 13);
        ops_in(&c, types[t], OPS_DIMS(2, N), data);
        for (int i = 0; i < N; i++)
            row[i] = i % 5 % 2 ? -1 : 0;
        ops_in(&c, DQ_INT64, OPS_DIMS(1, N), row);
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(1, N), across);
        ops_end(&c);
    }
}
END_TEST

static void pads(const char *mode, double begin, double end, int64_t n, const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Pad", 19);
    ops_string(&c, "mode", mode);
    ops_in(&c, DQ_INT32, OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, OPS_DIMS(2), OPS_VALUES(begin, end));
    ops_skip(&c);
    ops_in(&c, DQ_INT64, LIST(-1));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT32, OPS_DIMS(1, n), want);
    ops_end(&c);
}

START_TEST(padding)
{
    pads("constant", 1, 2, 6, OPS_VALUES(0, 1, 2, 3, 0, 0));
    pads("constant", -1, 1, 3, OPS_VALUES(2, 3, 0));
    pads("edge", 2, 1, 6, OPS_VALUES(1, 1, 1, 2, 3, 3));
    pads("reflect", 2, 2, 7, OPS_VALUES(3, 2, 1, 2, 3, 2, 1));
    pads("wrap", 2, 1, 6, OPS_VALUES(2, 3, 1, 2, 3, 1));
    pads("reflect", -1, 2, 4, OPS_VALUES(2, 3, 2, 1));

    static const dq_dtype types[] = {DQ_UINT4, DQ_UINT8, DQ_FLOAT16, DQ_FLOAT, DQ_DOUBLE};
    ops_case c;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) { /* both axes; one axis is all pads */
        ops_begin(&c, "", "Pad", 25);
        ops_string(&c, "mode", "edge");
        ops_in(&c, types[t], OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
        ops_in(&c, DQ_INT64, LIST(1, 1, 0, 2));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(3, 6),
                 OPS_VALUES(1, 1, 2, 3, 3, 3, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 6, 6));
        ops_end(&c);
        ops_begin(&c, "", "Pad", 25);
        ops_string(&c, "mode", "wrap");
        ops_in(&c, types[t], OPS_DIMS(1, 3), OPS_VALUES(1, 2, 3));
        ops_in(&c, DQ_INT64, LIST(0, 5, 1, -3));
        ops_must_run(&c);
        ops_want(&c, 0, types[t], OPS_DIMS(2, 5), OPS_VALUES(2, 3, 1, 2, 3, 2, 3, 1, 2, 3));
        ops_end(&c);
    }
    ops_begin(&c, "", "Pad", 25); /* packed, with a value */
    ops_in(&c, DQ_UINT4, OPS_DIMS(3), OPS_VALUES(1, 2, 3));
    ops_in(&c, DQ_INT64, LIST(1, 1));
    ops_in(&c, DQ_UINT4, OPS_SCALAR, OPS_VALUES(15));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT4, OPS_DIMS(5), OPS_VALUES(15, 1, 2, 3, 15));
    ops_end(&c);

    ops_begin(&c, "", "Pad", 2);
    ops_ints(&c, "pads", INTS(0, 1, 0, 0));
    ops_float(&c, "value", 0.5f);
    ops_in(&c, DQ_FLOAT16, OPS_DIMS(2, 1), OPS_VALUES(1, 2));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(2, 2), OPS_VALUES(0.5, 1, 0.5, 2));
    ops_end(&c);

    ops_begin(&c, "", "Pad", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), NULL);
    ops_in(&c, DQ_INT64, LIST(-2, -1));
    ops_must_refuse(&c, DQ_BAD_MODEL, "pads axis 0 of 2 by -2 and -1, which leaves no length");
    ops_end(&c);
}
END_TEST

static void counts(dq_dtype dtype, double start, double limit, double delta, int64_t n, const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Range", 11);
    ops_in(&c, dtype, OPS_SCALAR, &start);
    ops_in(&c, dtype, OPS_SCALAR, &limit);
    ops_in(&c, dtype, OPS_SCALAR, &delta);
    ops_must_run(&c);
    ops_want(&c, 0, dtype, OPS_DIMS(n), want);
    ops_end(&c);
}

START_TEST(ranges)
{
    counts(DQ_INT64, 3, 10, 3, 3, OPS_VALUES(3, 6, 9));
    counts(DQ_INT16, 3, -4, -3, 3, OPS_VALUES(3, 0, -3));
    counts(DQ_INT32, 5, 5, 1, 0, NULL);
    counts(DQ_FLOAT, 0, 1, 0.25, 4, OPS_VALUES(0, 0.25, 0.5, 0.75));
    counts(DQ_INT64, -9223372036854775808.0, 9223372036854774784.0, 4611686018427387904.0, 4,
           OPS_VALUES(-9223372036854775808.0, -4611686018427387904.0, 0, 4611686018427387904.0));
    static const dq_dtype types[] = {DQ_INT16, DQ_INT32, DQ_INT64, DQ_FLOAT, DQ_FLOAT16, DQ_DOUBLE};
    double want[600];
    for (size_t i = 0; i < 600; i++)
        want[i] = 3 - 1.5 * (double)i;
    for (size_t t = 3; t < 6; t++)
        counts(types[t], 3, -897, -1.5, 600, want);
    for (size_t i = 0; i < 600; i++)
        want[i] = 3 - 2 * (double)i;
    for (size_t t = 0; t < 6; t++)
        counts(types[t], 3, -1196, -2, 600, want);
}
END_TEST

int main(void)
{
    test_group tests = ops_group("moves");
    add_test(&tests, transposes);
    add_test(&tests, transposes_in_many_pieces);
    add_test(&tests, second_elements);
    add_test(&tests, slices);
    add_test(&tests, concatenates);
    add_test(&tests, splits);
    add_test(&tests, repeats);
    add_test(&tests, gathers);
    add_test(&tests, gathers_many);
    add_test(&tests, padding);
    add_test(&tests, ranges);
    return run_suite(tests.suite);
}
