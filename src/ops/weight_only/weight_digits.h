/* SPDX-License-Identifier: Apache-2.0 */
/* Activations as integers, for products with weights of few bits. */
#ifndef DQ_OPS_WEIGHT_DIGITS_H
#define DQ_OPS_WEIGHT_DIGITS_H

#include "kernels/kernels.h"

#include <stdbool.h>

enum { DQ_WEIGHT_PARTS = 2 };

/** A row of weights' blocks, and x as it meets them: each block from a word's first code on. */
typedef struct dq_weight_row {
    const float *x;
    const uint32_t *lengths; /* of blocks, in words */
    size_t blocks, fields;   /* codes of a word */
} dq_weight_row;

/** Where digits go, the factors of their pieces, and the pieces' sums: of integers, or of rounded x. */
typedef struct dq_weight_digits {
    float *factors, *sums;
    int32_t *totals;
    int8_t *digits;
} dq_weight_digits;

/** A dq_nbits_row. A piece's values are integers times a power of two, rounded, so that the largest is
 * DQ_NBITS_MOST / 2 or more in size. Those up to a quarter of the largest lose at most 2^-18 of the sum of
 * their sizes by it: else they make a second part, with its own factor, sum and digits. False when
 * DQ_WEIGHT_PARTS are not enough or one leaves the range of floats. */
bool dq_weight_digits_make(const dq_weight_row *row, dq_weight_digits to);

/** A row of a dq_nbits_rounded of `rows` rows: `to` is its first piece. In each block factor = max |x| / 127
 * (or 1 when that is 0), digits are saturate(round(x / factor)), ties to even. False when one is none of -127
 * … 127: x holds an infinity or NaN, or a block nothing but values so small that its factor is no longer
 * exact. */
bool dq_weight_digits_round(const dq_kernels *kernels, const dq_weight_row *row, size_t rows,
                            dq_weight_digits to);

#endif
