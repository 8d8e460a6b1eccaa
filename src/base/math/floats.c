/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions of floats, computed in double without the extra precision that functions of doubles
 * need. */
#include "base/math.h"
#include "base/math/exp_log.h"
#include "base/math/trigonometry.h"

/* x^y for a float x > 0: 2^(y log2 x). The logarithm is a multiple of 1/128, as in the table of e^x. The
 * product of a float and c, a number of 12 bits, is exact. */
static inline double power_near(double x, double y)
{
    const double e1 = LN2_128_HIGH + LN2_128_LOW, e2 = e1 * e1 / 2, e3 = e1 * e1 * e1 / 6,
                 l1 = INVERSE_LN2_128;
    int e;
    int32_t n;
    double z = mantissa_of(x, &e);
    const double *row = log2_table[(int)(z * 128 + 0.5) - 90];
    double r = z * row[0] - 1, s = r * r;
    double log = r * ((l1 - r * (l1 / 2)) + s * ((l1 / 3 - r * (l1 / 4)) + s * (l1 / 5 - r * (l1 / 6))));
    double product = y * (((double)(e * 128) + row[1]) + log);
    product = product < -0x1p15 ? -0x1p15 : product > 0x1p15 ? 0x1p15 : product;
    double t = product - nearest(product, &n), power = exp_table[n & 127][0];
    power = double_of(bits_of(power) + ((uint64_t)(int64_t)(n >> 7) << 52));
    return power + power * (t * (e1 + t * (e2 + t * e3)));
}

/* x^y for x > 0 if x and y are not both finite. */
static __attribute__((noinline)) float special_power(float x, float y)
{
    bool odd;
    if (x == 0 || !isfinite(x) || !isfinite(y))
        return (float)dq_pow((double)x, (double)y);
    if (!is_whole((double)y, &odd))
        return NAN;
    float size = (float)power_near(-(double)x, (double)y);
    return odd ? -size : size;
}

float dq_powf(float x, float y)
{
    if (x > 0 && x < INFINITY && fabsf(y) < INFINITY)
        return (float)power_near((double)x, (double)y);
    return special_power(x, y);
}

/* Reduces finite x: x = n pi/2 + r, |r| <= pi/4. Returns n modulo 4. */
static int reduce_angle(double x, double *r)
{
    int32_t n;
    if (fabs(x) >= FAR_ANGLE) {
        dd rest;
        n = dq_reduce_far_angle(x, &rest);
        *r = rest.high;
        return n;
    }
    double whole = nearest(x * TWO_OVER_PI, &n);
    *r = (x - whole * HALF_PI_1) - whole * HALF_PI_REST;
    return n & 3;
}

static double sine_near(double r)
{
    static const double c[] = {-1.0 / 6,     1.0 / 120,       -1.0 / 5040,
                               1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.};
    double s = r * r;
    return r + r * s * POLYNOMIAL(s, c);
}

static double cosine_near(double r)
{
    static const double c[] = {1,           -1.0 / 2,       1.0 / 24,        -1.0 / 720,
                               1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200.};
    double s = r * r;
    return POLYNOMIAL(s, c);
}

/* The sine of `quarters` pi/2 + x. */
static float shifted_sine(float x, int quarters)
{
    double r;
    if (!isfinite(x))
        return NAN;
    int quarter = reduce_angle((double)x, &r) + quarters;
    double y = quarter & 1 ? cosine_near(r) : sine_near(r);
    return (float)(quarter & 2 ? -y : y);
}

float dq_sinf(float x)
{
    return x == 0 ? x : shifted_sine(x, 0);
}

float dq_cosf(float x)
{
    return shifted_sine(x, 1);
}

float dq_tanf(float x)
{
    double r;
    if (x == 0 || !isfinite(x))
        return x == 0 ? x : NAN;
    int quarter = reduce_angle((double)x, &r);
    double sine = sine_near(r), cosine = cosine_near(r);
    return (float)(quarter & 1 ? -cosine / sine : sine / cosine);
}

float dq_sinhf(float x)
{
    static const double c[] = {1.0 / 6,        1.0 / 120,         1.0 / 5040,        1.0 / 362880,
                               1.0 / 39916800, 1.0 / 6227020800., 1.0 / 1307674368e3};
    double a = (double)x, s = a * a;
    if (fabsf(x) < 1)
        return x == 0 ? x : (float)(a + a * s * POLYNOMIAL(s, c));
    if (!(fabsf(x) < 100))
        return x * INFINITY;
    double e = exp_near(fabs(a));
    return (float)copysign(0.5 * e - 0.5 / e, a);
}

float dq_coshf(float x)
{
    if (!(fabsf(x) < 100))
        return fabsf(x) * INFINITY;
    double e = exp_near(fabs((double)x));
    return (float)(0.5 * e + 0.5 / e);
}

/* log(1 + x), for x > -1. 1 + x is rounded, and the rounding error is added back. */
static double log1p_near(double x)
{
    double sum = 1 + x;
    return log_near(sum) + (x - (sum - 1)) / sum;
}

float dq_asinhf(float x)
{
    double a = fabs((double)x), s = a * a;
    if (!(a > 0 && a < INFINITE))
        return x;
    return (float)copysign(log1p_near(a + s / (1 + sqrt(1 + s))), (double)x);
}

float dq_acoshf(float x)
{
    double t = (double)x - 1;
    if (!(x > 1 && x < INFINITY))
        return x == 1 ? 0 : x < 1 ? NAN : x;
    return (float)log1p_near(t + sqrt(t * (t + 2)));
}

float dq_atanhf(float x)
{
    double a = fabs((double)x);
    if (!(a > 0 && a < 1))
        return a == 1 ? copysignf(INFINITY, x) : a > 1 ? NAN : x;
    return (float)copysign(0.5 * log1p_near(2 * a / (1 - a)), (double)x);
}
