/* SPDX-License-Identifier: Apache-2.0 */
/* QLinearAveragePool, QLinearGlobalAveragePool and NhwcMaxPool. */
#include "harness.h"
#include "support/random.h"

START_TEST(average_pool)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "QLinearAveragePool", 1);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_ints(&c, "pads", 2, (const int64_t[]){1, 0});
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 1, 4), OPS_VALUES(1, 2, 4, 255));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_skip(&c);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 1);
    ops_must_run(&c);
    /* 1 + 1; 1.5 + 1 and 129.5 + 1 to even; 3 + 1 */
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1, 4), OPS_VALUES(2, 2, 4, 130));
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "QLinearAveragePool", 1);
    ops_ints(&c, "kernel_shape", 1, (const int64_t[]){2});
    ops_ints(&c, "pads", 2, (const int64_t[]){1, 0});
    ops_int(&c, "count_include_pad", 1);
    ops_int(&c, "channels_last", 1);
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 2), OPS_VALUES(10, -20, 30, 100));
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_INT8, 4);
    ops_scalar(&c, DQ_FLOAT, 0.5);
    ops_scalar(&c, DQ_INT8, 0);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 2, 2), OPS_VALUES(6, -24, 32, 72));
    ops_end(&c);
}
END_TEST

/* Sums in int16, where scales are constant, give the results of sums in float: the harness compares the two.
 * With equal scales many means of a window at the border are ties, which each rounding error may decide. */
START_TEST(average_pool_in_int16)
{
    uint64_t state = 5;
    for (size_t i = 0; i < 400; i++) {
        ops_case c;
        const dq_dtype dtype = i % 2 ? DQ_INT8 : DQ_UINT8;
        const int32_t least = i % 2 ? -128 : 0;
        const double scale = 0.01 + (double)random_below(&state, 100) / 999;
        const double ratio = random_below(&state, 2) ? 1 : 1.5 + random_fraction(&state);
        int64_t kernel[2], strides[2], dilations[2], pads[4], dims[4] = {1 + random_below(&state, 2), 2};
        for (size_t d = 0; d < 2; d++) {
            kernel[d] = 1 + random_below(&state, 4);
            strides[d] = 1 + random_below(&state, 2) * random_below(&state, 4);
            dilations[d] = 1 + random_below(&state, 8) / 7;
            pads[d] = random_below(&state, (uint32_t)kernel[d]);
            pads[2 + d] = random_below(&state, (uint32_t)kernel[d]);
            dims[2 + d] = 1 + (kernel[d] - 1) * dilations[d] + random_below(&state, 60);
        }
        ops_begin(&c, "com.microsoft", "QLinearAveragePool", 1);
        ops_ints(&c, "kernel_shape", 2, kernel);
        ops_ints(&c, "strides", 2, strides);
        ops_ints(&c, "dilations", 2, dilations);
        ops_ints(&c, "pads", 4, pads);
        ops_int(&c, "count_include_pad", random_below(&state, 2));
        ops_in_random(&c, &state, dtype, 4, dims);
        ops_scalar(&c, DQ_FLOAT, scale);
        ops_scalar(&c, dtype, least + (double)random_below(&state, 256));
        ops_scalar(&c, DQ_FLOAT, scale * ratio);
        ops_scalar(&c, dtype, least + (double)random_below(&state, 256));
        ops_must_run(&c);
        ops_end(&c);
    }
}
END_TEST

START_TEST(global_average_pool)
{
    ops_case c;
    for (int last = 0; last < 2; last++) {
        ops_begin(&c, "com.microsoft", "QLinearGlobalAveragePool", 1);
        ops_int(&c, "channels_last", last);
        ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 2),
               last ? OPS_VALUES(10, 255, 13, 255) : OPS_VALUES(10, 13, 255, 255));
        ops_scalar(&c, DQ_FLOAT, 1);
        ops_scalar(&c, DQ_UINT8, 3);
        ops_scalar(&c, DQ_FLOAT, 1);
        ops_scalar(&c, DQ_UINT8, 1);
        ops_must_run(&c);
        if (last)
            ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 1, 2), OPS_VALUES(9, 253)); /* 8.5 rounds to 8, then + 1 */
        else
            ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 2, 1), OPS_VALUES(9, 253));
        ops_end(&c);
    }
    ops_begin(&c, "com.microsoft", "QLinearGlobalAveragePool", 1); /* channels without elements */
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2, 0), NULL);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 3);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 7);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_UINT8, OPS_DIMS(1, 2, 1), OPS_VALUES(7, 7));
    ops_end(&c);

    ops_begin(&c, "com.microsoft", "QLinearGlobalAveragePool", 1);
    ops_in(&c, DQ_UINT8, OPS_DIMS(1, 2), NULL);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 3);
    ops_scalar(&c, DQ_FLOAT, 1);
    ops_scalar(&c, DQ_UINT8, 1);
    ops_must_refuse(&c, DQ_BAD_MODEL,
                    "input 0 has 2 axes, expected batch, channels and 1 or more spatial axes");
    ops_end(&c);
}
END_TEST

START_TEST(max_pool_with_channels_last)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "NhwcMaxPool", 1);
    ops_ints(&c, "kernel_shape", 2, (const int64_t[]){2, 2});
    ops_ints(&c, "pads", 4, (const int64_t[]){0, 1, 0, 0});
    ops_ints(&c, "dilations", 2, (const int64_t[]){1, 2});
    ops_in(&c, DQ_INT8, OPS_DIMS(1, 2, 3, 2),
           OPS_VALUES(-1, -10, -2, -20, -3, -30, -4, -5, -50, -60, -70,
                      -8)); /* rows of three places, two channels */
    ops_must_run(&c);
    /* places -1 and 1, then 0 and 2 */
    ops_want(&c, 0, DQ_INT8, OPS_DIMS(1, 1, 2, 2), OPS_VALUES(-2, -20, -1, -5));
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("qlinear_pool", NULL, NULL);
    add_test(&tests, average_pool);
    add_test(&tests, average_pool_in_int16);
    add_test(&tests, global_average_pool);
    add_test(&tests, max_pool_with_channels_last);
    return test_program_run(&tests);
}
