/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float rows with weights of 2, 4 or 8 bits that have a scale and a zero point a block. */
#ifndef DQ_KERNELS_NBITS_H
#define DQ_KERNELS_NBITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DQ_NBITS_COLS = 64,
    DQ_NBITS_PIECE = 32, /* codes of a block that are summed as integers, at most */
    DQ_NBITS_DIGITS = 3, /* of codes of 2 and 4 bits */
    DQ_NBITS_MOST = 1 << 22,
    DQ_NBITS_ROWS = 64 /* of rounded ones, at most */
};

/** Of codes of `bits` bits: words of a piece; lines of a word's digits; bytes of its digits. */
#define DQ_NBITS_PIECE_WORDS(bits) ((size_t)(DQ_NBITS_PIECE * (bits) / 32))
#define DQ_NBITS_PARTS(bits) ((bits) == 8 ? 2 : 8 / (bits))
#define DQ_NBITS_DIGIT_BYTES(bits) ((size_t)(4 * ((bits) == 8 ? 4 : DQ_NBITS_DIGITS * 8 / (bits))))
/** Bytes of a rounded row's digits for a piece. */
#define DQ_NBITS_ROUNDED_BYTES(bits) ((size_t)(DQ_NBITS_PIECE * ((bits) == 8 ? 2 : 1)))

/** A strip of DQ_NBITS_COLS columns. A word holds 32 / bits codes of one column, the first in its low bits.
 */
typedef struct dq_nbits {
    unsigned bits;           /* 2, 4 or 8 */
    const float *table;      /* of 4 bits: the 16 values of codes; NULL: a code stands for its number */
    size_t blocks;           /* along the columns */
    const uint32_t *lengths; /* of each block, in words */
    const uint32_t *words;   /* [word][column] */
    const float *scales;     /* [block][column] */
    const float *zeros;      /* [block][column], or NULL: `middle` for all */
    float middle;
    bool fractions; /* zero points may be others than the whole numbers that codes stand for */
} dq_nbits;

/** A row of x as integers: the words of each block are taken in pieces of DQ_NBITS_PIECE codes, or what is
 * left, and in each x is factor * X, X whole and at most DQ_NBITS_MOST in size. A piece whose factor is
 * below 0 (its size counts) is only a part of x: the same words come again with the next digits.
 *
 *  Of 2 and 4 bits X = 65536 d2 + 256 d1 + d0, where the digits are int8: with P = 8 / bits, digit e of code
 *  t + P * i of word n, t < P and i < 4, is digits[((n * P + t) * DQ_NBITS_DIGITS + e) * 4 + i]: the codes at
 *  bits t * bits of a word's four bytes. Of 8 bits X = 2048 d1 + d0, where the digits are int16, that of code
 *  t + 2 * i of word n, t < 2 and i < 2, number ((n * 2 + t) * 2 + e) * 2 + i, and -1024 <= d0 < 1024. */
typedef struct dq_nbits_row {
    const int8_t *digits;
    const float *factors; /* of each piece */
    const int32_t *sums;  /* of each piece: of all X */
} dq_nbits_row;

/** y[j] for all columns j of weights without a table: from 0, with piece after piece
 *
 *      y = fma(scale, f * V, y),   V = the sum of (code - whole) * X, rounded once
 *
 * where f = |factor|, and `whole` the whole number 0 ... 2^bits - 1 nearest to the zero point (ties to even;
 * 0 for NaN): a large x whose weight is 0 takes nothing from the others. With `fractions` then
 *
 *      y = fma(scale, (zero - whole) * -(f * sum), y). */
typedef void dq_nbits_s32_fn(const dq_nbits *b, const dq_nbits_row *x, float *y);

/** Rows of x rounded to 8 bits: in each piece x is factor * digit. Those of a row stand in
 * DQ_NBITS_ROUNDED_BYTES, in which that for code t + P * l of word n has the place that it would have in a
 * dq_nbits_row of one digit (of 8 bits as int16, too); behind those of a shorter piece there are zeros. */
typedef struct dq_nbits_rounded {
    size_t rows;          /* 1, or a multiple of 4 up to DQ_NBITS_ROWS */
    const int8_t *digits; /* [piece][row][byte] */
    const float *factors; /* [piece][row] */
    const float *sums;    /* of each piece's digits, [piece][row] */
} dq_nbits_rounded;

/** y[i * DQ_NBITS_COLS + j] for all rows i and columns j of weights of 4 or 8 bits without a table: from
 * 0, with piece after piece
 *
 *      y = fma(scale, factor * fma(-zero, sum, D), y)
 *
 * where D, the sum of code * digit, is exact, and so is the inner fma when the zero point is a whole number.
 */
typedef void dq_nbits_s8_fn(const dq_nbits *b, const dq_nbits_rounded *x, float *y);

/** Weights as floats, (value - zero) * scale with a rounding each, where a value is a code's number or what
 * the table has for it: of `count` words from number `first` on, all of block `block`, and all columns j.
 * They go to panels of DQ_FPANEL = 16 columns, that of code t of word first + n to
 *      out[j / 16 * panel + (n * (32 / bits) + t) * 16 + j % 16]. */
typedef void dq_nbits_f32_fn(const dq_nbits *b, size_t block, size_t first, size_t count, float *out,
                             size_t panel);

#endif
