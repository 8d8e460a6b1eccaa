/* SPDX-License-Identifier: Apache-2.0 */
/* Shared kernels of the exponential and logarithm functions. */
#ifndef DQ_BASE_EXP_LOG_H
#define DQ_BASE_EXP_LOG_H

#include "base/math/double_double.h"
#include "math_tables.h"

/* v * 2^k, for |k| <= 2000 and v between 2^-2 and 2^2. Rounded once, except for denormal results. */
static inline double scaled(double v, int k)
{
    if (k >= -1021 && k <= 1022)
        return v * power_of_two(k);
    int half = k / 2;
    return v * power_of_two(half) * power_of_two(k - half);
}

/* e^(h + l) as the result times 2^*k, for |h| < 800. The result is between 1/2 and 2 and accurate to 2^-60. h
 * + l = (128 k + j) (ln 2)/128 + r; 2^(j/128) comes from a table, and e^r from a Taylor polynomial. */
static inline dd exp_parts(double h, double l, int *k)
{
    static const double c[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720};
    int32_t n;
    double whole = nearest(h * INVERSE_LN2_128, &n);
    dd r = two_sum(h - whole * LN2_128_HIGH, l - whole * LN2_128_LOW);
    const double *power = exp_table[n & 127];
    double p = r.high + (r.low + r.high * r.high * POLYNOMIAL(r.high, c));
    *k = (n - (n & 127)) / 128;
    return fast_two_sum(power[0], power[1] + power[0] * p);
}

/* e^x as the result times 2^*k, rounded; for |x| < 800. */
static inline double exp_rounded(double x, int *k)
{
    int32_t n;
    double whole = nearest(x * INVERSE_LN2_128, &n);
    double r = (x - whole * LN2_128_HIGH) - whole * LN2_128_LOW, s = r * r;
    const double *power = exp_table[n & 127];
    double p = r + (s * (1.0 / 2 + r * (1.0 / 6)) + s * s * (1.0 / 24 + r * (1.0 / 120)));
    *k = (n - (n & 127)) / 128;
    return power[0] + (power[1] + power[0] * p);
}

/* e^x, accurate to 2^-50, for |x| < 700. */
static inline double exp_near(double x)
{
    int32_t n;
    double whole = nearest(x * INVERSE_LN2_128, &n);
    double r = (x - whole * LN2_128_HIGH) - whole * LN2_128_LOW, s = r * r;
    double power = double_of(bits_of(exp_table[n & 127][0]) + ((uint64_t)(int64_t)(n >> 7) << 52));
    return power + power * (r + s * (1.0 / 2 + r * (1.0 / 6) + s * (1.0 / 24)));
}

/* Returns z between sqrt(1/2) and sqrt(2) with x = 2^*e z, for positive normal x. */
static inline double mantissa_of(double x, int *e)
{
    uint64_t bits = bits_of(x), from = bits - 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
    *e = (int)((int64_t)from >> 52);
    return double_of(bits - (from & 0xfff0000000000000));
}

/* log((h + l) 2^more), for positive normal h, with a relative error of 2^-66. z is h without its power of
 * two, and c a short number near 1/z, so that z c - 1 is exact in two parts. log z = -log c + log(1 + (z c -
 * 1)). Near 1, c is 1. */
static inline dd log_parts(double h, double l, int more)
{
    static const double c[] = {1.0 / 3, -1.0 / 4, 1.0 / 5, -1.0 / 6, 1.0 / 7, -1.0 / 8};
    int e;
    double z = mantissa_of(h, &e), z_high = double_of(bits_of(z) & 0xfffffffff8000000);
    if (l != 0)
        l = l / h * z; /* At the scale of z; z / h is a power of two. */
    const double *row = log_table[(int)(z * 128 + 0.5) - 90];
    dd r = fast_two_sum(z_high * row[0] - 1, (z - z_high) * row[0]);
    r = two_sum(r.high, r.low + l * row[0]);
    dd square = two_product(r.high, r.high);
    double tail = r.high * square.high * POLYNOMIAL(r.high, c);
    double whole = (double)(e + more);
    dd sum = fast_two_sum(whole * LN2_HIGH + row[1], r.high);
    double low = sum.low + (whole * LN2_LOW + row[2] + r.low);
    sum = two_sum(sum.high, -0.5 * square.high);
    low += sum.low - (0.5 * square.low + r.high * r.low);
    return fast_two_sum(sum.high, low + tail);
}

/* log(x 2^more), for positive normal x, by the same method, rounded. */
static inline double log_rounded(double x, int more)
{
    int e;
    double z = mantissa_of(x, &e), z_high = double_of(bits_of(z) & 0xfffffffff8000000);
    const double *row = log_table[(int)(z * 128 + 0.5) - 90];
    dd r = fast_two_sum(z_high * row[0] - 1, (z - z_high) * row[0]);
    double s = r.high * r.high, whole = (double)(e + more);
    double tail = r.high * s *
                  ((1.0 / 3 - r.high * (1.0 / 4)) +
                   s * ((1.0 / 5 - r.high * (1.0 / 6)) + s * (1.0 / 7 - r.high * (1.0 / 8))));
    dd sum = fast_two_sum(whole * LN2_HIGH + row[1], r.high);
    return sum.high + (sum.low + (whole * LN2_LOW + row[2] + r.low) + (tail - 0.5 * s));
}

/* log(1 + r) - r, for |r| < 2^-7, accurate to about 2^-52 of r. */
static inline double log_tail(double r)
{
    double s = r * r;
    return s * (-1.0 / 2 + r * (1.0 / 3) + s * ((-1.0 / 4 + r * (1.0 / 5)) + s * (-1.0 / 6 + r * (1.0 / 7))));
}

/* log(x), for positive normal x, with a relative error of about 2^-50. */
static inline double log_near(double x)
{
    int e;
    double z = mantissa_of(x, &e), z_high = double_of(bits_of(z) & 0xfffffffff8000000);
    const double *row = log_table[(int)(z * 128 + 0.5) - 90];
    double r = (z_high * row[0] - 1) + (z - z_high) * row[0], whole = (double)e;
    return whole * LN2_HIGH + row[1] + (r + (whole * LN2_LOW + row[2] + log_tail(r)));
}

#endif
