#include "ops/weight_only/weight_digits.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x as integers times *factor, a power of two: the largest at least 2^22 and no more than three digits can
 * say. False when that would leave the range of floats. */
static bool to_integers(const float *x, size_t n, int32_t *out, float *factor)
{
    enum {
        FRACTION = 23,
        BIAS = 127,
        LARGEST = 0x7efefe /* fraction of the largest that three digits say */
    };
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = bits_of(x[i]) & 0x7fffffff;
        most = size > most ? size : most;
    }
    *factor = 0;
    memset(out, 0, n * sizeof *out);
    if (most == 0)
        return true;
    if (most < bits_of(0x1p-90f) || most > bits_of(0x1p90f))
        return false;
    int up = 22 - ((int)(most >> FRACTION) - BIAS) - ((most & 0x7fffff) > LARGEST);
    float by = ldexpf(1, up);
    for (size_t i = 0; i < n; i++) {
        float scaled = x[i] * by;
        out[i] = (int32_t)(scaled + (scaled < 0 ? -0.5f : 0.5f));
    }
    *factor = ldexpf(1, -up);
    return true;
}

static void put_digits(const int32_t *x, size_t n, size_t in_byte, float *sums, int8_t *out)
{
    int32_t all[DQ_NBITS_DIGITS] = {0};
    for (const int32_t *end = x + n; x < end; x += 4 * in_byte)
        for (size_t t = 0; t < in_byte; t++, out += 4 * DQ_NBITS_DIGITS)
            for (size_t i = 0; i < 4; i++) {
                int32_t value = x[t + in_byte * i];
                for (size_t e = 0; e < DQ_NBITS_DIGITS; e++) {
                    int32_t digit = ((value + 128) & 255) - 128;
                    out[4 * e + i] = (int8_t)digit;
                    all[e] += digit;
                    value = (value - digit) / 256;
                }
            }
    for (size_t e = 0; e < DQ_NBITS_DIGITS; e++)
        sums[e] = (float)all[e];
}

static float quarter_of_largest(const float *x, size_t n)
{
    float most = 0;
    for (size_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most / 4;
}

/* Whether rounding to integers took little of the smaller values of x: where the weights of the larger ones
 * are 0, the result is theirs. */
static bool close_to(const float *x, size_t n, const int32_t *integers, float factor)
{
    float quarter = quarter_of_largest(x, n), error = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) <= quarter) {
            error += fabsf(x[i] - (float)integers[i] * factor);
            sum += fabsf(x[i]);
        }
    return error <= 0x1p-18f * sum;
}

static void divide(const float *x, size_t n, float *larger, float *smaller)
{
    float quarter = quarter_of_largest(x, n);
    for (size_t i = 0; i < n; i++) {
        bool small = fabsf(x[i]) <= quarter;
        larger[i] = small ? 0 : x[i];
        smaller[i] = small ? x[i] : 0;
    }
}

/* A piece: the number of its parts, or 0. */
static size_t make_piece(const float *x, size_t n, size_t in_byte, float *factors, float *sums,
                         int8_t *digits)
{
    int32_t integers[DQ_NBITS_PIECE];
    float part[DQ_WEIGHT_PARTS][DQ_NBITS_PIECE];
    if (!to_integers(x, n, integers, factors))
        return 0;
    if (close_to(x, n, integers, *factors)) {
        put_digits(integers, n, in_byte, sums, digits);
        return 1;
    }
    divide(x, n, part[0], part[1]);
    for (size_t i = 0; i < DQ_WEIGHT_PARTS; i++) {
        if (!to_integers(part[i], n, integers, factors + i) ||
            (i == 1 && !close_to(part[i], n, integers, factors[i])))
            return 0;
        put_digits(integers, n, in_byte, sums + i * DQ_NBITS_DIGITS, digits + i * n * DQ_NBITS_DIGITS);
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
            parts = make_piece(x, n * fields, fields / 4, to.factors, to.sums, to.digits);
            if (parts == 0)
                return false;
            for (size_t i = 0; i + 1 < parts; i++)
                to.factors[i] = -to.factors[i];
            to.factors += parts;
            to.sums += parts * DQ_NBITS_DIGITS;
            to.digits += parts * n * fields * DQ_NBITS_DIGITS;
            x += n * fields;
        }
    return true;
}

/* ---- Rounded to 8 bits --------------------------------------------------------------------------------- */

/* Codes of 4 bits stand two in a byte: digits for the lower ones of a word, then those for the upper ones. */
static void put_rounded(const int8_t *q, size_t words, size_t rows, int8_t *out)
{
    for (; words > 0; words--, q += 8)
        for (size_t t = 0; t < 2; t++, out += 4 * rows)
            for (size_t i = 0; i < 4; i++)
                out[i] = q[t + 2 * i];
}

static float factor_of(const dq_kernels *kernels, const float *x, size_t n)
{
    float low = 0, high = 0;
    kernels->minmax_f32(x, n, &low, &high);
    float factor = (high > -low ? high : -low) / 127;
    return factor == 0 ? 1 : factor;
}

bool dq_weight_digits_round(const dq_kernels *kernels, const dq_weight_row *row, size_t rows,
                            dq_weight_digits to)
{
    enum { MOST = DQ_NBITS_PIECE / 8 };
    const float *x = row->x;
    bool all = true;
    for (size_t g = 0; g < row->blocks; g++) {
        float factor = factor_of(kernels, x, 8 * row->lengths[g]);
        for (size_t left = row->lengths[g], n; left; left -= n) {
            int8_t q[DQ_NBITS_PIECE];
            int32_t sum = 0;
            n = left < MOST ? left : MOST;
            kernels->quantize_f32_s8(x, 8 * n, &factor, NULL, 0, q);
            for (size_t i = 0; i < 8 * n; i++) {
                sum += q[i];
                all &= q[i] > INT8_MIN;
            }
            put_rounded(q, n, rows, to.digits);
            *to.factors = factor;
            *to.sums = (float)sum;
            to.factors += rows;
            to.sums += rows;
            to.digits += 8 * n * rows;
            x += 8 * n;
        }
    }
    return all;
}
