/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials and hyperbolic functions. */
#include "base/math.h"
#include "base/math/exp_log.h"

double dq_exp(double x)
{
    if (!(fabs(x) < 750))
        return x > 0 ? INFINITE : x < 0 ? 0 : x;
    int k;
    double y = exp_rounded(x, &k);
    return scaled(y, k);
}

/* e^x - 1, for -40 < x < 100, with a relative error of about 2^-56. */
static dd expm1_parts(double x)
{
    static const double c[] = {1.0 / 6,          1.0 / 24,         1.0 / 120,         1.0 / 720,
                               1.0 / 5040,       1.0 / 40320,      1.0 / 362880,      1.0 / 3628800,
                               1.0 / 39916800.0, 1.0 / 479001600., 1.0 / 6227020800., 1.0 / 87178291200.};
    int k;
    if (fabs(x) < 0.35) {
        dd square = two_product(x, x), sum = fast_two_sum(x, 0.5 * square.high);
        double low = sum.low + (0.5 * square.low + x * square.high * POLYNOMIAL(x, c));
        return fast_two_sum(sum.high, low);
    }
    dd e = exp_parts(x, 0, &k);
    double power = power_of_two(k);
    dd sum = two_sum(power * e.high, -1);
    return fast_two_sum(sum.high, sum.low + power * e.low);
}

double dq_expm1(double x)
{
    if (fabs(x) < 0x1p-54)
        return x;
    if (!(x > -40 && x < 100))
        return x < 0 ? -1 : dq_exp(x);
    return dd_round(expm1_parts(x));
}

/* Computes e^a / 2, and e^-a / 2 in *inverse, which need not be accurate if e^a is much larger. Both are
 * scaled by 2^-*k. For a between 0 and 750. */
static dd half_exponentials(double a, int *k, dd *inverse)
{
    dd e = exp_parts(a, 0, k);
    double quotient = *k > 500 ? 0 : power_of_two(-2 * *k - 1) / e.high;
    *inverse = (dd){quotient, -quotient * (e.low / e.high)};
    return (dd){0.5 * e.high, 0.5 * e.low};
}

double dq_sinh(double x)
{
    static const double c[] = {
        1.0 / 6,           1.0 / 120,          1.0 / 5040,           1.0 / 362880,           1.0 / 39916800,
        1.0 / 6227020800., 1.0 / 1307674368e3, 1.0 / 355687428096e3, 1.0 / 121645100408832e3};
    double a = fabs(x), square = x * x;
    int k;
    if (a < 0x1p-28)
        return x;
    if (a < 1)
        return x + x * square * POLYNOMIAL(square, c);
    if (!(a < 750))
        return x * INFINITE;
    dd inverse, e = half_exponentials(a, &k, &inverse), sum = fast_two_sum(e.high, -inverse.high);
    return copysign(scaled(sum.high + (sum.low + (e.low - inverse.low)), k), x);
}

double dq_cosh(double x)
{
    int k;
    if (!(fabs(x) < 750))
        return fabs(x) * INFINITE;
    dd inverse, e = half_exponentials(fabs(x), &k, &inverse), sum = two_sum(e.high, inverse.high);
    return scaled(sum.high + (sum.low + (e.low + inverse.low)), k);
}

/* t / (t + 2), with t = e^(2 |x|) - 1. */
double dq_tanh(double x)
{
    double a = fabs(x);
    if (a < 0x1p-28)
        return x;
    if (!(a < 20))
        return a > 1 ? copysign(1, x) : x;
    dd t = expm1_parts(2 * a);
    return copysign(dd_round(dd_divide(t, dd_add(t, (dd){2, 0}))), x);
}
