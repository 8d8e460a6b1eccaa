/* Elementary functions of a vector of floats, over the operations that a vec_<isa>.h defines:
 *
 *   vf, vi, vm, vd    VF_LANES floats, as many 32-bit integers, a choice for each, VD_LANES doubles
 *   vf_min(a, b)      a < b ? a : b, so that b stays where either is NaN; vf_max likewise
 *   vf_less(a, b)     false for NaN; vf_unordered(a): a is NaN
 *   vf_pick(m, a, b)  m ? a : b; vm_all(m): every m
 *   vf_bits, vi_float the bits as they are; vi_to_float the number, rounded
 *   vf_half(a, h)     half h of VF_HALVES as doubles
 *
 * Each function has one order of operations, every product with its sum fused, so that all ISAs give the same
 * bits. Polynomials are minimax fits for the relative error of the function (the exponents beside them), made
 * for this file. */
#ifndef DQ_KERNELS_FLOAT_MATH_H
#define DQ_KERNELS_FLOAT_MATH_H

#define LOG2_E 1.44269504f
#define LN2_HIGH 0.693145752f /* 16 bits: times a whole number below 256 it is exact */
#define LN2_LOW 1.42860677e-6f
#define ROUNDER 12582912.0f /* 1.5 * 2^23: adding it leaves no fraction bits */

static inline vf vf_abs(vf a)
{
    return vi_float(vi_and(vf_bits(a), vi_set(0x7fffffff)));
}

/* |a| with the sign of b */
static inline vf vf_copy_sign(vf a, vf b)
{
    return vi_float(vi_or(vi_and(vf_bits(a), vi_set(0x7fffffff)), vi_and(vf_bits(b), vi_set(0x80000000))));
}

/* 2^n for -126 <= n <= 127 */
static inline vf two_to(vi n)
{
    return vi_float(vi_left_23(vi_add(n, vi_set(127))));
}

/* x = n ln 2 + r, |r| <= ln 2 / 2: gives exp(r) - 1 and n. For |x| below 2^21. */
static inline vf reduced_expm1(vf x, vi *n)
{
    vf t = vf_fma(x, vf_set(LOG2_E), vf_set(ROUNDER)), whole = vf_sub(t, vf_set(ROUNDER));
    vf r = vf_fma(whole, vf_set(-LN2_HIGH), x), p;
    r = vf_fma(whole, vf_set(-LN2_LOW), r);
    *n = vi_sub(vf_bits(t), vi_set(0x4b400000));
    p = vf_set(0x1.9f07a6p-13f); /* 2^-34.1 */
    p = vf_fma(p, r, vf_set(0x1.6d8dacp-10f));
    p = vf_fma(p, r, vf_set(0x1.111272p-7f));
    p = vf_fma(p, r, vf_set(0x1.55548ep-5f));
    p = vf_fma(p, r, vf_set(0x1.555554p-3f));
    p = vf_fma(p, r, vf_set(0.5f));
    return vf_fma(p, vf_mul(r, r), r);
}

/* For |x| <= 87, where the result is a normal number, so that n can be added to the exponent's bits. For
 * NaN it is anything. */
static inline vf exp_middle(vf x)
{
    vi n;
    vf q = reduced_expm1(x, &n);
    return vi_float(vi_add(vf_bits(vf_add(vf_set(1.0f), q)), vi_left_23(n)));
}

/* Any x. The power of two goes in two steps, so that only the last one rounds, to a denormal, 0 or infinity;
 * the same bits as exp_middle's where that is enough for all of the vector. */
static inline vf exp_any(vf x)
{
    if (vm_all(vf_less(vf_abs(x), vf_set(87.0f))))
        return exp_middle(x);
    vi n, half;
    vf q = reduced_expm1(vf_max(vf_set(-105.0f), vf_min(vf_set(89.0f), x)), &n);
    half = vi_right_1(n);
    return vf_mul(vf_mul(vf_add(vf_set(1.0f), q), two_to(half)), two_to(vi_sub(n, half)));
}

/* exp(x) - 1 for x <= 0 */
static inline vf expm1_negative(vf x)
{
    vi n;
    vf q = reduced_expm1(vf_max(vf_set(-30.0f), x), &n), scale = two_to(n);
    return vf_fma(q, scale, vf_sub(scale, vf_set(1.0f)));
}

/* log(1 + f) + e ln 2 for sqrt(1/2) - 1 <= f <= sqrt(2) - 1 */
static inline vf log_of_parts(vf f, vf e)
{
    vf p = vf_set(-0x1.38b78ep-4f); /* 2^-27.3 */
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
    vi bits = vf_bits(scaled), from = vi_sub(bits, vi_set(0x3f3504f3)); /* sqrt(1/2) */
    vi e = vi_right_23(from);
    vf f = vf_sub(vi_float(vi_sub(bits, vi_left_23(e))), vf_set(1.0f));
    vf exponent = vf_sub(vi_to_float(e), vf_pick(denormal, vf_set(23.0f), vf_set(0.0f)));
    vf y = log_of_parts(f, exponent);
    y = vf_pick(vf_less(x, vf_set(INFINITY)), y, x); /* also NaN */
    y = vf_pick(vf_less(vf_set(0.0f), x), y, vf_set(-INFINITY));
    y = vf_pick(vf_less(x, vf_set(0.0f)), vf_set(NAN), y);
    return vf_pick(vf_unordered(x), x, y);
}

static inline vf erf_any(vf x)
{
    vf t = vf_min(vf_set(3.95f), vf_abs(x)), s = vf_mul(t, t); /* NaN stays; beyond, it is 1 */
    vf p = vf_set(0x1.6510c8p-14f);                            /* x + x p: 2^-31.7 */
    p = vf_fma(p, s, vf_set(-0x1.aca394p-11f));
    p = vf_fma(p, s, vf_set(0x1.550a46p-8f));
    p = vf_fma(p, s, vf_set(-0x1.b81524p-6f));
    p = vf_fma(p, s, vf_set(0x1.ce2e54p-4f));
    p = vf_fma(p, s, vf_set(-0x1.812744p-2f));
    p = vf_fma(p, s, vf_set(0x1.06eba8p-3f));
    vf small = vf_fma(t, p, t);
    vf q = vf_set(-0x1.c20084p-13f); /* 1 - exp(-t q): 2^-28.3 */
    q = vf_fma(q, t, vf_set(0x1.a60814p-9f));
    q = vf_fma(q, t, vf_set(-0x1.774948p-6f));
    q = vf_fma(q, t, vf_set(0x1.af40b8p-4f));
    q = vf_fma(q, t, vf_set(0x1.457a70p-1f));
    q = vf_fma(q, t, vf_set(0x1.20e6aep+0f));
    vf large = vf_sub(vf_set(1.0f), exp_middle(vf_mul(q, vf_sub(vf_set(0.0f), t))));
    return vf_copy_sign(vf_pick(vf_less(vf_set(0.9f), t), large, small), x);
}

static inline vf tanh_any(vf x)
{
    vf t = vf_min(vf_set(10.0f), vf_abs(x)), s = vf_mul(t, t);
    vf p = vf_set(-0x1.7363fap-8f); /* 2^-27.6 */
    p = vf_fma(p, s, vf_set(0x1.519c8ap-6f));
    p = vf_fma(p, s, vf_set(-0x1.b827fcp-5f));
    p = vf_fma(p, s, vf_set(0x1.110692p-3f));
    p = vf_fma(p, s, vf_set(-0x1.555530p-2f));
    vf small = vf_fma(t, vf_mul(p, s), t);
    vf e = exp_middle(vf_add(t, t));
    vf large = vf_sub(vf_set(1.0f), vf_div(vf_set(2.0f), vf_add(e, vf_set(1.0f))));
    return vf_copy_sign(vf_pick(vf_less(vf_set(0.625f), t), large, small), x);
}

/* The exponential's argument is never positive, so that it does not overflow. */
static inline vf sigmoid_any(vf x)
{
    vf e = exp_any(vf_sub(vf_set(0.0f), vf_abs(x)));
    return vf_div(vf_pick(vf_less(x, vf_set(0.0f)), e, vf_set(1.0f)), vf_add(vf_set(1.0f), e));
}

/* max(x, 0) + log(1 + e), e = exp(-|x|): half of 1 + e where that is above sqrt(2) */
static inline vf softplus_any(vf x)
{
    vf e = exp_any(vf_sub(vf_set(0.0f), vf_abs(x)));
    vm halve = vf_less(vf_set(0.414f), e);
    vf f = vf_pick(halve, vf_fma(e, vf_set(0.5f), vf_set(-0.5f)), e);
    vf log1p = log_of_parts(f, vf_pick(halve, vf_set(1.0f), vf_set(0.0f)));
    return vf_add(vf_max(vf_set(0.0f), x), log1p);
}

/* With e = exp(-|x|), tanh(log(1 + exp(x))) is (1 + 2e) / (1 + 2e + 2e^2) for x >= 0, otherwise
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

static inline vf times_sigmoid(vf x, vf s)
{
    vf e = exp_any(vf_sub(vf_set(0.0f), vf_abs(s)));
    vf top = vf_mul(x, vf_pick(vf_less(s, vf_set(0.0f)), e, vf_set(1.0f)));
    return vf_div(top, vf_add(vf_set(1.0f), e));
}

static inline vf gelu_any(vf x)
{
    vf h = vf_mul(x, vf_set(0.5f));
    return vf_fma(h, erf_any(vf_mul(x, vf_set(0.707106781f))), h);
}

static inline vf gelu_tanh_any(vf x)
{
    vf cubed = vf_mul(vf_mul(x, x), vf_set(2 * 0.0356774081f)); /* 2 sqrt(2/pi), times 0.044715 and 1 */
    return times_sigmoid(x, vf_mul(x, vf_add(cubed, vf_set(2 * 0.797884561f))));
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
