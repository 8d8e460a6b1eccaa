/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of floats: elementary functions, sums, and what softmax and the normalizations are made of.
 *
 * All members have the same bits on every ISA. Functions are polynomials evaluated by fused multiply-adds in
 * one order (float_math.h); their errors are measured over dense samples of all floats by tests/kernels and
 * stated there. Scalar functions of doubles, and those of floats that have no member here, are those of
 * base/math.h. Vector libraries were considered: SLEEF's results depend on whether the processor fuses, or
 * are slow where it does not.
 *
 * A sum has 16 lanes: element i is added to lane i % 16, from i = 0 up, each lane begins at +0; then the
 * lanes l and l + 8 are added, of those l and l + 4, then l + 2, then l + 1. */
#ifndef DQ_KERNELS_FLOAT_ROWS_H
#define DQ_KERNELS_FLOAT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** y[i] = f(x[i]); y may be x. NaN gives NaN, infinities the limits, denormals are numbers like others. */
typedef void dq_map_f32_fn(const float *x, size_t n, float *y);
/** The same with a parameter. */
typedef void dq_map1_f32_fn(const float *x, size_t n, float alpha, float *y);
/** y[i] = a[i * a_step] op b[i * b_step], steps 0 or 1; y may be a or b where that has step 1. */
typedef void dq_pair_f32_fn(const float *a, size_t a_step, const float *b, size_t b_step, size_t n, float *y);

enum { DQ_SOFTMAX_COLUMNS = 64 };

typedef struct dq_rows_f32 {
    dq_map_f32_fn *exp, *log, *erf, *tanh, *sigmoid;
    dq_map_f32_fn *sin, *cos; /* of numbers from 2^16 on: dq_sinf and dq_cosf of base/math.h */
    dq_map_f32_fn *asin, *acos, *atan;
    dq_map_f32_fn *softplus;   /* log(1 + exp(x)) */
    dq_map_f32_fn *mish;       /* x * tanh(softplus(x)) */
    dq_map_f32_fn *gelu;       /* h + h * erf(x * sqrt(1/2)), h = x / 2 */
    dq_map_f32_fn *gelu_tanh;  /* x * sigmoid(x * (0.0713548163 x^2 + 1.59576912)) */
    dq_map_f32_fn *hard_swish; /* x * r, r that of hard_sigmoid with 1/6 and 1/2 */
    /** y[i] = r with r = alpha * x[i] + beta, fused, but 0 where that is less and 1 where more; y may be x.
     */
    void (*hard_sigmoid)(const float *x, size_t n, float alpha, float beta, float *y);
    dq_map_f32_fn *round;  /* the nearest whole number, of two the even one */
    dq_map1_f32_fn *floor; /* alpha +0: the next whole number below; -0: above */
    dq_map1_f32_fn *silu;  /* x * sigmoid(alpha * x) */
    dq_map1_f32_fn *elu;   /* x < 0 ? alpha * (exp(x) - 1) : x */
    dq_pair_f32_fn *add, *sub, *mul, *div;
    dq_pair_f32_fn *min, *max; /* a NaN operand makes the result NaN */
    /** y[i] = x[i] < low ? low : x[i], and of that r > high ? high : r; y may be x. */
    void (*clip)(const float *x, size_t n, float low, float high, float *y);

    /** y[i] = x[i] / by, for dq_divides(by) (reciprocal.h) and each x[i] +0 or of an absolute value between
     * 2^-60 and 2^80; y may be x. */
    void (*divide)(const float *x, size_t n, float by, float *y);
    /** y[i] = r * scale, r being x[i] / scale rounded to the nearest whole number (ties to even, zero
     * positive), `low` where it is less or NaN, `high` where it is more: what dequantizing makes of
     * quantized numbers. `low` and `high` are whole and not beyond 2^17; y may be x. */
    void (*requantize)(const float *x, size_t n, float scale, float low, float high, float *y);

    /** The largest (smallest) element, NaN when there is one; -infinity (infinity) for none. Which of zeros
     * of both signs is open. */
    float (*max_of)(const float *x, size_t n);
    float (*min_of)(const float *x, size_t n);
    /** The largest of the elements that are numbers, -infinity for none; of zeros, any. */
    float (*peak)(const float *x, size_t n);
    /** y[i] = exp(x[i] - off), 0 where x[i] - off is below -126.5 ln 2, and their sum: lanes of float, which
     * are added to lanes of double after every 256 elements. No x[i] is more than `off`. y may be x. */
    double (*exp_sum)(const float *x, size_t n, float off, float *y);
    /** Softmax of each of `n` columns, 16 to DQ_SOFTMAX_COLUMNS of them, of `count` rows that are x_step
     * apart, as rows have it: with their exponentials and sum as exp_sum makes them, y is an exponential
     * times the sum's reciprocal (a division in double, rounded to float), or with `log` the difference to
     * the largest element less the logarithm of the sum (rounded to float). y has the same shape, with
     * y_step, and may be x. */
    void (*softmax_columns)(const float *x, size_t x_step, size_t count, size_t n, bool log, float *y,
                            size_t y_step);
    /** y[i] = x[i] * factor, y may be x. */
    dq_map1_f32_fn *scale;
    /** The sum, in lanes of double. */
    double (*sum)(const float *x, size_t n);
    /** sum[i] += x[t * step + i] in double, for t from 0 to count - 1, one after the other. */
    void (*add_to)(const float *x, size_t step, size_t count, size_t n, double *sum);
    /** y[i] = the largest (`least`: the smallest) of y[i] and x[t * step + i] for t below count, NaN when one
     * of them is; which of zeros of both signs is open. */
    void (*extreme_to)(const float *x, size_t step, size_t count, size_t n, bool least, float *y);
    /** The sum of d * d, d = (x[i] - high) - low in float, in lanes of double; a product and its sum are one
     * fused operation. */
    double (*squares)(const float *x, size_t n, float high, float low);
    /** y[i] = ((x[i] - high) - low) * factor * gamma[i * step] + beta[i * step] in float, the last product
     * and sum fused; gamma NULL stands for ones, beta for -0. y may be x. */
    void (*normalize)(const float *x, size_t n, float high, float low, float factor, const float *gamma,
                      const float *beta, size_t step, float *y);
    /** The sum of a[i] * b[i] in lanes of float, fused, for each of `count` rows b + t * b_step. */
    void (*dots)(const float *a, const float *b, size_t b_step, size_t n, size_t count, float *out);
    /** y[i] = fma(w[t], x[t * x_step + i], y[i]) for t from 0 to count - 1, one after the other. */
    void (*mix)(const float *w, size_t count, const float *x, size_t x_step, size_t n, float *y);
    /** y[i] = x[i] / p^(3/4) with p = bias + alpha * s, s the sum from 0 of c * c over the `count` rows
     * c = around + t * step, t from 0 up; in float, products and sums fused; p^(3/4) is
     * sqrt(p) * sqrt(sqrt(p)). */
    void (*lrn)(const float *x, const float *around, size_t step, size_t count, float alpha, float bias,
                size_t n, float *y);
} dq_rows_f32;

/** What softmax_columns has in common on every ISA. The floats of 16 lanes of DQ_SOFTMAX_COLUMNS go to their
 * doubles, which are none before the first time, and become 0; the sums of all lanes; and factors or terms,
 * from sums. */
void dq_softmax_block(float *lanes, bool first, double *total);
void dq_softmax_total(float *lanes, double *total, double *sums);
void dq_softmax_ends(const double *sums, size_t n, bool logs, float *by);

#endif
