/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/weight_only/weight_digits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int32_t bits_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(int32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static float power_of_two(int exponent)
{
    return float_of((exponent + 127) << 23);
}

/* The bits of |x|, which order as the magnitudes do. */
static int32_t size_of(float x)
{
    return bits_of(x) & INT32_MAX;
}

/* The nearest integer, at most 2^22 in magnitude: the low mantissa bits of x + 1.5 · 2^23, whose unit in the
 * last place is 1. */
static int32_t nearest(float x)
{
    const float no_fraction = 0x1.8p23f;
    return bits_of(x + no_fraction) - bits_of(no_fraction);
}

static int32_t largest_of(const float *x, size_t n)
{
    int32_t most = 0;
    for (size_t i = 0; i < n; i++)
        most = size_of(x[i]) > most ? size_of(x[i]) : most;
    return most;
}

/* Converts x to integers times *factor, a power of two. `most` holds the bits of the largest magnitude, which
 * becomes at least DQ_NBITS_MAX / 2. False if the factor would leave the range of floats. */
static bool to_integers(const float *x, size_t n, int32_t most, int32_t *out, float *factor)
{
    *factor = 0;
    if (most == 0)
        return true;
    if (most < bits_of(0x1p-90f) || most > bits_of(0x1p90f))
        return false;
    int up = 21 - ((most >> 23) - 127);
    const float by = power_of_two(up);
    for (size_t i = 0; i < n; i++)
        out[i] = nearest(x[i] * by);
    *factor = power_of_two(-up);
    return true;
}

static int32_t sum_of(const int32_t *x, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum;
}

/* Writes each integer as three int8 digits. Adding 0x80 to each byte first makes digits of -128 … 127 without
 * borrows between them; the exclusive or removes it again. */
static void put_bytes(const int32_t *x, size_t n, size_t parts, int8_t *out)
{
    const uint32_t middle = 0x808080;
    for (const int32_t *end = x + n; x < end; x += 4 * parts)
        for (size_t t = 0; t < parts; t++, out += 4 * DQ_NBITS_DIGITS) {
            uint32_t lines[DQ_NBITS_DIGITS] = {0};
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++) {
                uint32_t bytes = ((uint32_t)x[t + parts * i] + middle) ^ middle;
#pragma GCC unroll 3
                for (size_t e = 0; e < DQ_NBITS_DIGITS; e++)
                    lines[e] |= (bytes >> 8 * e & 255) << 8 * i;
            }
            for (size_t i = 0; i < 4 * DQ_NBITS_DIGITS; i++)
                out[i] = (int8_t)(lines[i / 4] >> i % 4 * 8);
        }
}

/* Writes each integer as two int16 digits, for 8-bit weights. */
static void put_s16(const int32_t *x, size_t n, int8_t *out)
{
    enum { HIGH = 2048 };
    for (const int32_t *end = x + n; x < end; x += 4)
        for (size_t t = 0; t < 2; t++, out += 8) {
            int16_t digits[4];
            for (size_t i = 0; i < 2; i++) {
                int32_t value = x[t + 2 * i], low = ((value + HIGH / 2) & (HIGH - 1)) - HIGH / 2;
                digits[i] = (int16_t)low;
                digits[2 + i] = (int16_t)((value - low) / HIGH);
            }
            memcpy(out, digits, sizeof digits);
        }
}

static void put_digits(const int32_t *x, size_t n, size_t fields, int32_t *sum, int8_t *out)
{
    *sum = sum_of(x, n);
    if (fields == 4)
        put_s16(x, n, out);
    else
        put_bytes(x, n, fields / 4, out);
}

/* Whether rounding to integers is accurate enough for the smaller values of x, those up to a quarter of the
 * largest. They alone make the result if the weights of the larger values are 0. */
static bool close_to(const float *x, size_t n, int32_t most, const int32_t *integers, float factor)
{
    const int32_t small = size_of(float_of(most) / 4);
    int32_t beyond = 0; /* rounding changes each by at most 1/2, so an average above 2^17 + 1 is enough */
    float error = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        beyond += (abs(integers[i]) - (1 << 17) - 1) & -(int32_t)(size_of(x[i]) <= small);
    if (beyond >= 0)
        return true;
    for (size_t i = 0; i < n; i++)
        if (size_of(x[i]) <= small) {
            error += fabsf(x[i] - (float)integers[i] * factor);
            sum += fabsf(x[i]);
        }
    return error <= 0x1p-18f * sum;
}

static void divide(const float *x, size_t n, int32_t most, float *larger, float *smaller)
{
    const int32_t small = size_of(float_of(most) / 4);
    for (size_t i = 0; i < n; i++) {
        larger[i] = size_of(x[i]) <= small ? 0 : x[i];
        smaller[i] = size_of(x[i]) <= small ? x[i] : 0;
    }
}

/* Converts a piece of n values; returns the number of its parts, or 0 if it fails. */
static size_t make_piece(const float *x, size_t n, size_t fields, dq_weight_digits to)
{
    int32_t integers[DQ_NBITS_PIECE] = {0}, most = largest_of(x, n);
    float part[DQ_WEIGHT_PARTS][DQ_NBITS_PIECE];
    if (!to_integers(x, n, most, integers, to.factors))
        return 0;
    if (close_to(x, n, most, integers, *to.factors)) {
        put_digits(integers, n, fields, to.totals, to.digits);
        return 1;
    }
    divide(x, n, most, part[0], part[1]);
    for (size_t i = 0; i < DQ_WEIGHT_PARTS; i++) {
        most = largest_of(part[i], n);
        if (!to_integers(part[i], n, most, integers, to.factors + i) ||
            (i == 1 && !close_to(part[i], n, most, integers, to.factors[i])))
            return 0;
        put_digits(integers, n, fields, to.totals + i,
                   to.digits + i * n / fields * DQ_NBITS_DIGIT_BYTES(32 / fields));
    }
    return DQ_WEIGHT_PARTS;
}

bool dq_weight_digits_make(const dq_weight_row *row, dq_weight_digits to)
{
    const size_t fields = row->fields;
    const float *x = row->x;
    for (size_t g = 0; g < row->blocks; g++)
        for (size_t left = row->lengths[g], n, parts; left; left -= n) {
            n = left < DQ_NBITS_PIECE / fields ? left : DQ_NBITS_PIECE / fields;
            parts = make_piece(x, n * fields, fields, to);
            if (parts == 0)
                return false;
            for (size_t i = 0; i + 1 < parts; i++)
                to.factors[i] = -to.factors[i];
            to.factors += parts;
            to.totals += parts;
            to.digits += parts * n * DQ_NBITS_DIGIT_BYTES(32 / fields);
            x += n * fields;
        }
    return true;
}

/* ---- Rounded to 8 bits --------------------------------------------------------------------------------- */

bool dq_weight_digits_round(const dq_kernels *kernels, const dq_weight_row *row, size_t rows, int32_t zero,
                            dq_weight_digits to)
{
    const size_t bytes = DQ_NBITS_ROUNDED_BYTES(32 / row->fields);
    const float *x = row->x;
    bool all = true;
    for (size_t g = 0; g < row->blocks; g++) {
        const size_t words = row->lengths[g], most = DQ_NBITS_PIECE / row->fields;
        const size_t lines = (words + most - 1) / most * rows;
        const dq_nbits_block block = {.x = x,
                                      .words = words,
                                      .rows = rows,
                                      .bits = (unsigned)(32 / row->fields),
                                      .digits = to.digits,
                                      .factors = to.factors,
                                      .sums = to.sums};
        all &= kernels->nbits_round_s8(&block);
        for (size_t i = 0; i < lines; i += rows)
            to.starts[i] = -zero * (int32_t)to.sums[i];
        to.factors += lines;
        to.sums += lines;
        to.starts += lines;
        to.digits += bytes * lines;
        x += row->fields * words;
    }
    return all;
}
