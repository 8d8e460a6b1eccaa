/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <math.h>
#include <stdio.h>

static const double nan_value = (double)NAN, inf = (double)INFINITY;

static void check_cast(dq_dtype from, dq_dtype to, size_t n, const double *in, const double *expected)
{
    ops_case c;
    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", to);
    ops_in(&c, from, OPS_DIMS((int64_t)n), in);
    ops_must_run(&c);
    ops_want(&c, 0, to, OPS_DIMS((int64_t)n), expected);
    ops_end(&c);
}

#define CAST(from, to, in, expected) check_cast(from, to, sizeof(in) / sizeof *(in), in, expected)

START_TEST(integers_keep_their_low_bits)
{
    CAST(DQ_INT16, DQ_INT8, OPS_VALUES(200, -200, 127, 256), OPS_VALUES(-56, 56, 127, 0));
    CAST(DQ_INT64, DQ_UINT32, OPS_VALUES(-1, 4294967296.0), OPS_VALUES(4294967295.0, 0));
    CAST(DQ_INT64, DQ_INT32, OPS_VALUES(2147483648.0, 5), OPS_VALUES(-2147483648.0, 5));
    CAST(DQ_UINT8, DQ_INT4, OPS_VALUES(7, 8, 16), OPS_VALUES(7, -8, 0));
    CAST(DQ_INT8, DQ_UINT2, OPS_VALUES(-1, 4, 2), OPS_VALUES(3, 0, 2));
    CAST(DQ_INT4, DQ_INT64, OPS_VALUES(-8, 7), OPS_VALUES(-8, 7));
    CAST(DQ_UINT8, DQ_INT32, OPS_VALUES(255), OPS_VALUES(255));
    CAST(DQ_INT8, DQ_INT32, OPS_VALUES(-128), OPS_VALUES(-128));
    CAST(DQ_INT32, DQ_INT64, OPS_VALUES(-2147483648.0), OPS_VALUES(-2147483648.0));
}
END_TEST

START_TEST(floats_are_cut_to_integers)
{
    const double in[] = {1.9, -1.9, 300, -0.5, 3e9, nan_value, inf, -inf};
    CAST(DQ_FLOAT, DQ_INT32, in,
         OPS_VALUES(1, -1, 300, 0, -2147483648.0, -2147483648.0, -2147483648.0, -2147483648.0));
    CAST(DQ_FLOAT, DQ_INT8, in, OPS_VALUES(1, -1, 44, 0, 0, 0, 0, 0));
    CAST(DQ_FLOAT, DQ_UINT32, in, OPS_VALUES(1, 4294967295.0, 300, 0, 3e9, 0, 0, 0));
    CAST(DQ_DOUBLE, DQ_INT64, in, OPS_VALUES(1, -1, 300, 0, 3e9, -0x1p63, -0x1p63, -0x1p63));
    CAST(DQ_DOUBLE, DQ_UINT64, OPS_VALUES(0x1.8p63, 5.5, 0x1p64), OPS_VALUES(0x1.8p63, 5, 0x1p63));
    CAST(DQ_FLOAT16, DQ_INT4, OPS_VALUES(-9, 8, 15.5), OPS_VALUES(7, -8, -1));
    CAST(DQ_FLOAT8E5M2, DQ_UINT8, OPS_VALUES(2.5, 3), OPS_VALUES(2, 3));
}
END_TEST

START_TEST(booleans)
{
    CAST(DQ_FLOAT, DQ_BOOL, OPS_VALUES(0, -0.0, 0.1, nan_value, -3), OPS_VALUES(0, 0, 1, 1, 1));
    CAST(DQ_INT64, DQ_BOOL, OPS_VALUES(0, 4294967296.0), OPS_VALUES(0, 1));
    CAST(DQ_INT4, DQ_BOOL, OPS_VALUES(-8, 0), OPS_VALUES(1, 0));
    CAST(DQ_BOOL, DQ_FLOAT16, OPS_VALUES(0, 1), OPS_VALUES(0, 1));
    CAST(DQ_BOOL, DQ_INT2, OPS_VALUES(0, 1), OPS_VALUES(0, 1));
    CAST(DQ_FLOAT8E8M0, DQ_BOOL, OPS_VALUES(0x1p-127), OPS_VALUES(1));
}
END_TEST

/* Numbers next to the midpoint of two values of the narrow type: a rounding to float or double first would
 * move them onto it. */
START_TEST(one_rounding)
{
    CAST(DQ_DOUBLE, DQ_FLOAT16, OPS_VALUES(1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11, 65519.9999999, 65520),
         OPS_VALUES(1 + 0x1p-10, 1, 65504, inf));
    CAST(DQ_DOUBLE, DQ_BFLOAT16, OPS_VALUES(1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-8 - 0x1p-40),
         OPS_VALUES(1 + 0x1p-7, 1));
    CAST(DQ_DOUBLE, DQ_FLOAT, OPS_VALUES(1 + 0x1p-24, 1 + 0x1p-24 + 0x1p-52, 1e300),
         OPS_VALUES(1, 1 + 0x1p-23, inf));
    CAST(DQ_DOUBLE, DQ_FLOAT8E4M3FN, OPS_VALUES(1.0625 + 0x1p-40, 1.0625), OPS_VALUES(1.125, 1));

    ops_case c;
    ops_begin(&c, "", "Cast",
              13); /* 2^54 + 2^46 is halfway between two bfloat16; one more is not, and is no double */
    ops_int(&c, "to", DQ_BFLOAT16);
    dq_tensor *x = ops_in(&c, DQ_INT64, OPS_DIMS(3), NULL);
    dq_data(x, int64_t)[0] = (INT64_C(1) << 54) + (INT64_C(1) << 46);
    dq_data(x, int64_t)[1] = (INT64_C(1) << 54) + (INT64_C(1) << 46) + 1;
    dq_data(x, int64_t)[2] = INT64_MIN;
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BFLOAT16, OPS_DIMS(3), OPS_VALUES(0x1p54, 0x1p54 + 0x1p47, -0x1p63));
    ops_end(&c);

    ops_begin(&c, "", "Cast", 13);
    ops_int(&c, "to", DQ_FLOAT);
    x = ops_in(&c, DQ_UINT64, OPS_DIMS(2), NULL);
    dq_data(x, uint64_t)[0] = UINT64_MAX;
    dq_data(x, uint64_t)[1] = (UINT64_C(1) << 63) + (UINT64_C(1) << 39) + 1;
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(2), OPS_VALUES(0x1p64, 0x1p63 + 0x1p40));
    ops_end(&c);
}
END_TEST

START_TEST(float_types_and_saturation)
{
    const double in[] = {464, 464.5, -1e6, inf, -inf, nan_value, -0.0, 1e-7};
    CAST(DQ_FLOAT, DQ_FLOAT8E4M3FN, in, OPS_VALUES(448, 448, -448, 448, -448, nan_value, -0.0, 0));
    CAST(DQ_FLOAT, DQ_FLOAT8E5M2FNUZ, in, OPS_VALUES(448, 448, -57344, 57344, -57344, nan_value, 0, 0));
    CAST(DQ_FLOAT, DQ_FLOAT6E2M3, in, OPS_VALUES(7.5, 7.5, -7.5, 7.5, -7.5, -0.0, -0.0, 0));
    CAST(DQ_FLOAT, DQ_FLOAT16, in, OPS_VALUES(464, 464.5, -inf, inf, -inf, nan_value, -0.0, 0x1p-24 * 2));
    CAST(DQ_FLOAT8E5M2, DQ_FLOAT8E5M2, OPS_VALUES(-inf, 2), OPS_VALUES(-57344, 2));
    CAST(DQ_INT32, DQ_FLOAT8E5M2, OPS_VALUES(100000, -3), OPS_VALUES(57344, -3));

    ops_case c;
    ops_begin(&c, "", "Cast", 19);
    ops_int(&c, "to", DQ_FLOAT8E5M2);
    ops_int(&c, "saturate", 0);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(4), OPS_VALUES(61439, 61440, -inf, 1e6));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT8E5M2, OPS_DIMS(4), OPS_VALUES(57344, inf, -inf, inf));
    ops_end(&c);
}
END_TEST

static void check_round_mode(const char *mode, const double *expected)
{
    ops_case c;
    ops_begin(&c, "", "CastLike", 25);
    ops_string(&c, "round_mode", mode);
    ops_in(&c, DQ_DOUBLE, OPS_DIMS(4), OPS_VALUES(1, 1.5, 1.25, 2 + 0x1p-45));
    ops_in(&c, DQ_FLOAT8E8M0, OPS_DIMS(0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT8E8M0, OPS_DIMS(4), expected);
    ops_end(&c);
}

/* The table of Cast-19 to 23 has NaN for infinity in the fnuz types, that of Cast-24 the largest number. */
START_TEST(infinity_by_version)
{
    const int versions[] = {19, 23, 24};
    const dq_dtype sources[] = {DQ_FLOAT, DQ_FLOAT8E5M2};
    for (int i = 0; i < 6; i++) {
        ops_case c;
        ops_begin(&c, "", "Cast", versions[i % 3]);
        ops_int(&c, "to", DQ_FLOAT8E4M3FNUZ);
        ops_in(&c, sources[i / 3], OPS_DIMS(3), OPS_VALUES(inf, -inf, 7));
        ops_must_run(&c);
        double top = versions[i % 3] < 24 ? nan_value : 240;
        ops_want(&c, 0, DQ_FLOAT8E4M3FNUZ, OPS_DIMS(3), OPS_VALUES(top, -top, 7));
        ops_end(&c);
    }
}
END_TEST

START_TEST(powers_of_two)
{
    check_round_mode("up", OPS_VALUES(1, 2, 2, 4));
    check_round_mode("down", OPS_VALUES(1, 1, 1, 2));
    check_round_mode("nearest", OPS_VALUES(1, 2, 1, 2));
}
END_TEST

START_TEST(strings_to_numbers)
{
    const char *const in[] = {"3.14", " -1e-5\n", "+INF", "inf", "-Inf", "NaN", "100", ".5", "5."};
    ops_case c;
    ops_begin(&c, "", "Cast", 9);
    ops_int(&c, "to", DQ_FLOAT);
    ops_in_strings(&c, OPS_DIMS(9), in);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(9),
             OPS_VALUES((double)3.14f, (double)-1e-5f, inf, inf, -inf, nan_value, 100, .5, 5));
    ops_end(&c);

    /* 1 + 2^-11 is halfway between two float16; what is beyond it, only the last digit says, no double holds
     * it */
    const char *const halves[] = {"1.00048828125",
                                  "1.000488281250000000000000000000000000000000000000000001",
                                  "-1.00048828125e0",
                                  "10.0048828125000000000000000000000000000000000001e-1",
                                  "1e999",
                                  "1e-999",
                                  "-0"};
    ops_begin(&c, "", "Cast", 9);
    ops_int(&c, "to", DQ_FLOAT16);
    ops_in_strings(&c, OPS_DIMS(7), halves);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(7), OPS_VALUES(1, 1 + 0x1p-10, -1, 1 + 0x1p-10, inf, 0, -0.0));
    ops_end(&c);

    const char *const whole[] = {"9007199254740993", "-1", "100.5", "1e3", "18446744073709551615"};
    ops_begin(&c, "", "Cast", 9);
    ops_int(&c, "to", DQ_INT64);
    ops_in_strings(&c, OPS_DIMS(5), whole);
    ops_must_run(&c);
    ops_want_bits(&c, 0, DQ_INT64, OPS_DIMS(5),
                  (const uint64_t[]){9007199254740993u, UINT64_MAX, 100, 1000, UINT64_MAX});
    ops_end(&c);

    const char *const truths[] = {"True", "false", "0.0", "2", "1e-999"};
    ops_begin(&c, "", "Cast", 9);
    ops_int(&c, "to", DQ_BOOL);
    ops_in_strings(&c, OPS_DIMS(5), truths);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_BOOL, OPS_DIMS(5), OPS_VALUES(1, 0, 0, 1, 1));
    ops_end(&c);
}
END_TEST

START_TEST(no_number)
{
    static const char *const bad[] = {"Hello World!", "", "1e", ".", "0x10", "1 2", "--1", "True"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ops_case c;
        char message[128];
        snprintf(message, sizeof message, "element 1 of input 0 is '%s', expected a number for float",
                 bad[i]);
        ops_begin(&c, "", "Cast", 9);
        ops_int(&c, "to", DQ_FLOAT);
        ops_in_strings(&c, OPS_DIMS(2), (const char *const[]){"1", bad[i]});
        ops_must_refuse(&c, DQ_BAD_INPUT, message);
        ops_end(&c);
    }
}
END_TEST

static void check_printed(dq_dtype from, size_t n, const double *in, const char *const *expected)
{
    ops_case c;
    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", DQ_STRING);
    ops_in(&c, from, OPS_DIMS((int64_t)n), in);
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_DIMS((int64_t)n), expected);
    ops_end(&c);
}

START_TEST(numbers_to_strings)
{
    check_printed(
        DQ_DOUBLE, 12,
        OPS_VALUES(314.15926, 1000, 1e-5, 0.0001, 1e15, 1e16, -1.5e300, 0, -0.0, nan_value, inf, -inf),
        (const char *const[]){"314.15926", "1000.0", "1e-05", "0.0001", "1000000000000000.0", "1e+16",
                              "-1.5e+300", "0.0", "-0.0", "nan", "inf", "-inf"});
    check_printed(DQ_FLOAT, 3, OPS_VALUES(0.47892547, 16777216, 1.0 / 3),
                  (const char *const[]){"0.47892547", "16777216.0", "0.33333334"});
    check_printed(DQ_FLOAT16, 2, OPS_VALUES(0.1, 65504), (const char *const[]){"0.1", "65500.0"});
    check_printed(DQ_FLOAT4E2M1, 2, OPS_VALUES(1.5, -6), (const char *const[]){"1.5", "-6.0"});
    check_printed(DQ_INT8, 2, OPS_VALUES(-128, 5), (const char *const[]){"-128", "5"});
    check_printed(DQ_UINT64, 1, OPS_VALUES(0x1p63), (const char *const[]){"9223372036854775808"});
    check_printed(DQ_BOOL, 2, OPS_VALUES(1, 0), (const char *const[]){"True", "False"});
}
END_TEST

START_TEST(same_type_empty_and_rank_0)
{
    ops_case c;
    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", DQ_STRING);
    ops_in_strings(&c, OPS_SCALAR, (const char *const[]){"as it is"});
    ops_must_run(&c);
    ops_want_strings(&c, 0, OPS_SCALAR, (const char *const[]){"as it is"});
    ops_end(&c);

    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", DQ_INT4);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 0), NULL);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_INT4, OPS_DIMS(2, 0), NULL);
    ops_end(&c);
}
END_TEST

/* Over several pieces, with a last byte that is not full. */
START_TEST(many_elements)
{
    static const dq_dtype types[] = {DQ_UINT4, DQ_FLOAT6E2M3, DQ_INT2, DQ_FLOAT16, DQ_INT64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        ops_case c;
        ops_begin(&c, "", "Cast", 28);
        ops_int(&c, "to", types[t]);
        dq_tensor *x = ops_in(&c, DQ_FLOAT, OPS_DIMS(50003), NULL);
        for (size_t i = 0; i < x->count; i++)
            dq_data(x, float)[i] = (float)(i % 2);
        ops_must_run(&c);
        for (size_t i = 0; i < x->count; i++)
            ck_assert_double_eq(dq_tensor_get_double(c.out[0], i), (double)(i % 2));
        ops_end(&c);
    }
}
END_TEST

START_TEST(first_version_names_the_type)
{
    ops_case c;
    ops_begin(&c, "", "Cast", 1);
    ops_string(&c, "to", "FLOAT16");
    ops_in(&c, DQ_INT32, OPS_DIMS(1), OPS_VALUES(3));
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT16, OPS_DIMS(1), OPS_VALUES(3));
    ops_end(&c);

    ops_begin(&c, "", "Cast", 1);
    ops_string(&c, "to", "FLOAT17");
    ops_in(&c, DQ_INT32, OPS_DIMS(1), OPS_VALUES(3));
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'to' is 'FLOAT17', expected the name of a type");
    ops_end(&c);
}
END_TEST

START_TEST(refused)
{
    ops_case c;
    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", 99);
    ops_in(&c, DQ_INT32, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'to' is 99, expected the number of a type");
    ops_end(&c);

    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", DQ_COMPLEX64);
    ops_in(&c, DQ_INT32, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "casts to complex64, expected a type that is not complex");
    ops_end(&c);

    ops_begin(&c, "", "Cast", 25);
    ops_int(&c, "to", DQ_FLOAT8E8M0);
    ops_string(&c, "round_mode", "away");
    ops_in(&c, DQ_INT32, OPS_SCALAR, NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, "attribute 'round_mode' is 'away', expected 'up', 'down' or 'nearest'");
    ops_end(&c);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("cast", NULL, NULL);
    add_test(&tests, integers_keep_their_low_bits);
    add_test(&tests, floats_are_cut_to_integers);
    add_test(&tests, booleans);
    add_test(&tests, one_rounding);
    add_test(&tests, float_types_and_saturation);
    add_test(&tests, infinity_by_version);
    add_test(&tests, powers_of_two);
    add_test(&tests, strings_to_numbers);
    add_test(&tests, no_number);
    add_test(&tests, numbers_to_strings);
    add_test(&tests, same_type_empty_and_rank_0);
    add_test(&tests, many_elements);
    add_test(&tests, first_version_names_the_type);
    add_test(&tests, refused);
    return test_program_run(&tests);
}
