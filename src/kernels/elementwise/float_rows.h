/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of row kernels for floats: elementary functions, sums, and the parts of softmax and the
 * normalizations.
 *
 * All members give the same bits on every ISA level. Functions are polynomials of fused multiply-adds in a
 * fixed order (float_math.h). tests/kernels measures their errors over dense samples of all floats and states
 * them. Scalar functions of doubles, and functions of floats that have no member here, are those of
 * base/math.h. Vector libraries were considered: SLEEF's results depend on whether the processor has FMA, or
 * they are slow without it.
 *
 * A sum has 16 lanes, which begin at +0. Element i is added to lane i % 16, in the order of i. Then lanes l
 * and l + 8 are added, then l and l + 4, l + 2, l + 1. */
#ifndef DQ_KERNELS_FLOAT_ROWS_H
#define DQ_KERNELS_FLOAT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** y[i] = f(x[i]); y may be x. NaN gives NaN, infinities give the limits; denormals are not flushed. */
typedef void dq_map_f32_fn(const float *x, size_t n, float *y);
/** y[i] = f(x[i], alpha), likewise. */
typedef void dq_map1_f32_fn(const float *x, size_t n, float alpha, float *y);
/** y[i] = a[i * a_step] op b[i * b_step], steps 0 or 1; y may be an operand of step 1. */
typedef void dq_pair_f32_fn(const float *a, size_t a_step, const float *b, size_t b_step, size_t n, float *y);

enum { DQ_SOFTMAX_COLUMNS = 64 };

/** Rows that several heads read, as query heads share the keys or values of a head: row t < count is the n
 * floats from rows[t * row] on. Head h < heads reads in[h * in_head …] and writes out[h * out_head …]. */
typedef struct dq_heads_f32 {
    const float *rows;
    size_t row, count, n, heads;
    const float *in;
    size_t in_head;
    float *out;
    size_t out_head;
    size_t distance; /* bytes ahead to prefetch, rounded to whole rows */
} dq_heads_f32;

typedef struct dq_rows_f32 {
    dq_map_f32_fn *exp, *log, *erf, *tanh, *sigmoid;
    dq_map_f32_fn *sin, *cos; /* from 2^16 on: dq_sinf and dq_cosf of base/math.h */
    dq_map_f32_fn *asin, *acos, *atan;
    dq_map_f32_fn *softplus;   /* log(1 + exp(x)) */
    dq_map_f32_fn *mish;       /* x * tanh(softplus(x)) */
    dq_map_f32_fn *gelu;       /* h + h * erf(x * sqrt(1/2)), h = x / 2 */
    dq_map_f32_fn *gelu_tanh;  /* x * sigmoid(x * (0.0713548163 x^2 + 1.59576912)) */
    dq_map_f32_fn *hard_swish; /* x * r, r as of hard_sigmoid with 1/6 and 1/2 */
    /** y[i] = alpha * x[i] + beta, fused, clamped to [0, 1]; y may be x. */
    void (*hard_sigmoid)(const float *x, size_t n, float alpha, float beta, float *y);
    dq_map_f32_fn *round;  /* to nearest, ties to even */
    dq_map1_f32_fn *floor; /* alpha +0: rounds down; -0: up */
    dq_map1_f32_fn *silu;  /* x * sigmoid(alpha * x) */
    dq_map1_f32_fn *elu;   /* x < 0 ? alpha * (exp(x) - 1) : x */
    dq_pair_f32_fn *add, *sub, *mul, *div;
    dq_pair_f32_fn *min, *max; /* a NaN operand makes the result NaN */
    /** y[i] = x[i] < low ? low : x[i], then r > high ? high : r of that; y may be x. */
    void (*clip)(const float *x, size_t n, float low, float high, float *y);

    /** y[i] = x[i] / by. Requires dq_divides(by) (reciprocal.h), and each x[i] +0 or |x[i]| in [2^-60, 2^80].
     * y may be x. */
    void (*divide)(const float *x, size_t n, float by, float *y);
    /** Fake quantization: y[i] = r * scale. r is x[i] / scale, rounded to the nearest integer (ties to even,
     * zero positive) and clamped to [low, high]; NaN gives `low`. `low` and `high` are integers of at most
     * 2^17 in magnitude; y may be x. */
    void (*requantize)(const float *x, size_t n, float scale, float low, float high, float *y);

    /** The largest (smallest) element, NaN if there is one; -infinity (infinity) if n is 0. For zeros of both
     * signs either may be returned. */
    float (*max_of)(const float *x, size_t n);
    float (*min_of)(const float *x, size_t n);
    /** The largest element that is not NaN, -infinity if there is none; for zeros either. */
    float (*peak)(const float *x, size_t n);
    /** y[i] = exp(x[i] - off), 0 if x[i] - off is below -126.5 ln 2. Returns their sum. It sums in float
     * lanes, which are added to double lanes after every 256 elements. Requires x[i] <= off. y may be x. */
    double (*exp_sum)(const float *x, size_t n, float off, float *y);
    /** Softmax along columns: of each of n columns, 16 <= n <= DQ_SOFTMAX_COLUMNS, over `count` rows with
     * stride x_step. Exponentials and sums are those of exp_sum. y is the exponential times the sum's
     * reciprocal (divided in double, rounded to float). With `log` it is the difference to the column's
     * maximum minus the logarithm of the sum (rounded to float). y has the shape of x, with stride y_step,
     * and may be x. */
    void (*softmax_columns)(const float *x, size_t x_step, size_t count, size_t n, bool log, float *y,
                            size_t y_step);
    /** y[i] = x[i] * factor, y may be x. */
    dq_map1_f32_fn *scale;
    /** The sum, in double lanes. */
    double (*sum)(const float *x, size_t n);
    /** sum[i] += x[t * step + i] in double, for t = 0 … count - 1 in this order. */
    void (*add_to)(const float *x, size_t step, size_t count, size_t n, double *sum);
    /** y[i] = the maximum (`least`: minimum) of y[i] and x[t * step + i] for t < count; NaN if one of them
     * is. For zeros of both signs either may be returned. */
    void (*extreme_to)(const float *x, size_t step, size_t count, size_t n, bool least, float *y);
    /** The sum of d * d, d = (x[i] - high) - low in float, in double lanes; each product is fused with its
     * sum. */
    double (*squares)(const float *x, size_t n, float high, float low);
    /** y[i] = ((x[i] - high) - low) * factor * gamma[i * step] + beta[i * step] in float; the last product is
     * fused with the sum. gamma NULL: ones, beta NULL: -0. y may be x. */
    void (*normalize)(const float *x, size_t n, float high, float low, float factor, const float *gamma,
                      const float *beta, size_t step, float *y);
    /** Scores: out[h * out_head + t] = the dot product of in + h * in_head and row t, in float lanes, fused.
     */
    void (*dots)(const dq_heads_f32 *heads);
    /** Weighted sums: out[h * out_head + i] = fma(in[h * in_head + t], rows[t * row + i], out[h * out_head +
     * i]) for t = 0 … count - 1 in this order: mix for each head. */
    void (*mix_heads)(const dq_heads_f32 *heads);
    /** y[i] = fma(w[t], x[t * x_step + i], y[i]) for t = 0 … count - 1 in this order. */
    void (*mix)(const float *w, size_t count, const float *x, size_t x_step, size_t n, float *y);
    /** y[i] = x[i] / p^(3/4) with p = bias + alpha * s. s is the sum from 0 of c * c over the `count` rows
     * c = around + t * step, in the order of t. All in float, products fused with sums; p^(3/4) is computed
     * as sqrt(p) * sqrt(sqrt(p)). */
    void (*lrn)(const float *x, const float *around, size_t step, size_t count, float alpha, float bias,
                size_t n, float *y);
} dq_rows_f32;

/** Parts of softmax_columns that all ISA levels share.
 *
 * dq_softmax_block adds the 16 float lanes of DQ_SOFTMAX_COLUMNS columns to their double lanes (sets them if
 * `first`) and zeroes the float lanes. dq_softmax_total sums all lanes. dq_softmax_ends computes factors
 * (`logs`: terms) from sums. */
void dq_softmax_block(float *lanes, bool first, double *total);
void dq_softmax_total(float *lanes, double *total, double *sums);
void dq_softmax_ends(const double *sums, size_t n, bool logs, float *by);

#endif
