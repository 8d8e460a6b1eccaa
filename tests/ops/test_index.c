/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that go by indices, and small moves: DepthToSpace, CumSum, Trilu, Dropout. */
#include "harness.h"

#include <math.h>

static const double EIGHT[] = {0, 1, 2, 3, 4, 5, 6, 7};

START_TEST(depth_and_space)
{
    static const char *const modes[] = {"DCR", "CRD"};
    static const double want[2][8] = {{0, 2, 4, 6, 1, 3, 5, 7}, {0, 1, 2, 3, 4, 5, 6, 7}};
    for (size_t i = 0; i < 2; i++) {
        ops_case c;
        ops_begin(&c, "", "DepthToSpace", 13);
        ops_int(&c, "blocksize", 2);
        ops_string(&c, "mode", modes[i]);
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 8, 1, 1), EIGHT);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 2, 2, 2), want[i]);
        ops_end(&c);
    }
    ops_case c;
    ops_begin(&c, "", "SpaceToDepth", 13);
    ops_int(&c, "blocksize", 2);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 4), EIGHT);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(1, 4, 1, 2), OPS_VALUES(0, 2, 1, 3, 4, 6, 5, 7));
    ops_end(&c);

    ops_begin(&c, "", "SpaceToDepth", 13);
    ops_int(&c, "blocksize", 3);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 4), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 0 has shape [1,1,2,4], which is not whole blocks of 3");
    ops_end(&c);
}
END_TEST

START_TEST(running_sums)
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

/* Lines longer, and more of them, than are taken at a time: along axis 0 and 1 of N x M. */
START_TEST(running_sums_of_many)
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

/* A head of more pairs than are turned at a time, by quarters of a circle, and an element that stays. */
START_TEST(turned_heads)
{
    enum { PAIRS = 300, SIZE = 2 * PAIRS + 1 };
    for (size_t interleaved = 0; interleaved < 2; interleaved++) {
        double x[SIZE], want[SIZE], cosines[PAIRS], sines[PAIRS];
        for (size_t i = 0; i < SIZE; i++)
            want[i] = x[i] = (double)(i + 1);
        for (size_t i = 0; i < PAIRS; i++) {
            size_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : i + PAIRS,
                   quarters = i % 4;
            cosines[i] = quarters == 0 ? 1 : quarters == 2 ? -1 : 0;
            sines[i] = quarters == 1 ? 1 : quarters == 3 ? -1 : 0;
            want[first] = cosines[i] * x[first] - sines[i] * x[second];
            want[second] = sines[i] * x[first] + cosines[i] * x[second];
        }
        ops_case c;
        ops_begin(&c, "", "RotaryEmbedding", 23);
        ops_int(&c, "interleaved", (int64_t)interleaved);
        ops_int(&c, "rotary_embedding_dim", 2 * PAIRS);
        ops_in(&c, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, 1, SIZE), x);
        ops_in(&c, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, PAIRS), cosines);
        ops_in(&c, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, PAIRS), sines);
        ops_must_run(&c);
        ops_want(&c, 0, interleaved ? DQ_FLOAT : DQ_FLOAT16, OPS_DIMS(1, 1, 1, SIZE), want);
        ops_end(&c);
    }
}
END_TEST

/* Of rank 3 but not of the batch, the steps and half the head. */
START_TEST(tables_of_turns_that_do_not_fit)
{
    ops_case c;
    ops_begin(&c, "", "RotaryEmbedding", 23);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2, 4), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 2, 2), NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(1, 1, 2), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "input 2 has shape [1,1,2], expected [1,2,2]");
    ops_end(&c);
}
END_TEST

static void triangle(int64_t upper, double k, const double *want)
{
    ops_case c;
    ops_begin(&c, "", "Trilu", 14);
    ops_int(&c, "upper", upper);
    ops_in(&c, DQ_INT16, OPS_DIMS(2, 3), OPS_VALUES(1, 2, 3, 4, 5, 6));
    ops_in(&c, DQ_INT64, OPS_SCALAR, &k);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT16, OPS_DIMS(2, 3), want);
    ops_end(&c);
}

START_TEST(triangles)
{
    triangle(1, 0, OPS_VALUES(1, 2, 3, 0, 5, 6));
    triangle(0, 0, OPS_VALUES(1, 0, 0, 4, 5, 0));
    triangle(1, 1, OPS_VALUES(0, 2, 3, 0, 0, 6));
    triangle(0, -1, OPS_VALUES(0, 0, 0, 4, 0, 0));
    triangle(1, -9223372036854775808.0, OPS_VALUES(1, 2, 3, 4, 5, 6));
    triangle(1, 1e18, OPS_VALUES(0, 0, 0, 0, 0, 0));
}
END_TEST

START_TEST(dropout_does_nothing)
{
    ops_case c;
    ops_begin(&c, "", "Dropout", 13);
    c.out_count = 2;
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_in(&c, DQ_FLOAT, OPS_SCALAR, OPS_VALUES(0.5));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_want(&c, 1, DQ_BOOL, OPS_DIMS(2), OPS_VALUES(1, 1));
    ops_end(&c);

    ops_begin(&c, "", "Dropout", 13);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(1, 2));
    ops_skip(&c);
    ops_in(&c, DQ_BOOL, OPS_SCALAR, OPS_VALUES(1));
    ops_must_refuse(&c, DQ_UNSUPPORTED, "is in training mode, expected inference");
    ops_end(&c);
}
END_TEST

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

/* Columns of many, with equals among them, against the definition: number i has as many before it as its
 * place. */
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
    test_group tests = ops_group("indices");
    add_test(&tests, depth_and_space);
    add_test(&tests, running_sums);
    add_test(&tests, running_sums_of_many);
    add_test(&tests, turned_heads);
    add_test(&tests, tables_of_turns_that_do_not_fit);
    add_test(&tests, triangles);
    add_test(&tests, dropout_does_nothing);
    add_test(&tests, top_elements);
    add_test(&tests, top_of_columns);
    return run_suite(tests.suite);
}
