/* SPDX-License-Identifier: Apache-2.0 */
/* The measures of dqrun compare, against numbers computed by hand. */
#include "insight/measure.h"
#include "support/test_program.h"

#include <math.h>

static dq_tensor *vector(float *data, int64_t count)
{
    dq_tensor *t = NULL;
    dq_error err;
    ck_assert_msg(dq_tensor_wrap(DQ_FLOAT, 1, &count, data, (size_t)count * 4, &t, &err) == DQ_OK, "%s",
                  err.message);
    return t;
}

static void add(insight_error *e, float *reference, float *got, int64_t count, size_t input)
{
    dq_tensor *a = vector(reference, count), *b = vector(got, count);
    ck_assert(insight_error_add(e, a, b, input));
    dq_tensor_free(a);
    dq_tensor_free(b);
}

static void near(double got, double expected)
{
    ck_assert_msg(fabs(got - expected) <= 1e-6 * fmax(1, fabs(expected)), "got %.9g, expected %.9g", got,
                  expected);
}

START_TEST(one_wrong_element)
{
    insight_error e = {0};
    float reference[] = {1, 2, 3, 4}, got[] = {1, 2, 3, 5};
    add(&e, reference, got, 4, 0);
    near(insight_sqnr(&e), 14.7712125); /* 10·log10(30 / 1) */
    near(insight_noise_ratio(&e), 1.0 / 30);
    near(insight_cosine(&e), 0.9939991); /* 34 / sqrt(30 · 39) */
    near(insight_rmse(&e), 0.5);
    near(insight_mean_error(&e), 0.25);
    near(e.largest, 1);
    ck_assert_uint_eq(e.count, 4);
}
END_TEST

START_TEST(inputs_add_up)
{
    insight_error e = {0};
    float good[] = {10, 10}, reference[] = {1, 1}, got[] = {2, 0};
    add(&e, good, good, 2, 0);
    ck_assert(isinf(insight_sqnr(&e)) && insight_sqnr(&e) > 0);
    add(&e, reference, got, 2, 1);
    near(insight_sqnr(&e), 20.0432137); /* 202 / 2 */
    ck_assert_uint_eq(e.worst_input, 1);
    near(e.worst_sqnr, 0); /* 2 / 2 */
    near(insight_mean_error(&e), 0);
}
END_TEST

START_TEST(zeros_and_numbers_that_are_none)
{
    insight_error e = {0};
    float reference[] = {0, NAN, INFINITY, NAN, INFINITY}, got[] = {0, NAN, INFINITY, 1, -INFINITY};
    ck_assert(isnan(insight_sqnr(&e)) && isnan(insight_cosine(&e)));
    add(&e, reference, got, 5, 0);
    ck_assert_uint_eq(e.count, 1);
    ck_assert_uint_eq(e.not_finite, 2);
    near(insight_cosine(&e), 1);
    near(insight_noise_ratio(&e), 0);
    float noise[] = {1};
    add(&e, reference, noise, 1, 1);
    ck_assert(isinf(insight_noise_ratio(&e)) && insight_sqnr(&e) < 0);
    near(insight_cosine(&e), 0);
}
END_TEST

START_TEST(different_counts)
{
    insight_error e = {0};
    float data[] = {1, 2};
    dq_tensor *a = vector(data, 2), *b = vector(data, 1);
    ck_assert(!insight_error_add(&e, a, b, 0));
    ck_assert_uint_eq(e.inputs, 0);
    dq_tensor_free(a);
    dq_tensor_free(b);
}
END_TEST

START_TEST(clipping_and_codes)
{
    insight_pool pool = {0};
    insight_range r;
    float values[] = {-6, -5, 0, 0.2F, 1, 122.5F, 123, 200};
    dq_tensor *t = vector(values, 8);
    ck_assert(insight_range_start(&r, DQ_UINT8, 0.5, 10, &pool, NULL) == DQ_OK);
    near(r.low, -5);
    near(r.high, 122.5);
    insight_range_add(&r, t);
    ck_assert_uint_eq(r.clipped_low, 1);          /* -6 */
    ck_assert_uint_eq(r.clipped_high, 2);         /* 123 and 200 */
    near(r.clip_noise, 6007.5);                   /* 1² + 0.5² + 77.5² */
    ck_assert_uint_eq(insight_codes_used(&r), 4); /* 0 twice, 10 twice, 12, 255 three times */
    near(insight_entropy(&r), 1.90563906);
    ck_assert_uint_eq(r.at_zero_point, 2);
    near(insight_range_used(&r), 1);
    near(r.min, -6);
    near(r.max, 200);
    dq_tensor_free(t);
    insight_pool_free(&pool);
}
END_TEST

START_TEST(a_range_that_is_hardly_used)
{
    insight_pool pool = {0};
    insight_range r;
    float values[] = {-1, 0, 1};
    dq_tensor *t = vector(values, 3);
    ck_assert(insight_range_start(&r, DQ_INT8, 1, 0, &pool, NULL) == DQ_OK);
    insight_range_add(&r, t);
    near(insight_range_used(&r), 2.0 / 255); /* of -128 … 127 */
    near(insight_entropy(&r), 1.5849625);    /* log2(3) */
    near(r.clip_noise, 0);
    dq_tensor_free(t);
    insight_pool_free(&pool);
}
END_TEST

START_TEST(percentile_without_an_outlier)
{
    enum { COUNT = 2000 };
    insight_pool pool = {0};
    insight_range r;
    static float values[COUNT];
    for (int i = 0; i < COUNT; i++)
        values[i] = i == 7 ? 100 : 1;
    dq_tensor *t = vector(values, COUNT);
    ck_assert(insight_range_start(&r, DQ_UINT8, 1, 0, &pool, NULL) == DQ_OK);
    insight_range_add(&r, t);
    const double bin = 200.0 / INSIGHT_BINS; /* 0 … twice the largest */
    ck_assert(insight_percentile(&r, 0.999) >= 1 && insight_percentile(&r, 0.999) <= 1 + 2 * bin);
    near(insight_percentile(&r, 1), 100);
    dq_tensor_free(t);
    insight_pool_free(&pool);
}
END_TEST

START_TEST(ends_of_types)
{
    int64_t min = 0, max = 0;
    ck_assert(insight_code_range(DQ_INT8, &min, &max) && min == -128 && max == 127);
    ck_assert(insight_code_range(DQ_UINT16, &min, &max) && min == 0 && max == 65535);
    ck_assert(insight_code_range(DQ_INT4, &min, &max) && min == -8 && max == 7);
    ck_assert(insight_code_range(DQ_INT32, &min, &max) && min == INT32_MIN && max == INT32_MAX);
    ck_assert(!insight_code_range(DQ_FLOAT8E4M3FN, &min, &max));
    insight_pool pool = {0};
    insight_range r;
    ck_assert(insight_range_start(&r, DQ_INT32, 1, 0, &pool, NULL) == DQ_UNSUPPORTED);
    insight_pool_free(&pool);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("measure", NULL, NULL);
    add_test(&tests, one_wrong_element);
    add_test(&tests, inputs_add_up);
    add_test(&tests, zeros_and_numbers_that_are_none);
    add_test(&tests, different_counts);
    add_test(&tests, clipping_and_codes);
    add_test(&tests, a_range_that_is_hardly_used);
    add_test(&tests, percentile_without_an_outlier);
    add_test(&tests, ends_of_types);
    return test_program_run(&tests);
}
