/* SPDX-License-Identifier: Apache-2.0 */
/* Sine, cosine and tangent. */
#include "base/math/trigonometry.h"
#include "base/math.h"

#include "math_tables.h"

/* Payne and Hanek's reduction: computes the product of x = m 2^e and the bits of 2/pi, without whole
 * multiples of 4 and bits below 2^-130. */
int dq_reduce_far_angle(double x, dd *r)
{
    enum { WORDS = 7, REST = 5 };
    uint64_t bits = bits_of(x), m = (bits & 0x000fffffffffffff) | 0x0010000000000000;
    int e = (int)(bits >> 52 & 2047) - 1075, first = (e + 62) / 32; /* Two words of the table are 0. */
    const uint32_t *word = two_over_pi_bits + first;
    uint32_t product[WORDS + 2] = {0}; /* From the lowest word on. */
    for (int half = 0; half < 2; half++) {
        uint64_t carry = 0, factor = half ? m >> 32 : (uint32_t)m;
        for (int i = 0; i < WORDS; i++) {
            carry += product[i + half] + factor * word[WORDS - 1 - i];
            product[i + half] = (uint32_t)carry;
            carry >>= 32;
        }
        product[WORDS + half] = (uint32_t)carry;
    }
    /* Bit `point` of the product has the value 1. */
    int point = 32 * (WORDS - 2 + first) - e;
    int quarter = (int)((product[point / 32] | (uint64_t)product[point / 32 + 1] << 32) >> point % 32 & 3);
    uint32_t rest[REST]; /* The fraction, from its highest word on. */
    for (int i = 0; i < REST; i++) {
        int low = point - 32 * (i + 1);
        rest[i] = (uint32_t)((product[low / 32] | (uint64_t)product[low / 32 + 1] << 32) >> low % 32);
    }
    uint32_t sign_xor =
        rest[0] >> 31 ? 0xffffffff : 0; /* For 1/2 or more: 1 - fraction, in the other direction. */
    dd fraction = {0, 0};
    double unit = 1;
    for (int i = 0; i < REST; i++) {
        unit *= 0x1p-32;
        dd sum = two_sum(fraction.high, (double)(rest[i] ^ sign_xor) * unit);
        fraction = fast_two_sum(sum.high, fraction.low + sum.low);
    }
    quarter += sign_xor != 0;
    fraction = dd_multiply(fraction, (dd){HALF_PI_HIGH, HALF_PI_LOW});
    *r = dd_signed(fraction, (sign_xor != 0) != (x < 0) ? -1 : 1);
    return (x < 0 ? -quarter : quarter) & 3;
}

/* The same for any finite x. */
static int reduce_angle(double x, dd *r)
{
    int32_t n;
    *r = (dd){x, 0};
    if (fabs(x) <= 0x1.921fb5p-1)
        return 0;
    if (fabs(x) >= FAR_ANGLE)
        return dq_reduce_far_angle(x, r);
    double whole = nearest(x * TWO_OVER_PI, &n);
    dd sum = two_sum(x - whole * HALF_PI_1, -(whole * HALF_PI_2));
    dd rest = two_sum(sum.high, -(whole * HALF_PI_3));
    *r = fast_two_sum(rest.high, sum.low + rest.low - whole * HALF_PI_4);
    return n & 3;
}

/* Taylor polynomials for |r| <= pi/4. */
static dd sine_of(dd r)
{
    static const double c[] = {-1.0 / 6,        1.0 / 120,         -1.0 / 5040,         1.0 / 362880,
                               -1.0 / 39916800, 1.0 / 6227020800., -1.0 / 1307674368e3, 1.0 / 355687428096e3};
    double s = r.high * r.high, tail = r.high * s * POLYNOMIAL(s, c);
    return fast_two_sum(r.high, tail + (r.low - 0.5 * s * r.low));
}

static dd cosine_of(dd r)
{
    static const double c[] = {
        1.0 / 24,        -1.0 / 720,          1.0 / 40320,         -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200., 1.0 / 20922789888e3, -1.0 / 6402373705728e3};
    dd square = two_product(r.high, r.high), sum = fast_two_sum(1, -0.5 * square.high);
    double s = square.high, tail = s * s * POLYNOMIAL(s, c);
    return fast_two_sum(sum.high, sum.low + (tail - (0.5 * square.low + r.high * r.low)));
}

/* The sine of `quarter` pi/2 + r. */
static double sine_in(int quarter, dd r)
{
    double y = dd_round(quarter & 1 ? cosine_of(r) : sine_of(r));
    return quarter & 2 ? -y : y;
}

double dq_sin(double x)
{
    dd r;
    if (fabs(x) < 0x1p-27)
        return x;
    if (!isfinite(x))
        return NOT_A_NUMBER;
    int quarter = reduce_angle(x, &r);
    return sine_in(quarter, r);
}

double dq_cos(double x)
{
    dd r;
    if (!isfinite(x))
        return NOT_A_NUMBER;
    int quarter = reduce_angle(x, &r);
    return sine_in(quarter + 1, r);
}

double dq_tan(double x)
{
    dd r;
    if (fabs(x) < 0x1p-28)
        return x;
    if (!isfinite(x))
        return NOT_A_NUMBER;
    int quarter = reduce_angle(x, &r);
    dd sine = sine_of(r), cosine = cosine_of(r);
    if (quarter & 1)
        return -dd_round(dd_divide(cosine, sine));
    return dd_round(dd_divide(sine, cosine));
}

/* The angle of the point (x, y) to the axis, for positive x and y. With c = j/16 near y/x, atan(y/x) =
 * atan(c) + atan((y - c x) / (x + c y)). If y > x, the angle is pi/2 minus that of (y, x). */
static dd angle_of(dd y, dd x)
{
    static const double c[] = {-1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13};
    const bool steep = y.high > x.high;
    dd opposite = steep ? x : y, adjacent = steep ? y : x;
    int32_t j;
    double near = nearest(16 * (opposite.high / adjacent.high), &j) / 16;
    dd other = {-near, 0}, t = opposite;
    if (j)
        t = dd_add(opposite, dd_multiply(adjacent, other));
    other.high = near;
    if (j || adjacent.high != 1 || adjacent.low != 0)
        t = dd_divide(t, j ? dd_add(adjacent, dd_multiply(opposite, other)) : adjacent);
    double s = t.high * t.high, tail = t.low + t.high * s * POLYNOMIAL(s, c);
    dd sum = fast_two_sum(atan_table[j][0], t.high);
    sum = fast_two_sum(sum.high, sum.low + (atan_table[j][1] + tail));
    if (!steep)
        return sum;
    return dd_add((dd){HALF_PI_HIGH, HALF_PI_LOW}, (dd){-sum.high, -sum.low});
}

double dq_atan(double x)
{
    double a = fabs(x);
    if (!(a >= 0x1p-27))
        return x;
    dd angle = {HALF_PI_HIGH, HALF_PI_LOW};
    if (a < 0x1p60)
        angle = angle_of((dd){a, 0}, (dd){1, 0});
    return dd_round(dd_signed(angle, x));
}

/* sqrt(1 - a^2), for 0 <= a < 1. */
static dd cosine_of_arc(double a)
{
    return dd_root(dd_multiply(two_sum(1, -a), two_sum(1, a)));
}

double dq_asin(double x)
{
    double a = fabs(x);
    if (!(a >= 0x1p-27))
        return x;
    if (a >= 1)
        return a > 1 ? NOT_A_NUMBER : copysign(HALF_PI_HIGH, x);
    return dd_round(dd_signed(angle_of((dd){a, 0}, cosine_of_arc(a)), x));
}

double dq_acos(double x)
{
    double a = fabs(x);
    dd angle = {0, 0};
    if (!(a <= 1))
        return a > 1 ? NOT_A_NUMBER : x;
    if (a < 1)
        angle = a < 0x1p-60 ? (dd){HALF_PI_HIGH, HALF_PI_LOW} : angle_of(cosine_of_arc(a), (dd){a, 0});
    if (signbit(x))
        angle = dd_add((dd){2 * HALF_PI_HIGH, 2 * HALF_PI_LOW}, (dd){-angle.high, -angle.low});
    return dd_round(angle);
}
