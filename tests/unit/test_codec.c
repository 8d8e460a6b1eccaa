/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/codec.c: the number codecs against the definition of each format, written a second time and in
 * another way: values by ldexp, the nearest by search among all values. */
#include "base/codec.h"
#include "support/test_program.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct type {
    dq_dtype dtype;
    unsigned bits, mantissa;
    int bias;
    double largest;
    bool has_infinity, has_nan, has_negative_zero;
} type;

static const type types[] = {
    {DQ_FLOAT16, 16, 10, 15, 65504, true, true, true},
    {DQ_FLOAT8E4M3FN, 8, 3, 7, 448, false, true, true},
    {DQ_FLOAT8E4M3FNUZ, 8, 3, 8, 240, false, true, false},
    {DQ_FLOAT8E5M2, 8, 2, 15, 57344, true, true, true},
    {DQ_FLOAT8E5M2FNUZ, 8, 2, 16, 57344, false, true, false},
    {DQ_FLOAT4E2M1, 4, 1, 1, 6, false, false, true},
    {DQ_FLOAT6E2M3, 6, 3, 1, 7.5, false, false, true},
    {DQ_FLOAT6E3M2, 6, 2, 3, 28, false, false, true},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* The value of a pattern that is below the type's largest number. */
static double value_of(const type *t, uint32_t magnitude)
{
    int exponent = (int)(magnitude >> t->mantissa);
    double fraction = ldexp((double)(magnitude & ((1u << t->mantissa) - 1)), -(int)t->mantissa);
    return exponent ? ldexp(1 + fraction, exponent - t->bias) : ldexp(fraction, 1 - t->bias);
}

static bool same(float a, float b)
{
    return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static uint32_t nearest(dq_dtype dtype, float x, bool saturate)
{
    return dq_encode_float(dtype, x, saturate, DQ_ROUND_NEAREST);
}

/* The pattern of the type's largest number. */
static uint32_t largest_code(const type *t)
{
    uint32_t code = 0;
    while (value_of(t, code) < t->largest)
        code++;
    return code;
}

START_TEST(decodes_every_pattern)
{
    const type *t = &types[_i];
    uint32_t sign = 1u << (t->bits - 1), largest = largest_code(t);
    for (uint32_t bits = 0; bits < sign; bits++) {
        float plus = dq_decode_float(t->dtype, bits), minus = dq_decode_float(t->dtype, bits | sign);
        if (bits <= largest) {
            ck_assert_msg(same(plus, (float)value_of(t, bits)), "pattern %#x is %g", bits, (double)plus);
            if (bits || t->has_negative_zero)
                ck_assert_msg(same(minus, -plus), "pattern %#x is %g", bits | sign, (double)minus);
            else
                ck_assert(isnan(minus));
        } else if (t->has_infinity && bits == largest + 1) {
            ck_assert(isinf(plus) && plus > 0 && isinf(minus) && minus < 0);
        } else {
            ck_assert(isnan(plus) && isnan(minus));
        }
    }
}
END_TEST

START_TEST(round_trips_every_pattern)
{
    const type *t = &types[_i];
    for (uint32_t bits = 0; bits < 1u << t->bits; bits++) {
        float x = dq_decode_float(t->dtype, bits);
        uint32_t back = nearest(t->dtype, x, false);
        if (isnan(x))
            ck_assert_msg(isnan(dq_decode_float(t->dtype, back)), "NaN %#x gave %#x", bits, back);
        else
            ck_assert_msg(back == bits, "%#x (%g) gave %#x", bits, (double)x, back);
    }
}
END_TEST

static void check_code(const type *t, float x, uint32_t expected)
{
    uint32_t sign = 1u << (t->bits - 1);
    uint32_t negative = expected || t->has_negative_zero ? expected | sign : 0;
    ck_assert_msg(nearest(t->dtype, x, false) == expected, "%.9g gave %#x, expected %#x", (double)x,
                  nearest(t->dtype, x, false), expected);
    ck_assert_msg(nearest(t->dtype, -x, true) == negative, "%.9g gave %#x, expected %#x", (double)-x,
                  nearest(t->dtype, -x, true), negative);
}

/* Between two neighbours the half goes to the even one, and what is beside it to the nearer. */
START_TEST(halves_and_their_neighbours)
{
    const type *t = &types[_i];
    uint32_t largest = largest_code(t);
    for (uint32_t code = 0; code < largest; code++) {
        double low = value_of(t, code), high = value_of(t, code + 1);
        float half = (float)((low + high) / 2);
        ck_assert_double_eq((double)half, (low + high) / 2);
        check_code(t, half, code & 1 ? code + 1 : code);
        check_code(t, nextafterf(half, 0), code);
        check_code(t, nextafterf(half, INFINITY), code + 1);
        check_code(t, nextafterf((float)high, 0), code + 1);
    }
}
END_TEST

/* The end of the range lies half a step beyond the largest number; there the next pattern would be even or
 * odd. */
START_TEST(overflow)
{
    const type *t = &types[_i];
    uint32_t sign = 1u << (t->bits - 1), largest = largest_code(t);
    float half = (float)(t->largest + (t->largest - value_of(t, largest - 1)) / 2);
    float out[] = {largest & 1 ? half : nextafterf(half, INFINITY), 1e9f, FLT_MAX, INFINITY};
    check_code(t, nextafterf(half, 0), largest);
    if (!(largest & 1))
        check_code(t, half, largest);
    bool obeys = t->dtype != DQ_FLOAT16;
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) {
        uint32_t kept = nearest(t->dtype, out[i], true), lost = nearest(t->dtype, -out[i], false);
        ck_assert_uint_eq(kept, obeys ? largest : largest + 1);
        ck_assert_uint_eq(nearest(t->dtype, -out[i], true), kept | sign);
        float x = dq_decode_float(t->dtype, lost);
        if (t->has_infinity)
            ck_assert_msg(isinf(x) && x < 0, "%g gave %#x", (double)-out[i], lost);
        else if (t->has_nan)
            ck_assert_msg(isnan(x), "%g gave %#x", (double)-out[i], lost);
        else
            ck_assert_uint_eq(lost, largest | sign);
    }
}
END_TEST

START_TEST(zeros_and_nan)
{
    const type *t = &types[_i];
    uint32_t sign = 1u << (t->bits - 1);
    uint32_t minus = t->has_negative_zero ? sign : 0;
    ck_assert_uint_eq(nearest(t->dtype, 0.0f, true), 0);
    ck_assert_uint_eq(nearest(t->dtype, -0.0f, true), minus);
    ck_assert_uint_eq(nearest(t->dtype, 1e-40f, true), 0);
    ck_assert_uint_eq(nearest(t->dtype, -1e-40f, true), minus);
    for (int saturate = 0; saturate < 2; saturate++) {
        float x = dq_decode_float(t->dtype, nearest(t->dtype, NAN, saturate));
        ck_assert(t->has_nan ? isnan(x) : x == 0);
    }
}
END_TEST

/* Patterns that the papers give, so that the table above is not the only witness. */
START_TEST(known_patterns)
{
    ck_assert_uint_eq(nearest(DQ_FLOAT16, 1.0f, false), 0x3c00);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E4M3FN, 448.0f, false), 0x7e);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E4M3FN, NAN, false), 0x7f);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E4M3FN, -NAN, false), 0xff);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E4M3FNUZ, 240.0f, false), 0x7f);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E4M3FNUZ, NAN, true), 0x80);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E5M2, INFINITY, false), 0x7c);
    ck_assert_uint_eq(nearest(DQ_FLOAT8E5M2FNUZ, 57344.0f, false), 0x7f);
    ck_assert_uint_eq(nearest(DQ_FLOAT4E2M1, -6.0f, false), 0xf);
    ck_assert_uint_eq(nearest(DQ_FLOAT6E2M3, 7.5f, false), 0x1f);
    ck_assert_uint_eq(nearest(DQ_FLOAT6E3M2, 28.0f, false), 0x1f);
    ck_assert_uint_eq(nearest(DQ_FLOAT, -0.0f, false), 0x80000000u);
}
END_TEST

START_TEST(bfloat16)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float x = dq_decode_float(DQ_BFLOAT16, bits);
        if (isnan(x)) {
            ck_assert(isnan(dq_bf16_to_f32(dq_f32_to_bf16(x))));
            continue;
        }
        ck_assert_uint_eq(dq_f32_to_bf16(x), bits);
        if ((bits & 0x7fff) >= 0x7f7f)
            continue;
        float next = dq_bf16_to_f32((uint16_t)(bits + 1));
        float half = (float)(((double)x + (double)next) / 2);
        ck_assert_uint_eq(dq_f32_to_bf16(half), bits & 1 ? bits + 1 : bits);
        ck_assert_uint_eq(dq_f32_to_bf16(nextafterf(half, x)), bits);
        ck_assert_uint_eq(dq_f32_to_bf16(nextafterf(half, next)), bits + 1);
    }
    ck_assert_uint_eq(dq_f32_to_bf16(FLT_MAX), 0x7f80);
    union {
        uint32_t u;
        float f;
    } low = {.u = 0x7f800001u}; /* a NaN that truncation would turn into infinity */
    ck_assert(isnan(dq_bf16_to_f32(dq_f32_to_bf16(low.f))));
}
END_TEST

START_TEST(powers_of_two)
{
    for (uint32_t bits = 0; bits < 0xff; bits++) {
        float x = dq_decode_float(DQ_FLOAT8E8M0, bits);
        ck_assert_double_eq((double)x, ldexp(1, (int)bits - 127));
        for (int round = DQ_ROUND_UP; round <= DQ_ROUND_NEAREST; round++)
            ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, x, false, (dq_round)round), bits);
        if (bits == 0xfe)
            continue;
        float half = (float)(1.5 * (double)x), below = nextafterf(half, 0), above = nextafterf(x, INFINITY);
        ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, half, false, DQ_ROUND_NEAREST), bits + 1);
        ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, below, false, DQ_ROUND_NEAREST), bits);
        ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, above, false, DQ_ROUND_UP), bits + 1);
        ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, half, false, DQ_ROUND_DOWN), bits);
    }
    ck_assert(isnan(dq_decode_float(DQ_FLOAT8E8M0, 0xff)));
}
END_TEST

START_TEST(powers_of_two_out_of_range)
{
    static const float over[] = {INFINITY, FLT_MAX, 0x1.000002p127f}, under[] = {0, 0x1p-128f, 0x1p-149f};
    for (int round = DQ_ROUND_UP; round <= DQ_ROUND_NEAREST; round++) {
        for (size_t i = 0; i < 3; i++) {
            ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, over[i], true, (dq_round)round), 0xfe);
            ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, over[i], false, (dq_round)round), 0xff);
            ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, under[i], true, (dq_round)round), 0);
            ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, under[i], false, (dq_round)round), 0xff);
        }
        ck_assert_uint_eq(dq_encode_float(DQ_FLOAT8E8M0, NAN, true, (dq_round)round), 0xff);
    }
}
END_TEST

/* A double beside a half of the narrow type, too near for a float to see. */
START_TEST(round_to_odd_keeps_one_rounding)
{
    for (size_t i = 0; i < TYPES; i++) {
        const type *t = &types[i];
        uint32_t largest = largest_code(t);
        for (uint32_t code = 0; code < largest; code++) {
            double half = (value_of(t, code) + value_of(t, code + 1)) / 2;
            uint32_t up = nearest(t->dtype, dq_round_to_odd(nextafter(half, (double)INFINITY)), false);
            uint32_t down = nearest(t->dtype, dq_round_to_odd(nextafter(half, 0)), false);
            uint32_t tie = nearest(t->dtype, dq_round_to_odd(half), false);
            ck_assert_uint_eq(up, code + 1);
            ck_assert_uint_eq(down, code);
            ck_assert_uint_eq(tie, code & 1 ? code + 1 : code);
        }
    }
}
END_TEST

START_TEST(round_to_odd_at_the_ends)
{
    ck_assert(same(dq_round_to_odd(1.5), 1.5f));
    ck_assert(same(dq_round_to_odd(-0.0), -0.0f));
    ck_assert(same(dq_round_to_odd(1e300), FLT_MAX));
    ck_assert(same(dq_round_to_odd(-1e300), -FLT_MAX));
    ck_assert(same(dq_round_to_odd(1e-300), 0x1p-149f));
    ck_assert(same(dq_round_to_odd(-1e-300), -0x1p-149f));
    ck_assert(isinf(dq_round_to_odd((double)INFINITY)));
    ck_assert(isnan(dq_round_to_odd((double)NAN)));
    ck_assert(same(dq_round_to_odd(1 + 0x1p-50), nextafterf(1, 2)));
    ck_assert(same(dq_round_to_odd(-2 + 0x1p-50), -nextafterf(2, 1)));
}
END_TEST

/* Rows give what single numbers do: every pattern, and floats of all sizes. */
START_TEST(rows)
{
    enum { PATTERNS = 256, FLOATS = 4096 };
    static const dq_dtype dtypes[] = {DQ_FLOAT8E4M3FN, DQ_FLOAT8E4M3FNUZ, DQ_FLOAT8E5M2, DQ_FLOAT8E5M2FNUZ};
    dq_dtype dtype = dtypes[_i];
    uint8_t bytes[PATTERNS], codes[FLOATS];
    uint16_t halves[FLOATS];
    float values[PATTERNS], x[FLOATS];
    ck_assert(dq_codec_has_rows(dtype));
    for (uint32_t i = 0; i < PATTERNS; i++)
        bytes[i] = (uint8_t)i;
    dq_decode_bytes(dtype, bytes, PATTERNS, values);
    for (uint32_t i = 0; i < PATTERNS; i++) {
        float expected = dq_decode_float(dtype, i);
        ck_assert_msg(memcmp(&values[i], &expected, sizeof expected) == 0, "%#x gives %g, expected %g", i,
                      (double)values[i], (double)expected);
    }
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
        for (size_t i = 0; i < FLOATS; i++, bits += 5003) {
            uint32_t b = (uint32_t)bits;
            memcpy(&x[i], &b, sizeof b);
        }
        for (uint32_t i = 0; i < 64; i++) { /* and those near the type's own numbers, and halves of them */
            float near = values[(i * 37 + bits / 5003) % PATTERNS] * (1 + 0.0625f * (float)(i % 3));
            x[i * 64] = i % 5 ? near : nextafterf(near, 0);
        }
        for (int saturate = 0; saturate < 2; saturate++) {
            dq_encode_bytes(dtype, x, FLOATS, saturate, codes);
            for (size_t i = 0; i < FLOATS; i++)
                ck_assert_uint_eq(codes[i], dq_encode_float(dtype, x[i], saturate, DQ_ROUND_NEAREST));
        }
        dq_encode_bf16(x, FLOATS, halves);
        for (size_t i = 0; i < FLOATS; i++)
            ck_assert_uint_eq(halves[i], dq_f32_to_bf16(x[i]));
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("codec", NULL, NULL);
    add_loop_test(&tests, decodes_every_pattern, 0, TYPES);
    add_loop_test(&tests, round_trips_every_pattern, 0, TYPES);
    add_loop_test(&tests, halves_and_their_neighbours, 0, TYPES);
    add_loop_test(&tests, overflow, 0, TYPES);
    add_loop_test(&tests, zeros_and_nan, 0, TYPES);
    add_loop_test(&tests, rows, 0, 4);
    add_test(&tests, known_patterns);
    add_test(&tests, bfloat16);
    add_test(&tests, powers_of_two);
    add_test(&tests, powers_of_two_out_of_range);
    add_test(&tests, round_to_odd_keeps_one_rounding);
    add_test(&tests, round_to_odd_at_the_ends);
    return test_program_run(&tests);
}
