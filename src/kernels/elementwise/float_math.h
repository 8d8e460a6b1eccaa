/* SPDX-License-Identifier: Apache-2.0 */
/* Template: elementary functions of vectors of floats. Included once per ISA level, after its vec_<isa>.h,
 * which defines the operations:
 *
 *   vf, vi, vm, vd    VF_LANES floats, VF_LANES 32-bit integers, a mask of VF_LANES, VD_LANES doubles
 *   vf_min(a, b)      a < b ? a : b, so that b is returned if either is NaN; vf_max likewise
 *   vf_floor, vf_round  round down, round to nearest (ties to even)
 *   vf_less(a, b)     false for NaN; vf_unordered(a, b): whether one of them is NaN
 *   vf_pick(m, a, b)  m ? a : b; vm_all(m): whether all lanes of m are true
 *   vf_bits, vi_float reinterpret the bits; vi_to_float converts the number, rounded
 *   vf_half(a, h)     half h of VF_HALVES as doubles
 *
 * Each function has one order of operations, in which every product is fused with its sum, so that all ISA
 * levels give the same bits. Polynomials are minimax fits for the relative error of the function, made for
 * this file. Comments state that error. */
#ifndef DQ_KERNELS_FLOAT_MATH_H
#define DQ_KERNELS_FLOAT_MATH_H

#include "base/math.h"

#include <math.h>

#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693145752f /* 16 bits: its products with integers below 256 are exact */
#define LN2_LOW 1.42860677e-6f
#define EXP_MIDDLE 87.0f /* up to this magnitude exponentials are normal numbers */
/* 1.5 * 2^23 + 127: adding it rounds to an integer, and the sum's low bits are that integer as a biased
 * exponent. */
#define ROUNDER 12583039.0f

static inline vf vf_abs(vf a)
{
    return vi_float(vi_and(vf_bits(a), vi_set(0x7fffffff)));
}

/* Returns 2^n for -126 <= n <= 127. */
static inline vf two_to(vi n)
{
    return vi_float(vi_left_23(vi_add(n, vi_set(127))));
}

/* Range reduction x = n ln 2 + r, |r| <= ln 2 / 2. Returns r; *to is n + ROUNDER. Requires |x| < 2^21. */
static inline vf exp_reduced(vf x, vf *to)
{
    *to = vf_fma(x, vf_set(LOG2_E), vf_set(ROUNDER));
    vf whole = vf_sub(*to, vf_set(ROUNDER));
    return vf_fma(whole, vf_set(-LN2_LOW), vf_fma(whole, vf_set(-LN2_HIGH), x));
}

/* (exp(r) - 1 - r) / r^2; relative error of exp: 2^-28.3. */
static inline vf exp_tail(vf r)
{
    vf p = vf_set(0x1.6a23ccp-10f);
    p = vf_fma(p, r, vf_set(0x1.123a20p-7f));
    p = vf_fma(p, r, vf_set(0x1.5558f2p-5f));
    p = vf_fma(p, r, vf_set(0x1.555492p-3f));
    return vf_fma(p, r, vf_set(0x1.fffffcp-2f));
}

static inline vf exp_of_reduced(vf r)
{
    return vf_fma(vf_fma(exp_tail(r), r, vf_set(1.0f)), r, vf_set(1.0f));
}

/* exp(n ln 2 + r); r and n are those of exp_reduced for |x| <= EXP_MIDDLE, and NaN. */
static inline vf exp_scaled(vf r, vf n)
{
    return vf_mul(exp_of_reduced(r), vi_float(vi_left_23(vf_bits(n))));
}

/* exp(x) for |x| <= EXP_MIDDLE, and NaN. */
static inline vf exp_middle(vf x)
{
    vf n, r = exp_reduced(x, &n);
    return exp_scaled(r, n);
}

/* exp(x) for any x. It scales by the power of two in two steps, so that only the last one rounds, to a
 * denormal, 0 or infinity. If all lanes are in exp_middle's range, it uses that, with the same bits. */
static inline vf exp_any(vf x)
{
    if (vm_all(vf_less(vf_abs(x), vf_set(EXP_MIDDLE))))
        return exp_middle(x);
    vf n, r = exp_reduced(vf_max(vf_set(-105.0f), vf_min(vf_set(89.0f), x)), &n);
    vi whole = vi_sub(vf_bits(n), vf_bits(vf_set(ROUNDER))), half = vi_right_1(whole);
    return vf_mul(vf_mul(exp_of_reduced(r), two_to(half)), two_to(vi_sub(whole, half)));
}

/* Range reduction for exp_negative. */
static inline vf exp_negative_reduced(vf x, vf *to)
{
    return exp_reduced(vf_max(vf_set(-88.0f), x), to);
}

/* exp(x) for x <= 0, flushed to 0 below -126.5 ln 2, where the biased exponent is 0. */
static inline vf exp_negative(vf x)
{
    vf n, r = exp_negative_reduced(x, &n);
    return exp_scaled(r, n);
}

/* exp(x) - 1 for x <= 0. */
static inline vf expm1_negative(vf x)
{
    vf n, r = exp_reduced(vf_max(vf_set(-30.0f), x), &n), scale = vi_float(vi_left_23(vf_bits(n)));
    vf q = vf_fma(exp_tail(r), vf_mul(r, r), r);
    return vf_fma(q, scale, vf_sub(scale, vf_set(1.0f)));
}

/* log(1 + f) + e ln 2 for sqrt(1/2) - 1 <= f <= sqrt(2) - 1. */
static inline vf log_of_parts(vf f, vf e)
{
    vf p = vf_set(-0x1.38b78ep-4f); /* relative error 2^-27.3 */
    p = vf_fma(p, f, vf_set(0x1.055bc6p-3f));
    p = vf_fma(p, f, vf_set(-0x1.0d8504p-3f));
    p = vf_fma(p, f, vf_set(0x1.22da0ap-3f));
    p = vf_fma(p, f, vf_set(-0x1.54724ap-3f));
    p = vf_fma(p, f, vf_set(0x1.99a00ap-3f));
    p = vf_fma(p, f, vf_set(-0x1.000226p-2f));
    p = vf_fma(p, f, vf_set(0x1.555554p-2f));
    vf square = vf_mul(f, f);
    p = vf_mul(p, vf_mul(square, f));
    p = vf_fma(e, vf_set(LN2_LOW), p);
    p = vf_fma(square, vf_set(-0.5f), p);
    return vf_fma(e, vf_set(LN2_HIGH), vf_add(f, p));
}

static inline vf log_any(vf x)
{
    vm denormal = vf_less(x, vf_set(0x1p-126f));
    vf scaled = vf_pick(denormal, vf_mul(x, vf_set(0x1p23f)), x);
    vi bits = vf_bits(scaled), from = vi_sub(bits, vi_set(0x3f3504f3)); /* bits of sqrt(1/2) */
    vi e = vi_right_23(from);
    vf f = vf_sub(vi_float(vi_sub(bits, vi_left_23(e))), vf_set(1.0f));
    vf exponent = vf_sub(vi_to_float(e), vf_pick(denormal, vf_set(23.0f), vf_set(0.0f)));
    vf y = log_of_parts(f, exponent);
    y = vf_pick(vf_less(x, vf_set(INFINITY)), y, x); /* infinity and NaN */
    y = vf_pick(vf_less(vf_set(0.0f), x), y, vf_set(-INFINITY));
    y = vf_pick(vf_less(x, vf_set(0.0f)), vf_set(NAN), y);
    return vf_pick(vf_unordered(x, x), x, y);
}

/* Clamps x to [-most, most]; NaN stays NaN. */
static inline vf bounded(vf x, float most)
{
    return vf_max(vf_set(-most), vf_min(vf_set(most), x));
}

static inline vi sign_of(vf x)
{
    return vi_and(vf_bits(x), vi_set(0x80000000));
}

/* Odd rational function t P(t^2) / Q(t^2) of t = |x| clamped to `most`; results are in [-1, 1]. c[i] holds
 * the coefficients of P and Q, highest power first. Both are positive, so that the sign can be applied last.
 * Only one side is clamped, as minimum and maximum compete with multiply-adds for execution units. */
static inline __attribute__((always_inline)) vf odd_ratio(vf x, float most, const float (*c)[2], int powers)
{
    vf t = vf_min(vf_set(most), vf_abs(x)), s = vf_mul(t, t), p = vf_set(c[0][0]), q = vf_set(c[0][1]);
    for (int i = 1; i < powers; i++) {
        p = vf_fma(p, s, vf_set(c[i][0]));
        q = vf_fma(q, s, vf_set(c[i][1]));
    }
    vf y = vf_min(vf_set(1.0f), vf_div(vf_mul(t, p), q));
    return vi_float(vi_xor(vf_bits(y), sign_of(x)));
}

/* Rational function with positive coefficients; relative error 2^-25.1. The coefficients were searched near
 * the minimax ones for the least error with all roundings, 6 units in the last place just below 1 (3.6e-7),
 * and for exactly 1 at the bound. */
static inline vf erf_any(vf x)
{
    static const float c[][2] = {{0x1.05325cp-18f, 0x1.2ecf4ep-14f}, {0x1.1a6b7cp-11f, 0x1.1f380ap-9f},
                                 {0x1.d08bb8p-8f, 0x1.cf2982p-6f},   {0x1.98c43ap-4f, 0x1.b9da64p-3f},
                                 {0x1.704e7p-2f, 0x1.e68ab4p-1f},    {0x1.11a35cp+1f, 0x1.e502cep+0f}};
    return odd_ratio(x, 3.95f, c, 6);
}

/* Made like erf_any: relative error 2^-25.3, at most 5.25 units in the last place. */
static inline vf tanh_any(vf x)
{
    static const float c[][2] = {{0x1.db713cp-27f, 0x1.b057aap-21f},
                                 {0x1.65d8acp-16f, 0x1.645f66p-12f},
                                 {0x1.d9b8dp-9f, 0x1.b636cp-6f},
                                 {0x1.1b3122p-3f, 0x1.ee4458p-2f},
                                 {0x1.0880dcp+0f, 0x1.0880dcp+0f}};
    return odd_ratio(x, 9.05f, c, 5);
}

/* x / (1 + exp(-s)), where the last product of exp(-s) and the sum are fused. Requires |s| <= EXP_MIDDLE, or
 * NaN. */
static inline vf times_sigmoid_middle(vf x, vf s)
{
    vf n, r = exp_reduced(vf_sub(vf_set(0.0f), s), &n);
    return vf_div(x, vf_fma(exp_of_reduced(r), vi_float(vi_left_23(vf_bits(n))), vf_set(1.0f)));
}

/* x / (1 + exp(-s)) for any s; computed as x exp(s) below -EXP_MIDDLE, where exp(-s) might overflow. */
static inline vf times_sigmoid(vf x, vf s)
{
    const vf low = vf_set(-EXP_MIDDLE);
    if (vm_all(vf_less(vf_abs(s), vf_set(EXP_MIDDLE))))
        return times_sigmoid_middle(x, s);
    vm lowest = vf_less(s, low);
    vf e = exp_any(vf_pick(lowest, s, low));
    return vf_pick(lowest, vf_mul(x, e), times_sigmoid_middle(x, bounded(s, EXP_MIDDLE)));
}

static inline vf sigmoid_any(vf x)
{
    return times_sigmoid(vf_set(1.0f), x);
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|). If 1 + e exceeds sqrt(2), log_of_parts takes half
 * of it. */
static inline vf softplus_any(vf x)
{
    vf e = exp_any(vf_sub(vf_set(0.0f), vf_abs(x)));
    vm halve = vf_less(vf_set(0.414f), e);
    vf f = vf_pick(halve, vf_fma(e, vf_set(0.5f), vf_set(-0.5f)), e);
    vf log1p = log_of_parts(f, vf_pick(halve, vf_set(1.0f), vf_set(0.0f)));
    return vf_add(vf_max(vf_set(0.0f), x), log1p);
}

/* x tanh(log(1 + exp(x))). With e = exp(-|x|), the tanh is (1 + 2e) / (1 + 2e + 2e^2) for x >= 0, else
 * e (e + 2) / (e^2 + 2e + 2). */
static inline vf mish_any(vf x)
{
    vf e = exp_any(vf_sub(vf_set(0.0f), vf_abs(x))), twice = vf_add(e, e), square = vf_mul(e, e);
    vm negative = vf_less(x, vf_set(0.0f));
    vf top = vf_pick(negative, vf_mul(e, vf_add(e, vf_set(2.0f))), vf_add(twice, vf_set(1.0f)));
    vf below = vf_pick(negative, vf_add(vf_add(square, twice), vf_set(2.0f)),
                       vf_fma(vf_set(2.0f), square, vf_add(twice, vf_set(1.0f))));
    return vf_div(vf_mul(x, top), below);
}

static inline vf gelu_any(vf x)
{
    vf h = vf_mul(x, vf_set(0.5f));
    return vf_fma(h, erf_any(vf_mul(x, vf_set(0.707106781f))), h);
}

static inline vf gelu_tanh_any(vf x)
{
    const vf c = vf_set(2 * 0.0356774081f),
             d = vf_set(2 * 0.797884561f); /* 2 sqrt(2/pi), times 0.044715 and times 1 */
    return times_sigmoid(x, vf_mul(x, vf_fma(vf_mul(x, x), c, d)));
}

#define PI_2_FAR 0x1p16f       /* from this magnitude on, pi/2 in three parts is too inexact */
#define WHOLE_PART 12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */

/* sin(x + quarters * pi/2) for |x| < PI_2_FAR. Range reduction x = n pi/2 + r, |r| <= pi/4, then the sine
 * (error 2^-28) or cosine (2^-33) of r. The first subtraction is exact, the other two are rounded. */
static inline vf sine_of(vf x, uint32_t quarters)
{
    vf to = vf_fma(x, vf_set(0.636619772f), vf_set(WHOLE_PART)), n = vf_sub(to, vf_set(WHOLE_PART));
    vi quarter = vi_add(vf_bits(to), vi_set(quarters));
    vf r = vf_fma(n, vf_set(-0x1.921fb6p+0f), x);
    r = vf_fma(n, vf_set(0x1.ee59dap-50f), vf_fma(n, vf_set(0x1.777a5cp-25f), r));
    vf s = vf_mul(r, r);
    vf sine = vf_fma(vf_set(-0x1.994b3ep-13f), s, vf_set(0x1.110756p-7f));
    sine = vf_fma(vf_mul(r, s), vf_fma(sine, s, vf_set(-0x1.555546p-3f)), r);
    vf cosine = vf_fma(vf_set(0x1.99ff3ep-16f), s, vf_set(-0x1.6c0c82p-10f));
    cosine = vf_fma(vf_mul(s, s), vf_fma(cosine, s, vf_set(0x1.55554ap-5f)),
                    vf_fma(s, vf_set(-0.5f), vf_set(1.0f)));
    vf y = vf_pick(vf_less(vi_to_float(vi_and(quarter, vi_set(1))), vf_set(1.0f)), sine, cosine);
    return vf_pick(vf_less(vi_to_float(vi_and(quarter, vi_set(2))), vf_set(1.0f)), y,
                   vf_sub(vf_set(0.0f), y));
}

/* Replaces y by f(x) in lanes where |x| >= PI_2_FAR, infinite or NaN. */
static __attribute__((noinline)) vf fix_large(vf x, vf y, float (*f)(float))
{
    float from[VF_LANES], to[VF_LANES];
    vf_store(from, x);
    vf_store(to, y);
    for (int l = 0; l < VF_LANES; l++)
        to[l] = fabsf(from[l]) < PI_2_FAR ? to[l] : f(from[l]);
    return vf_load(to);
}

static inline vf sin_any(vf x)
{
    vf y = sine_of(x, 0);
    return vm_all(vf_less(vf_abs(x), vf_set(PI_2_FAR))) ? y : fix_large(x, y, dq_sinf);
}

static inline vf cos_any(vf x)
{
    vf y = sine_of(x, 1);
    return vm_all(vf_less(vf_abs(x), vf_set(PI_2_FAR))) ? y : fix_large(x, y, dq_cosf);
}

#define HALF_PI 0x1.921fb6p+0f
#define HALF_PI_LOW -0x1.777a5cp-25f

/* An arc as the sum of an exact part `most` and a small correction `rest`, which are subtracted from pi/2 in
 * turn. `far`: the lane holds a complement to pi/2. */
typedef struct arc {
    vm is_large;
    vf most, rest;
} arc;

/* asin(|x|). For |x| above 1/2 (far) half of its complement to pi/2, asin(sqrt((1 - |x|) / 2)). Relative
 * error 2^-27.6. */
static inline arc arc_of_sine(vf x)
{
    vf a = vf_abs(x);
    vm is_large = vf_less(vf_set(0.5f), a);
    vf s = vf_pick(is_large, vf_fma(a, vf_set(-0.5f), vf_set(0.5f)), vf_mul(a, a));
    vf r = vf_pick(is_large, vf_sqrt(s), a), p = vf_set(0x1.596d2cp-5f);
    p = vf_fma(p, s, vf_set(0x1.8c2838p-6f));
    p = vf_fma(p, s, vf_set(0x1.747e4ap-5f));
    p = vf_fma(p, s, vf_set(0x1.3301e4p-4f));
    p = vf_fma(p, s, vf_set(0x1.5555c8p-3f));
    return (arc){is_large, r, vf_mul(vf_mul(r, s), p)};
}

/* The whole arc with the sign of x: pi/2 - times * arc in far lanes, else the arc. */
static inline vf arc_whole(arc a, float times, vf x)
{
    vf left = vf_sub(vf_fma(a.most, vf_set(-times), vf_set(HALF_PI)),
                     vf_fma(a.rest, vf_set(times), vf_set(-HALF_PI_LOW)));
    vf y = vf_pick(a.is_large, left, vf_add(a.most, a.rest));
    return vi_float(vi_xor(vf_bits(y), sign_of(x)));
}

static inline vf asin_any(vf x)
{
    return arc_whole(arc_of_sine(x), 2.0f, x);
}

/* acos(x) = pi/2 - asin(x). In far lanes, twice the half complement, or pi minus that. */
static inline vf acos_any(vf x)
{
    arc a = arc_of_sine(x);
    vf times = vi_float(vi_xor(vf_bits(vf_pick(a.is_large, vf_set(-2.0f), vf_set(1.0f))), sign_of(x)));
    vf quarters = vf_pick(vf_less(x, vf_set(0.0f)), vf_set(2.0f), vf_set(0.0f));
    quarters = vf_pick(a.is_large, quarters, vf_set(1.0f));
    vf low = vf_mul(quarters, vf_set(-HALF_PI_LOW)), off = vf_fma(a.rest, times, low);
    return vf_sub(vf_sub(vf_mul(quarters, vf_set(HALF_PI)), vf_mul(a.most, times)), off);
}

/* atan(x); for |x| above 1, pi/2 - atan(1 / |x|). Relative error 2^-28.5. */
static inline vf atan_any(vf x)
{
    static const float c[] = {0x1.65a64ap-7f, -0x1.fed150p-6f, 0x1.dac9dcp-5f, -0x1.58348ep-4f,
                              0x1.c099fep-4f, -0x1.2421b6p-3f, 0x1.9991fep-3f, -0x1.55553ep-2f};
    vf a = vf_abs(x), p = vf_set(-0x1.d62fd0p-10f);
    vm is_large = vf_less(vf_set(1.0f), a);
    vf t = vf_pick(is_large, vf_div(vf_set(1.0f), a), a), s = vf_mul(t, t);
    for (int i = 0; i < (int)(sizeof c / sizeof *c); i++)
        p = vf_fma(p, s, vf_set(c[i]));
    return arc_whole((arc){is_large, t, vf_mul(vf_mul(t, s), p)}, 1.0f, x);
}

/* alpha x + beta, clamped to [0, 1]. */
static inline vf hard_sigmoid_any(vf x, vf alpha, vf beta)
{
    return vf_min(vf_set(1.0f), vf_max(vf_set(0.0f), vf_fma(x, alpha, beta)));
}

static inline vf hard_swish_any(vf x)
{
    return vf_mul(x, hard_sigmoid_any(x, vf_set(1.0f / 6.0f), vf_set(0.5f)));
}

static inline vf round_any(vf x)
{
    return vf_round(x);
}

/* Rounds down; with `sign` -0, up. */
static inline vf floor_any(vf x, vf sign)
{
    vf down = vf_floor(vi_float(vi_xor(vf_bits(x), vf_bits(sign))));
    return vi_float(vi_xor(vf_bits(down), vf_bits(sign)));
}

static inline vf silu_any(vf x, vf alpha)
{
    return times_sigmoid(x, vf_mul(alpha, x));
}

static inline vf elu_any(vf x, vf alpha)
{
    return vf_pick(vf_less(x, vf_set(0.0f)), vf_mul(alpha, expm1_negative(x)), x);
}

#endif
