/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of requantize kernels: int32 accumulators to 8-bit quantized values.
 *
 * The result is that of the real-number formula, rounded once. Kernels compute it in up to three tiers:
 *   1. products in float, where vectors pay off: correct except within about 2^-13 of a tie;
 *   2. products in double with `scale`: correct unless DQ_NEARLY_HALF or more from a whole number;
 *   3. dq_requantize_exactly for the remaining sums: ties, and products too near one.
 *
 * Why the second tier is correct there: scale is a * b / y with up to two roundings, and the product with the
 * sum rounds a third time, so that its relative error is below 4 * 2^-53. Up to 512 in magnitude this is an
 * error below 2^-42; larger products saturate. A product at least that far from k + 1/2 is on the same side
 * of it as the real number.
 *
 * With a bias of floats, each tier adds the column's shift to the product. It is below 1 and correctly
 * rounded, so that results of up to 256 in size stay within the same bounds.
 *
 * A scale that is a * b / y exactly and has a significand of at most 22 bits, as powers of two have, gives
 * exact products with int32 sums: 31 + 22 bits fit in double. The second tier then rounds ties to even as
 * well, and the third one is not needed (`exact`). */
#ifndef DQ_KERNELS_REQUANTIZE_H
#define DQ_KERNELS_REQUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Factors of the multipliers. The multiplier of column j is a * b[j * b_step] / y[j * y_step] as a real
 * number. a is a float or a product of two. */
typedef struct dq_factors {
    double a;
    const float *b, *y;
    size_t b_step, y_step;
} dq_factors;

/** A float bias for each column. Accumulators start with start[j], an integer near bias[j] in the scale of
 * the products. shift[j] = (bias[j] - start[j] * a * b) / y is the remainder to add (dq_requantize_shift). It
 * is at most DQ_MAX_SHIFT in magnitude. shift NULL: no bias. */
typedef struct dq_requantize_bias {
    const double *shift;
    const float *bias;
    const int32_t *start;
} dq_requantize_bias;

/** Parameters and destination: the result of row i and column j goes to out[i * out_stride + j], or to
 * out[j * out_stride + i] if `transposed`. */
typedef struct dq_requantize_to {
    const double *scale; /* for each column: a * b / y in double */
    dq_factors factors;
    dq_requantize_bias bias; /* with a bias, all scales are finite */
    int32_t zero_point, lo, hi;
    bool exact; /* dq_exact_products of all columns, and no bias. false is correct, too, but slow if there are
                   ties */
    uint8_t *out;
    size_t out_stride;
    bool transposed;
} dq_requantize_to;

/** Whether products of int32 sums with scale[j], the double nearest to multiplier j, are exact in double for
 * all j < n. */
bool dq_exact_products(const double *scale, const dq_factors *factors, size_t n);

#define DQ_MAX_SHIFT 0.5000001

/** The shift of a column whose accumulators start with `start`, rounded to odd. */
double dq_requantize_shift(int32_t start, float bias, double a, float b, float y);

enum { DQ_REQUANTIZE_COLS = 16 };

/** out[j] = clamp(round(acc[j] * m) + zero_point, lo, hi) for j < n.
 *
 * m is the multiplier of column first + j * step (step 0: one for all). round is to nearest, ties to even, of
 * the product in real numbers; with a bias, of ((acc - start) * a * b + bias) / y. If a factor is not finite,
 * or y is 0, the product is that of IEEE 754 for (acc * a * b) / y. NaN gives lo. [lo, hi] is [0, 255] or
 * [-128, 127] and contains zero_point; out gets the low 8 bits. to->out, out_stride and transposed are
 * ignored. */
typedef void dq_requantize_s32_fn(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first,
                                  size_t step, uint8_t *out);

/** dq_requantize_s32_fn for the rows × cols accumulators acc[i * acc_stride + j]. The kernel may read rows of
 * acc up to the next multiple of DQ_REQUANTIZE_COLS columns. */
typedef void dq_requantize_tile_s32_fn(const int32_t *acc, size_t acc_stride, size_t rows, size_t cols,
                                       const dq_requantize_to *to);

/* ---- For kernels --------------------------------------------------------------------------------------- */

/** A double product at least this far from the nearest integer is too near a tie to be rounded. */
#define DQ_NEARLY_HALF (0.5 - 0x1p-42)

/** Double products nearer than this to an integer are rounded correctly. */
static inline double dq_requantize_tie_margin(const dq_requantize_to *to)
{
    return to->exact ? 1 : DQ_NEARLY_HALF;
}

/** Returns a sum times the multiplier of a column, plus its bias, exactly rounded and clamped to 512 in
 * magnitude. NaN gives -512. */
int32_t dq_requantize_exactly(int32_t sum, const dq_requantize_to *to, size_t column);

/** The quantized result of a sum in a column, computed exactly. */
uint8_t dq_requantize_one_exactly(int32_t sum, const dq_requantize_to *to, size_t column);

/** Recomputes exactly those of out[0 … n-1] whose double products are near a tie. */
void dq_requantize_near_tie(const int32_t *acc, size_t n, const dq_requantize_to *to, size_t first,
                            size_t step, uint8_t *out);

#endif
