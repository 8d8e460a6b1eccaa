/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/quantize/exact_ratio.h"

#include <string.h>

enum { VALUES = 256, REACH = 255 * 255 /* largest product of two quantized values */ };

/* ---- Single values ------------------------------------------------------------------------------------- */

/* The sign of a * b - c * d, exactly. */
static int order_of_products(double a, double b, double c, double d)
{
    const double left = a * b, right = c * d;
    const double left_rest = fma(a, b, -left), right_rest = fma(c, d, -right);
    if (left != right)
        return left < right ? -1 : 1;
    return (left_rest > right_rest) - (left_rest < right_rest);
}

double dq_ratio_round(const dq_ratio *ratio, double s)
{
    double nearest, tie;
    if (!dq_round_unless_tied(s * ratio->quotient, &nearest, &tie))
        return nearest;
    return dq_next_to_tie(tie, order_of_products(s, ratio->numerator, tie, ratio->denominator));
}

static int saturate(const dq_q8 *q, double v)
{
    return v > q->max ? q->max : v < q->min ? q->min : (int)v;
}

/* Terms are exact in double. Their sum is exact as `sum` + `rest` (two-sum). */
int dq_q8_add(const dq_q8_pair *p, int a, int b)
{
    const double scale = (double)p->y.scale;
    const double left = (a - p->a.zero) * (double)p->a.scale, right = (b - p->b.zero) * (double)p->b.scale;
    const double sum = left + right, part = sum - left;
    const double rest = (left - (sum - part)) + (right - part);
    double nearest, tie;
    if (dq_round_unless_tied(sum / scale, &nearest, &tie)) {
        const double at = tie * scale;
        nearest = dq_next_to_tie(tie, sum != at ? (sum < at ? -1 : 1) : (rest > 0) - (rest < 0));
    }
    return saturate(&p->y, nearest + p->y.zero);
}

static dq_ratio ratio_of(const dq_q8_pair *p)
{
    return dq_ratio_make((double)p->a.scale * (double)p->b.scale, (double)p->y.scale);
}

int dq_q8_mul(const dq_q8_pair *p, int a, int b)
{
    const dq_ratio ratio = ratio_of(p);
    return saturate(&p->y, dq_ratio_round(&ratio, (a - p->a.zero) * (b - p->b.zero)) + p->y.zero);
}

/* ---- Multipliers of integers -------------------------------------------------------------------------- */

/* Test points that prove a multiplier for all integers s. Results are monotonic in s: it suffices to check
 * both sides of each step from one result to the next, and both ends. */
typedef struct steps {
    int32_t s[2 * VALUES + 2];
    int result[2 * VALUES + 2]; /* saturated, minus the zero point */
    size_t count;
} steps;

/* Whether s is a product of two quantized values: bit s + REACH of `reached`. NULL: all count. */
static bool is_reached(const uint8_t *reached, int32_t s)
{
    const size_t at = (size_t)(s + REACH);
    return !reached || (reached[at / 8] >> at % 8 & 1);
}

static int result_of(const dq_ratio *ratio, const dq_q8 *q, int32_t s)
{
    return dq_ratio_quantize(ratio, q, s) - q->zero;
}

static void add_step(steps *t, const dq_ratio *ratio, const dq_q8 *q, int32_t s)
{
    t->s[t->count] = s;
    t->result[t->count++] = result_of(ratio, q, s);
}

/* Finds the test points for s from `first` to `last`. */
static void find_steps(const dq_ratio *ratio, const dq_q8 *q, int32_t first, int32_t last,
                       const uint8_t *reached, steps *t)
{
    t->count = 0;
    add_step(t, ratio, q, first);
    add_step(t, ratio, q, last);
    for (int k = q->min - q->zero; k < q->max - q->zero; k++) {
        const double at = ceil((k + 0.5) / ratio->quotient);
        if (!(at >= first && at <= last))
            continue;
        int32_t above = (int32_t)at; /* becomes the least s with a result above k */
        while (above > first && result_of(ratio, q, above - 1) > k)
            above--;
        while (above <= last && result_of(ratio, q, above) <= k)
            above++;
        int32_t below = above - 1;
        while (above <= last && !is_reached(reached, above))
            above++;
        while (below >= first && !is_reached(reached, below))
            below--;
        if (above <= last)
            add_step(t, ratio, q, above);
        if (below >= first)
            add_step(t, ratio, q, below);
    }
}

/* Whether a kernel with multiplier m is correct at all test points; its product and its sum are each rounded
 * to float. */
static bool is_right(const steps *t, const dq_q8 *q, float m, float zero, int zero_point)
{
    const float low = (float)(q->min - q->zero + zero_point), high = (float)(q->max - q->zero + zero_point);
    for (size_t i = 0; i < t->count; i++) {
        float v = (float)t->s[i] * m;
        v += zero;
        v = v < low ? low : v > high ? high : v;
        if ((int)nearbyintf(v) != t->result[i] + zero_point)
            return false;
    }
    return true;
}

/* The float `count` floats above v (below, if negative). */
static float stepped(float v, int count)
{
    for (; count > 0; count--)
        v = nextafterf(v, HUGE_VALF);
    for (; count < 0; count++)
        v = nextafterf(v, -HUGE_VALF);
    return v;
}

/* 0, 1, -1, 2, -2 … for i = 0, 1, 2, 3, 4 … */
static int alternating(int i)
{
    return i % 2 ? (i + 1) / 2 : -(i / 2);
}

bool dq_ratio_multiplier(const dq_ratio *ratio, const dq_q8 *q, int32_t most, float *m)
{
    enum { TRIES = 33 };
    steps t;
    find_steps(ratio, q, -most, most, NULL, &t);
    for (int i = 0; i < TRIES; i++) {
        *m = stepped((float)ratio->quotient, alternating(i));
        if (is_right(&t, q, *m, 0, 0))
            return true;
    }
    return false;
}

bool dq_q8_mul_terms(const dq_q8_pair *p, float terms[DQ_MUL_TERMS])
{
    enum { RATIOS = 17, ZEROS = 9 };
    const dq_ratio exact = ratio_of(p);
    uint8_t reached[2 * REACH / 8 + 1] = {0};
    int32_t first = REACH, last = -REACH;
    steps t;
    for (int a = p->a.min - p->a.zero; a <= p->a.max - p->a.zero; a++)
        for (int b = p->b.min - p->b.zero; b <= p->b.max - p->b.zero; b++) {
            reached[(a * b + REACH) / 8] |= (uint8_t)(1 << (a * b + REACH) % 8);
            first = a * b < first ? a * b : first;
            last = a * b > last ? a * b : last;
        }
    find_steps(&exact, &p->y, first, last, reached, &t);
    const float nudge = 0x1p-18f;
    for (int z = 0; z < ZEROS; z++)
        for (int i = 0; i < RATIOS; i++) {
            terms[0] = stepped((float)exact.quotient, alternating(i));
            terms[1] = (float)p->y.zero + (float)alternating(z) * nudge;
            if (is_right(&t, &p->y, terms[0], terms[1], p->y.zero))
                return true;
        }
    return false;
}

/* ---- Sums ---------------------------------------------------------------------------------------------- */

/* Pairs whose sum is so near a tie that the kernel's roundings may decide its result. */
typedef struct near_pairs {
    struct {
        int16_t a, b;
        int result;
    } pair[1024];
    size_t count;
} near_pairs;

/* Finds these pairs; false if there are more than fit. */
static bool find_near_pairs(const dq_q8_pair *p, double margin, near_pairs *n)
{
    enum { MAX_LIMBS = sizeof n->pair / sizeof *n->pair };
    const double shift = 0x1.8p52, scale = (double)p->y.scale;
    const double low = p->y.min - p->y.zero - 1, high = p->y.max - p->y.zero + 1;
    double right[VALUES];
    for (int i = 0; i < VALUES; i++)
        right[i] = (i + p->b.min - p->b.zero) * (double)p->b.scale / scale;
    n->count = 0;
    for (int a = p->a.min; a <= p->a.max; a++) {
        const double left = (a - p->a.zero) * (double)p->a.scale / scale;
        for (int i = 0; i < VALUES; i++) {
            const double v = left + right[i], rest = v - ((v + shift) - shift);
            if (fabs(rest) < 0.5 - margin || v < low || v > high)
                continue;
            if (n->count == MAX_LIMBS)
                return false;
            n->pair[n->count].a = (int16_t)a;
            n->pair[n->count].b = (int16_t)(i + p->b.min);
            n->pair[n->count].result = dq_q8_add(p, a, i + p->b.min);
            n->count++;
        }
    }
    return true;
}

/* The sum as the kernel computes it. */
static int kernel_sum(const dq_q8 *y, int first, int second, const float terms[3])
{
    const float v = fmaf((float)first, terms[0], fmaf((float)second, terms[1], terms[2]));
    return (int)nearbyintf(v < (float)y->min ? (float)y->min : v > (float)y->max ? (float)y->max : v);
}

static bool is_sum_right(const dq_q8_pair *p, int a, int b, int result, bool b_first, const float terms[3])
{
    return kernel_sum(&p->y, b_first ? b : a, b_first ? a : b, terms) == result;
}

static bool near_are_right(const dq_q8_pair *p, const near_pairs *n, bool b_first, const float terms[3])
{
    for (size_t i = 0; i < n->count; i++)
        if (!is_sum_right(p, n->pair[i].a, n->pair[i].b, n->pair[i].result, b_first, terms))
            return false;
    return true;
}

static bool all_are_right(const dq_q8_pair *p, bool b_first, const float terms[3])
{
    for (int a = p->a.min; a <= p->a.max; a++)
        for (int b = p->b.min; b <= p->b.max; b++)
            if (!is_sum_right(p, a, b, dq_q8_add(p, a, b), b_first, terms))
                return false;
    return true;
}

/* Exact ratios and constant term in double, the first operand's ratio first. `unit` bounds the rounding error
 * of a sum; the search varies the constant term by parts of it. */
typedef struct sum_terms {
    double first, second, fixed, unit;
} sum_terms;

/* Searches terms near the exact ones; each candidate rounds differently. */
static bool find_terms(const dq_q8_pair *p, const near_pairs *n, bool b_first, const sum_terms *exact,
                       float terms[3])
{
    enum { RATIOS = 9, SUMS = 33 }; /* within the margin of find_near_pairs */
    for (int f = 0; f < SUMS; f++)
        for (int i = 0; i < RATIOS * RATIOS; i++) {
            terms[0] = stepped((float)exact->first, alternating(i / RATIOS));
            terms[1] = stepped((float)exact->second, alternating(i % RATIOS));
            terms[2] = (float)(exact->fixed + alternating(f) * exact->unit / 4);
            if (near_are_right(p, n, b_first, terms))
                return true;
        }
    return false;
}

bool dq_q8_add_terms(const dq_q8_pair *p, float terms[DQ_ADD_TERMS])
{
    const double scale = (double)p->y.scale, ra = (double)p->a.scale / scale, rb = (double)p->b.scale / scale;
    const double fixed = p->y.zero - (p->a.zero * ra + p->b.zero * rb);
    const double largest = VALUES * (ra + rb) + fabs(fixed), unit = largest * 0x1p-24;
    const sum_terms a_first = {ra, rb, fixed, unit}, b_first = {rb, ra, fixed, unit};
    const float plain[DQ_ADD_TERMS] = {(float)ra, (float)rb, (float)fixed,
                                       (float)rb, (float)ra, (float)fixed};
    near_pairs n;
    if (!(largest < 0x1p15)) /* floats are too coarse for such sums */
        return false;
    if (find_near_pairs(p, unit * 16, &n))
        return find_terms(p, &n, false, &a_first, terms) && find_terms(p, &n, true, &b_first, terms + 3);
    memcpy(terms, plain, sizeof plain); /* many exact ties: these terms are right, or none are */
    return all_are_right(p, false, terms) && all_are_right(p, true, terms + 3);
}

/* ---- Bounds -------------------------------------------------------------------------------------------- */

enum { MAX_SUM = 1 << 18 /* floats of this magnitude have a margin of a sixteenth */ };

/* Distance of the bounds' constant terms from the exact one, for values of at most `largest` in magnitude.
 * Ratios, the constant term, products and sums are rounded to float, each by at most 2^-24 of its magnitude;
 * the sum of these errors is below 3 * 2^-24 of `largest`. */
static double bound_margin(double largest)
{
    return (largest + 1) * 4 * 0x1p-24;
}

bool dq_q8_add_bounds(const dq_q8_pair *p, float low[DQ_ADD_TERMS], float high[DQ_ADD_TERMS])
{
    const double scale = (double)p->y.scale, ra = (double)p->a.scale / scale, rb = (double)p->b.scale / scale;
    const double fixed = p->y.zero - (p->a.zero * ra + p->b.zero * rb);
    const double largest = VALUES * (ra + rb) + fabs(fixed), margin = bound_margin(largest);
    if (!(largest < MAX_SUM))
        return false;
    low[0] = high[0] = low[4] = high[4] = (float)ra;
    low[1] = high[1] = low[3] = high[3] = (float)rb;
    low[2] = low[5] = (float)(fixed - margin);
    high[2] = high[5] = (float)(fixed + margin);
    return true;
}

bool dq_q8_mul_bounds(const dq_q8_pair *p, float low[DQ_MUL_TERMS], float high[DQ_MUL_TERMS])
{
    const double ratio = ratio_of(p).quotient, zero = p->y.zero;
    const double largest = REACH * ratio + fabs(zero), margin = bound_margin(largest);
    if (!(largest < MAX_SUM))
        return false;
    low[0] = high[0] = (float)ratio;
    low[1] = (float)(zero - margin);
    high[1] = (float)(zero + margin);
    return true;
}
