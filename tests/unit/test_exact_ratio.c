/* SPDX-License-Identifier: Apache-2.0 */
/* src/ops/quantize/exact_ratio.c: results against integer arithmetic, and the floats that kernels multiply by
 * against all values that there can be. */
#include "ops/quantize/exact_ratio.h"
#include "support/random.h"
#include "support/test_program.h"

#include <math.h>

static uint64_t state = 1;

static unsigned draw(unsigned below)
{
    return random_below(&state, below);
}

static dq_q8 drawn(bool is_signed, float scale)
{
    const int min = is_signed ? -128 : 0;
    return (dq_q8){.scale = scale, .zero = min + (int)draw(256), .min = min, .max = min + 255};
}

/* Small integers, whose quotients make ties, or any scale. */
static float drawn_scale(bool ties)
{
    return ties ? (float)(1 + draw(99)) / 64 : (float)(1 + draw(1 << 20)) * 0x1p-22f;
}

/* numerator / denominator, to nearest, ties to even; denominator positive. */
static int64_t divided(int64_t numerator, int64_t denominator)
{
    int64_t quotient = numerator / denominator, rest = numerator % denominator;
    if (rest < 0) {
        quotient--;
        rest += denominator;
    }
    return quotient + (2 * rest > denominator || (2 * rest == denominator && quotient % 2 != 0));
}

static int saturated(const dq_q8 *q, int64_t v)
{
    v += q->zero;
    return (int)(v < q->min ? q->min : v > q->max ? q->max : v);
}

START_TEST(ratios_round_as_integers_do)
{
    for (int i = 0; i < 20000; i++) {
        const int64_t p = 1 + draw(1 << 20), q = 1 + draw(1 << 20), s = (int64_t)draw(1 << 21) - (1 << 20);
        const dq_ratio ratio = dq_ratio_make((double)p, (double)q);
        const int64_t expected = divided(s * p, q);
        if (expected <= 1 << 20 && expected >= -(1 << 20))
            ck_assert_int_eq((int64_t)dq_ratio_round(&ratio, (double)s), expected);
    }
    const dq_ratio tie = dq_ratio_make(1, 98); /* 147 / 98 is 1.5, which 147 * (1 / 98.0) is not */
    ck_assert_int_eq((int)dq_ratio_round(&tie, 147), 2);
    ck_assert_int_eq((int)dq_ratio_round(&tie, 49), 0);
    ck_assert_int_eq((int)dq_ratio_round(&tie, -147), -2);
}
END_TEST

START_TEST(pairs_round_as_integers_do)
{
    for (int i = 0; i < 40; i++) {
        const int64_t a_scale = 1 + draw(999), b_scale = 1 + draw(999), y_scale = 1 + draw(999);
        const dq_q8_pair p = {drawn(i % 2, (float)a_scale), drawn(i % 2, (float)b_scale),
                              drawn(i % 2, (float)y_scale)};
        for (int k = 0; k < 2000; k++) {
            const int a = p.a.min + (int)draw(256), b = p.a.min + (int)draw(256);
            const int64_t left = (a - p.a.zero) * a_scale, right = (b - p.b.zero) * b_scale;
            ck_assert_int_eq(dq_q8_add(&p, a, b), saturated(&p.y, divided(left + right, y_scale)));
            ck_assert_int_eq(dq_q8_mul(&p, a, b), saturated(&p.y, divided(left * right, y_scale)));
        }
    }
}
END_TEST

static int rounded(const dq_q8 *q, float v)
{
    return (int)nearbyintf(v < (float)q->min ? (float)q->min : v > (float)q->max ? (float)q->max : v);
}

/* Most scales have such numbers; those that are found hold for all pairs. */
START_TEST(terms_hold_for_all_pairs)
{
    enum { TRIES = 24 };
    int sums = 0, products = 0;
    for (int i = 0; i < TRIES; i++) {
        const bool ties = i % 3 == 0;
        dq_q8_pair p = {drawn(i % 2, drawn_scale(ties)), drawn(i % 2, drawn_scale(ties)),
                        drawn(i % 2, drawn_scale(ties))};
        float add[DQ_ADD_TERMS], mul[DQ_MUL_TERMS];
        const bool adds = dq_q8_add_terms(&p, add);
        dq_q8_pair m = p;
        m.y.scale = p.a.scale * p.b.scale * (float)(20 + draw(200));
        const bool multiplies = dq_q8_mul_terms(&m, mul);
        sums += adds;
        products += multiplies;
        for (int a = p.a.min; a <= p.a.max; a++)
            for (int b = p.b.min; b <= p.b.max; b++) {
                const float a_first = fmaf((float)a, add[0], fmaf((float)b, add[1], add[2]));
                const float b_first = fmaf((float)b, add[3], fmaf((float)a, add[4], add[5]));
                const float product = (float)((a - m.a.zero) * (b - m.b.zero)) * mul[0];
                if (adds && (rounded(&p.y, a_first) != dq_q8_add(&p, a, b) ||
                             rounded(&p.y, b_first) != dq_q8_add(&p, a, b)))
                    ck_abort_msg("the sum of %d and %d, try %d", a, b, i);
                if (multiplies && rounded(&m.y, product + mul[1]) != dq_q8_mul(&m, a, b))
                    ck_abort_msg("the product of %d and %d, try %d", a, b, i);
            }
    }
    ck_assert_int_ge(sums, TRIES / 2);
    ck_assert_int_ge(products, TRIES / 2);
}
END_TEST

/* Bounds hold for all pairs, also where scales have ratios as of decimal fractions, and most are equal. */
START_TEST(bounds_hold_for_all_pairs)
{
    enum { TRIES = 24 };
    for (int i = 0; i < TRIES; i++) {
        const bool ties = i % 3 == 0;
        dq_q8_pair p = {drawn(i % 2, drawn_scale(ties)), drawn(i % 2, drawn_scale(ties)),
                        drawn(i % 2, drawn_scale(ties))};
        if (i % 4 == 1)
            p.a.scale = 0.05f, p.b.scale = 0.037f, p.y.scale = 0.06f;
        dq_q8_pair m = p;
        m.y.scale = i % 4 == 1 ? 0.23f : p.a.scale * p.b.scale * (float)(20 + draw(200));
        float low[DQ_ADD_TERMS], high[DQ_ADD_TERMS], mul_low[DQ_MUL_TERMS], mul_high[DQ_MUL_TERMS];
        const bool adds = dq_q8_add_bounds(&p, low, high);
        ck_assert(dq_q8_mul_bounds(&m, mul_low, mul_high));
        ck_assert(adds || p.a.scale + p.b.scale > 16 * p.y.scale);
        int unequal = 0;
        for (int a = p.a.min; a <= p.a.max; a++)
            for (int b = p.b.min; b <= p.b.max; b++) {
                const int sum = dq_q8_add(&p, a, b), product = dq_q8_mul(&m, a, b);
                for (int first = 0; adds && first < DQ_ADD_TERMS; first += DQ_ADD_TERMS / 2) {
                    const float x = (float)(first ? b : a), z = (float)(first ? a : b);
                    const float *l = low + first, *h = high + first;
                    const int below = rounded(&p.y, fmaf(x, l[0], fmaf(z, l[1], l[2])));
                    const int above = rounded(&p.y, fmaf(x, h[0], fmaf(z, h[1], h[2])));
                    if (below > sum || above < sum)
                        ck_abort_msg("the sum of %d and %d, try %d", a, b, i);
                    unequal += below != above;
                }
                const float s = (float)((a - m.a.zero) * (b - m.b.zero));
                const int below = rounded(&m.y, s * mul_low[0] + mul_low[1]);
                const int above = rounded(&m.y, s * mul_high[0] + mul_high[1]);
                if (below > product || above < product)
                    ck_abort_msg("the product of %d and %d, try %d", a, b, i);
                unequal += below != above;
            }
        ck_assert_msg(ties || unequal < 65536 / 8, "%d of try %d", unequal, i);
    }
}
END_TEST

START_TEST(multipliers_hold_for_all_sums)
{
    enum { TRIES = 60 };
    int found = 0;
    for (int i = 0; i < TRIES; i++) {
        const int count = 1 + (int)draw(64), most = 255 * count;
        const dq_q8 y = drawn(i % 2, drawn_scale(i % 3 == 0));
        const float x_scale = i % 4 ? drawn_scale(i % 3 == 0) : y.scale;
        const dq_ratio ratio = dq_ratio_make((double)x_scale, (double)y.scale * count);
        float m;
        if (!dq_ratio_multiplier(&ratio, &y, most, &m))
            continue;
        found++;
        for (int s = -most; s <= most; s++) {
            const float low = (float)(y.min - y.zero), high = (float)(y.max - y.zero);
            float v = (float)s * m;
            v = v < low ? low : v > high ? high : v;
            if ((int)nearbyintf(v) + y.zero != dq_ratio_quantize(&ratio, &y, s))
                ck_abort_msg("%d of %d elements, try %d", s, count, i);
        }
    }
    ck_assert_int_ge(found, TRIES / 2);
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("exact_ratio", NULL, NULL);
    add_test(&tests, ratios_round_as_integers_do);
    add_test(&tests, pairs_round_as_integers_do);
    add_test(&tests, terms_hold_for_all_pairs);
    add_test(&tests, bounds_hold_for_all_pairs);
    add_test(&tests, multipliers_hold_for_all_sums);
    return test_program_run(&tests);
}
