/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of float activations to integers, for products with weights of 2, 4 or 8 bits
 * (kernels/weight_only/nbits.h). A piece is up to DQ_NBITS_PIECE activations whose products are summed in
 * integers. Digits are the int8 (or int16) parts of such an integer. */
#ifndef DQ_OPS_WEIGHT_DIGITS_H
#define DQ_OPS_WEIGHT_DIGITS_H

#include "kernels/kernels.h"

#include <stdbool.h>

enum { DQ_WEIGHT_PARTS = 2 /* parts of a piece, at most */ };

/** A row of x in the order of the packed weights: each quantization block begins at the first value of a
 * word, padded with zeros to whole words. */
typedef struct dq_weight_row {
    const float *x;
    const uint32_t *lengths; /* words of each block */
    size_t blocks, fields;   /* fields: quantized weights in a word */
} dq_weight_row;

/** Output arrays: factor, sum and digits of each piece. Sums are `totals` of the integers, or `sums` of the
 * rounded values, of which `starts` are multiples. */
typedef struct dq_weight_digits {
    float *factors, *sums;
    int32_t *totals, *starts;
    int8_t *digits;
} dq_weight_digits;

/** Fills a dq_nbits_row. The values of a piece become integers times a common power of two, rounded, the
 * largest at least DQ_NBITS_MAX / 2 in magnitude. Rounding must change the values up to a quarter of the
 * largest by at most 2^-18 of the sum of their magnitudes. If it changes them by more, they become a second
 * part with its own factor, sum and digits. False if DQ_WEIGHT_PARTS parts are not enough, or a factor leaves
 * the range of floats. */
bool dq_weight_digits_make(const dq_weight_row *row, dq_weight_digits to);

/** Fills a row of a dq_nbits_rounded of `rows` rows: 8-bit dynamic quantization by block. `to` is its first
 * piece. In each block, factor = max |x| / 127 (1 if that is 0), and digits are saturate(round(x / factor)),
 * ties to even. starts = -zero * sum, where `zero` is a quantized value. False if a digit is outside -127 …
 * 127: x holds an infinity or NaN, or the values of a block are so small that its factor is not exact. */
bool dq_weight_digits_round(const dq_kernels *kernels, const dq_weight_row *row, size_t rows, int32_t zero,
                            dq_weight_digits to);

#endif
