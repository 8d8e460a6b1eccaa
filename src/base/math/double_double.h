/* SPDX-License-Identifier: Apache-2.0 */
/* Double-double arithmetic: a number is the unevaluated sum of two doubles, the second at most half a unit in
 * the last place of the first. Sums and products of two doubles are exact (Knuth's and Dekker's algorithms),
 * unless they overflow or the low half of a product underflows. The other operations are accurate to about
 * 2^-100. */
#ifndef DQ_BASE_DOUBLE_DOUBLE_H
#define DQ_BASE_DOUBLE_DOUBLE_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if FLT_EVAL_METHOD == 2
#error "doubles must be computed as doubles: build with SSE2 arithmetic (-msse2 -mfpmath=sse)"
#endif

#define INFINITE ((double)INFINITY)
#define NOT_A_NUMBER ((double)NAN)

typedef struct dd {
    double high, low;
} dd;

static inline uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* a + b, for |a| >= |b| or a = 0. */
static inline dd fast_two_sum(double a, double b)
{
    double sum = a + b;
    return (dd){sum, b - (sum - a)};
}

static inline dd two_sum(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (dd){sum, (a - (sum - part)) + (b - part)};
}

/* Dekker's split: the upper 26 bits of a, rounded; for |a| below 2^996. */
static inline double upper_half(double a)
{
    double c = 0x1.0000002p27 * a;
    return c - (c - a);
}

static inline dd two_product(double a, double b)
{
    double product = a * b, ah = upper_half(a), bh = upper_half(b), al = a - ah, bl = b - bh;
    return (dd){product, ((ah * bh - product) + ah * bl + al * bh) + al * bl};
}

static inline dd dd_add(dd a, dd b)
{
    dd sum = two_sum(a.high, b.high);
    return fast_two_sum(sum.high, sum.low + (a.low + b.low));
}

static inline dd dd_multiply(dd a, dd b)
{
    dd product = two_product(a.high, b.high);
    return fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static inline dd dd_divide(dd a, dd b)
{
    double quotient = a.high / b.high;
    dd product = two_product(quotient, b.high);
    double rest = (a.high - product.high - product.low) + (a.low - quotient * b.low);
    return fast_two_sum(quotient, rest / b.high);
}

/* The square root of a, for a > 0. */
static inline dd dd_root(dd a)
{
    double root = sqrt(a.high);
    dd square = two_product(root, root);
    return fast_two_sum(root, ((a.high - square.high - square.low) + a.low) / (2 * root));
}

/* a, negated if `sign` is negative. */
static inline dd dd_signed(dd a, double sign)
{
    return signbit(sign) ? (dd){-a.high, -a.low} : a;
}

static inline double dd_round(dd a)
{
    return a.high + a.low;
}

/* Added to a double below 2^51, this leaves the nearest integer in the last bits of the sum. */
#define ROUNDING_SHIFT 0x1.8p52

static inline double nearest(double x, int32_t *whole)
{
    double shifted = x + ROUNDING_SHIFT;
    *whole = (int32_t)(uint32_t)bits_of(shifted);
    return shifted - ROUNDING_SHIFT;
}

/* 2^k, for -1022 <= k <= 1023. */
static inline double power_of_two(int k)
{
    return double_of((uint64_t)(k + 1023) << 52);
}

/* Whether y is an integer; *odd: whether it is odd. */
static inline bool is_whole(double y, bool *odd)
{
    double half = 0.5 * y;
    *odd = fabs(y) < 0x1p53 && floor(y) == y && floor(half) != half;
    return floor(y) == y;
}

/* c[0] + c[1] x + … by Horner's rule, for a constant number of terms. */
#define POLYNOMIAL(x, c) polynomial(x, c, (int)(sizeof(c) / sizeof *(c)))
static inline __attribute__((always_inline)) double polynomial(double x, const double *c, int count)
{
    double sum = c[count - 1];
    for (int i = count - 2; i >= 0; i--)
        sum = sum * x + c[i];
    return sum;
}

#endif
