/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exact.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Doubles whose sum is exact, from the smallest up, each below the last bit of the next one that is not 0
 * (Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997: an expansion). Nothing here overflows, and
 * the lowest bits of products stay above 2^-700: floats lie between 2^-149 and 2^128. */
typedef struct expansion {
    double part[8];
    int n;
} expansion;

static void add(expansion *x, double term)
{
    for (int i = 0; i < x->n; i++) {
        double sum = term + x->part[i], of_part = sum - term;
        x->part[i] = (term - (sum - of_part)) + (x->part[i] - of_part); /* what the sum lost */
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

/* sum * a * b + c - q * y, to double: its sign is exact, as the largest part is larger than all others. */
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

/* Whether sum * (a * b) / y, computed as q, lost nothing: so it is with most ties. */
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

/* Each step of the loop leaves 2^-50 of the error that the one before it left, but half a unit in the last
 * place. Terms that cancel leave at least 2^-110 of themselves: they are multiples of a unit that is so far
 * below them. */
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
