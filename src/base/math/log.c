/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms, powers and inverse hyperbolic functions. */
#include "base/math.h"
#include "base/math/exp_log.h"

#define LEAST_NORMAL 0x1p-1022

/* log(x), for 0 < x < infinity. */
static dd log_of(double x)
{
    return x < LEAST_NORMAL ? log_parts(x * 0x1p54, 0, -54) : log_parts(x, 0, 0);
}

double dq_log(double x)
{
    if (!(x > 0 && x < INFINITE))
        return x == 0 ? -INFINITE : x < 0 ? NOT_A_NUMBER : x;
    int more = x < LEAST_NORMAL ? -54 : 0;
    return log_rounded(more ? x * 0x1p54 : x, more);
}

double dq_log1p(double x)
{
    if (fabs(x) < 0x1p-54)
        return x;
    if (!(x > -1 && x < INFINITE))
        return x == -1 ? -INFINITE : x < -1 ? NOT_A_NUMBER : x;
    dd sum = two_sum(1, x);
    return dd_round(log_parts(sum.high, sum.low, 0));
}

/* |x|^y = e^(y log |x|), with both factors as double-doubles. `sign` is the sign of the result. */
static double power_of(double x, double y, double sign)
{
    dd log = log_of(fabs(x)), product;
    int k;
    if (fabs(y) > 0x1p65) /* x is not 1. */
        y = copysign(0x1p65, y);
    product = two_product(log.high, y);
    product = fast_two_sum(product.high, product.low + log.low * y);
    if (product.high > 750)
        return sign * INFINITE;
    if (product.high < -750)
        return sign * 0;
    double result = dd_round(exp_parts(product.high, product.low, &k));
    return sign * scaled(result, k);
}

double dq_pow(double x, double y)
{
    bool odd, whole;
    if (y == 0 || x == 1)
        return 1;
    if (isnan(x) || isnan(y))
        return x + y;
    whole = is_whole(y, &odd);
    if (isinf(y))
        return fabs(x) == 1 ? 1 : (fabs(x) > 1) == (y > 0) ? INFINITE : 0;
    if (x == 0 || isinf(x)) {
        double size = (x == 0) == (y < 0) ? INFINITE : 0;
        return odd ? copysign(size, x) : size;
    }
    if (x < 0 && !whole)
        return NOT_A_NUMBER;
    if (x == -1)
        return odd ? -1 : 1;
    return power_of(x, y, x < 0 && odd ? -1 : 1);
}

/* log(x + sqrt(x^2 + 1)), for x > 0. */
double dq_asinh(double x)
{
    double a = fabs(x);
    if (!(a >= 0x1p-28 && a < INFINITE))
        return x;
    if (a > 0x1p28)
        return copysign(dd_round(log_parts(a, 0, 1)), x);
    dd sum = dd_add(dd_root(dd_add(two_product(a, a), (dd){1, 0})), (dd){a, 0});
    return copysign(dd_round(log_parts(sum.high, sum.low, 0)), x);
}

/* log(x + sqrt((x - 1) (x + 1))). */
double dq_acosh(double x)
{
    if (!(x > 1 && x < INFINITE))
        return x == 1 ? 0 : x < 1 ? NOT_A_NUMBER : x;
    if (x > 0x1p28)
        return dd_round(log_parts(x, 0, 1));
    dd square = dd_multiply(two_sum(x, -1), two_sum(x, 1));
    dd sum = dd_add((dd){x, 0}, dd_root(square));
    return dd_round(log_parts(sum.high, sum.low, 0));
}

/* log((1 + x) / (1 - x)) / 2. */
double dq_atanh(double x)
{
    double a = fabs(x);
    if (!(a >= 0x1p-28))
        return x;
    if (a >= 1)
        return a > 1 ? NOT_A_NUMBER : copysign(INFINITE, x);
    dd ratio = dd_add(dd_divide((dd){2 * a, 0}, two_sum(1, -a)), (dd){1, 0});
    return copysign(0.5 * dd_round(log_parts(ratio.high, ratio.low, 0)), x);
}
