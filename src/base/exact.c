/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exact.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* An expansion: doubles whose exact sum is the value, from the smallest to the largest. Each is less than the
 * last bit of the next non-zero one (Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997). Nothing
 * here overflows, and the lowest bits of products stay above 2^-700: floats are between 2^-149 and 2^128. */
typedef struct expansion {
    double part[8];
    int n;
} expansion;

static void add(expansion *x, double term)
{
    for (int i = 0; i < x->n; i++) {
        double sum = term + x->part[i], of_part = sum - term;
        x->part[i] = (term - (sum - of_part)) + (x->part[i] - of_part); /* The rounding error of the sum. */
        term = sum;
    }
    x->part[x->n++] = term;
}

static void add_product(expansion *x, double a, double b)
{
    double product = a * b;
    add(x, fma(a, b, -product));
    add(x, product);
}

/* sum * a * b + c - q * y in double. Its sign is exact, because the largest part exceeds the sum of all
 * others. */
static double rest_of(double sum, double a, double b, double c, double q, double y)
{
    double ab = a * b, value = 0;
    expansion x = {.n = 0};
    add_product(&x, sum, fma(a, b, -ab));
    add_product(&x, sum, ab);
    add(&x, c);
    add_product(&x, -q, y);
    for (int i = 0; i < x.n; i++)
        value += x.part[i];
    return value;
}

/* Whether sum * (a * b) / y, computed as q, is exact. Most ties are. */
static bool is_exact(double sum, double a, double b, double q, double y)
{
    double ab = a * b, top = sum * ab;
    return fma(q, y, -top) == 0 && fma(sum, ab, -top) == 0 && fma(a, b, -ab) == 0;
}

static bool is_odd(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 1;
}

/* Each iteration reduces the error by 2^-50, down to half a unit in the last place. Terms that cancel leave
 * at least 2^-110 of themselves: they are multiples of a unit of that relative size. */
double dq_exact_quotient(double sum, double a, double b, double c, double y)
{
    enum { STEPS = 4 };
    double q = (sum * (a * b) + c) / y;
    if (!isfinite(sum) || !isfinite(a) || !isfinite(b) || !isfinite(c) || !isfinite(y) || y == 0)
        return q;
    if (c == 0 && is_exact(sum, a, b, q, y))
        return q;
    for (int i = 0;; i++) {
        double rest = rest_of(sum, a, b, c, q, y) / y;
        if (rest == 0)
            return q;
        if (i == STEPS || q + rest == q)
            return is_odd(q) ? q : nextafter(q, rest > 0 ? (double)INFINITY : -(double)INFINITY);
        q += rest;
    }
}
