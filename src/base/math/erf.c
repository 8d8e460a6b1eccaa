/* SPDX-License-Identifier: Apache-2.0 */
/* The error function. */
#include "base/math.h"
#include "base/math/double_double.h"

#include "math_tables.h"

/* Maclaurin series for x^2 < 1/16: erf(x) = 2/sqrt(pi) (x - x^3/3 + x^5/(2! 5) - x^7/(3! 7) …). */
static double erf_near_zero(double x)
{
    static const double c[] = {-1.0 / 3,   1.0 / 10,     -1.0 / 42,     1.0 / 216,       -1.0 / 1320,
                               1.0 / 9360, -1.0 / 75600, 1.0 / 685440., -1.0 / 6894720., 1.0 / 76204800.};
    double s = x * x, tail = x * s * POLYNOMIAL(s, c);
    dd product = two_product(x, ERF_FACTOR_HIGH);
    return product.high + (product.low + (x * ERF_FACTOR_LOW + tail * ERF_FACTOR_HIGH));
}

/* Taylor series around the nearest j/16. The derivative g = 2/sqrt(pi) e^(-x^2) has the coefficients g_0 = g,
 * g_(n+1) = -2 (x g_n + g_(n-1)) / (n + 1). */
double dq_erf(double x)
{
    static const double part[] = {1,       1.0 / 2, 1.0 / 3, 1.0 / 4,  1.0 / 5,  1.0 / 6,
                                  1.0 / 7, 1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12};
    enum { TERMS = sizeof part / sizeof *part };
    double a = fabs(x), g[TERMS];
    int32_t j;
    if (!(a >= 0.25))
        return a < 0x1p-1000 ? x * ERF_FACTOR_HIGH : isnan(x) ? x : erf_near_zero(x);
    if (a > 5.93)
        return copysign(1, x);
    double centre = nearest(16 * a, &j) / 16, h = a - centre;
    g[0] = 1;
    g[1] = -2 * centre;
    for (int n = 1; n + 1 < TERMS; n++)
        g[n + 1] = -2 * (centre * g[n] + g[n - 1]) * part[n];
    double sum = 0;
    for (int n = TERMS - 1; n > 0; n--)
        sum = (sum + g[n] * part[n]) * h;
    sum = h * erf_table[j][2] + h * erf_table[j][2] * sum;
    return copysign(erf_table[j][0] + (erf_table[j][1] + sum), x);
}
