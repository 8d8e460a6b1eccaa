/* SPDX-License-Identifier: Apache-2.0 */
/* tools/compare.c: the comparison of tensors that --expect and dqrun-conformance share. */
#include "compare.h"
#include "support/test_program.h"

#include <math.h>
#include <string.h>

static const compare_tolerance exact = {0, 0};

/* A vector over memory of the test. */
static dq_tensor *vector(dq_dtype dtype, void *data, int64_t count)
{
    dq_tensor *t = NULL;
    dq_error err;
    size_t size = ((size_t)count * dq_dtype_bits(dtype) + 7) / 8;
    ck_assert_msg(dq_tensor_wrap(dtype, 1, &count, data, size, &t, &err) == DQ_OK, "%s", err.message);
    return t;
}

static compare_result compare(dq_dtype dtype, void *got, void *want, int64_t count,
                              compare_tolerance tolerance)
{
    compare_result r;
    dq_tensor *g = vector(dtype, got, count), *w = vector(dtype, want, count);
    compare_tensors(g, w, &tolerance, &r);
    dq_tensor_free(g);
    dq_tensor_free(w);
    return r;
}

START_TEST(integers_at_the_ends)
{
    int64_t got[] = {INT64_MIN, 5, -1}, want[] = {INT64_MAX, 5, 1};
    compare_result r = compare(DQ_INT64, got, want, 3, (compare_tolerance){1, 1});
    ck_assert(!r.same && r.comparable);
    ck_assert_uint_eq(r.count, 3);
    ck_assert_uint_eq(r.differ, 2);
    ck_assert_uint_eq(r.where, 0);
    ck_assert_str_eq(r.message,
                     "2 of 3 elements differ; the largest difference is 18446744073709551615 quanta, at [0]: "
                     "got -9223372036854775808, expected 9223372036854775807");
    uint64_t low[] = {0}, high[] = {UINT64_MAX};
    ck_assert_str_eq(
        compare(DQ_UINT64, low, high, 1, exact).message,
        "1 of 1 elements differ; the largest difference is 18446744073709551615 quanta, at [0]: got 0, "
        "expected 18446744073709551615");
}
END_TEST

START_TEST(packed_integers)
{
    /* int4: 7, -8, 1 against 7, 7, 1; the bits past the third element are not compared. */
    uint8_t got[] = {0x87, 0xF1}, want[] = {0x77, 0x01};
    ck_assert_str_eq(
        compare(DQ_INT4, got, want, 3, exact).message,
        "1 of 3 elements differ; the largest difference is 15 quanta, at [1]: got -8, expected 7");
    ck_assert_str_eq(
        compare(DQ_UINT4, got, want, 3, exact).message,
        "1 of 3 elements differ; the largest difference is 1 quantum, at [1]: got 8, expected 7");
}
END_TEST

START_TEST(bools)
{
    uint8_t got[] = {1, 0}, want[] = {1, 1};
    ck_assert_str_eq(compare(DQ_BOOL, got, want, 2, exact).message,
                     "1 of 2 elements differ; at [1]: got false, expected true");
}
END_TEST

START_TEST(floats)
{
    float nan_of_one_sign = (float)NAN, got[] = {1, nan_of_one_sign, INFINITY, 0.0f};
    float want[] = {1, -nan_of_one_sign, INFINITY, -0.0f};
    ck_assert(compare(DQ_FLOAT, got, want, 4, exact).same);
    want[1] = 3;
    compare_result r = compare(DQ_FLOAT, got, want, 4, (compare_tolerance){1e9, 1e9});
    ck_assert(!r.same && isnan(r.largest));
    ck_assert_str_eq(r.message, "1 of 4 elements differ; at [1]: got nan, expected 3");
    /* A NaN counts as larger than any number, wherever it stands. */
    want[0] = 100;
    ck_assert_uint_eq(compare(DQ_FLOAT, got, want, 4, exact).where, 1);
}
END_TEST

START_TEST(tolerance_is_relative_to_what_was_wanted)
{
    double two[] = {2}, three_halves[] = {1.5};
    ck_assert(compare(DQ_DOUBLE, three_halves, two, 1, (compare_tolerance){0.25, 0}).same);
    ck_assert(!compare(DQ_DOUBLE, two, three_halves, 1, (compare_tolerance){0.25, 0}).same);
    ck_assert(compare(DQ_DOUBLE, two, three_halves, 1, (compare_tolerance){0, 0.5}).same);
}
END_TEST

START_TEST(complex_numbers)
{
    float got[] = {3, 4, 1, 1}, want[] = {0, 0, 1, 1};
    ck_assert_str_eq(compare(DQ_COMPLEX64, got, want, 2, exact).message,
                     "1 of 2 elements differ; the largest difference is 5, at [0]: got 3+4i, expected 0+0i");
    ck_assert(compare(DQ_COMPLEX64, got, want, 2, (compare_tolerance){0, 5}).same);
}
END_TEST

static dq_tensor *words(const char *a, const char *b)
{
    dq_tensor *t = NULL;
    const int64_t dims[] = {1, 2};
    ck_assert_int_eq(dq_tensor_create(DQ_STRING, 2, dims, &t, NULL), DQ_OK);
    ck_assert_int_eq(dq_tensor_set_string(t, 0, a, strlen(a), NULL), DQ_OK);
    ck_assert_int_eq(dq_tensor_set_string(t, 1, b, strlen(b), NULL), DQ_OK);
    return t;
}

START_TEST(strings)
{
    dq_tensor *got = words("", "abc"), *want = words("", "ab");
    compare_result r;
    compare_tensors(got, got, &exact, &r);
    ck_assert(r.same);
    ck_assert_str_eq(r.message, "equal");
    compare_tensors(got, want, &exact, &r);
    ck_assert_str_eq(r.message, "1 of 2 elements differ; at [0,1]: got 'abc', expected 'ab'");
    dq_tensor_free(got);
    dq_tensor_free(want);
}
END_TEST

START_TEST(shapes_and_types)
{
    float data[4] = {0};
    const int64_t square[] = {2, 2}, flat[] = {4};
    dq_tensor *a = NULL, *b = NULL;
    compare_result r;
    ck_assert_int_eq(dq_tensor_wrap(DQ_FLOAT, 2, square, data, 16, &a, NULL), DQ_OK);
    ck_assert_int_eq(dq_tensor_wrap(DQ_INT32, 1, flat, data, 16, &b, NULL), DQ_OK);
    compare_tensors(a, b, &exact, &r);
    ck_assert(!r.same && !r.comparable);
    ck_assert_str_eq(r.message, "got float[2,2], expected int32[4]");
    dq_tensor_free(a);
    dq_tensor_free(b);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("compare", NULL, NULL);
    add_test(&tests, integers_at_the_ends);
    add_test(&tests, packed_integers);
    add_test(&tests, bools);
    add_test(&tests, floats);
    add_test(&tests, tolerance_is_relative_to_what_was_wanted);
    add_test(&tests, complex_numbers);
    add_test(&tests, strings);
    add_test(&tests, shapes_and_types);
    return test_program_run(&tests);
}
