/* Products of float rows with weights of 2, 4 or 8 bits that have a scale and a zero point a block. */
#ifndef DQ_KERNELS_NBITS_H
#define DQ_KERNELS_NBITS_H

#include <stddef.h>
#include <stdint.h>

enum {
    DQ_NBITS_COLS = 64,
    DQ_NBITS_PIECE = 32, /* codes of a block that are summed as integers, at most */
    DQ_NBITS_DIGITS = 3,
    DQ_NBITS_ROWS = 4 /* side by side, of rounded ones */
};

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
} dq_nbits;

/** A row of x as integers: the words of each block are taken in pieces of DQ_NBITS_PIECE codes, or what is
 * left, and in each x is factor * (65536 d2 + 256 d1 + d0), where the digits are int8. A piece whose factor
 * is below 0 (its size counts) is only a part of x: the same words come again with the next digits.
 *
 *  With P = 8 / bits, digit e of code t + P * i of word n, t < P and i < 4, is
 *  digits[((n * P + t) * DQ_NBITS_DIGITS + e) * 4 + i]: the codes at bits t * bits of a word's four bytes. */
typedef struct dq_nbits_row {
    const int8_t *digits;
    const float *factors; /* of each piece */
    const float *sums;    /* of each piece's digits: sum e of piece p is sums[p * DQ_NBITS_DIGITS + e] */
} dq_nbits_row;

/** y[j] for all columns j of weights without a table: from 0, with piece after piece
 *
 *      y = fma(scale, fma(t2, 65536 * f, fma(t1, 256 * f, t0 * f)), y),   te = fma(-zero, sum e, De)
 *
 * where f = |factor|, and De, the sum of code * de, is exact. te is, too, when the zero point is a whole
 * number: a large x whose weight is 0 takes nothing from the others. */
typedef void dq_nbits_fn(const dq_nbits *b, const dq_nbits_row *x, float *y);

/** Rows of x rounded to 8 bits: in each piece x is factor * digit. Digit of row i for code t + 2 * l of word
 * n, t < 2 and l < 4, stands at digits[((n * 2 + t) * rows + i) * 4 + l]. */
typedef struct dq_nbits_rounded {
    size_t rows; /* 1 or DQ_NBITS_ROWS */
    const int8_t *digits;
    const float *factors; /* [piece][row] */
    const float *sums;    /* of each piece's digits, [piece][row] */
} dq_nbits_rounded;

/** y[i * DQ_NBITS_COLS + j] for all rows i and columns j of weights of 4 bits without a table: from 0, with
 * piece after piece
 *
 *      y = fma(scale, factor * fma(-zero, sum, D), y)
 *
 * where D, the sum of code * digit, is exact, and so is the inner fma when the zero point is a whole number.
 */
typedef void dq_nbits_rounded_fn(const dq_nbits *b, const dq_nbits_rounded *x, float *y);

/** Weights as floats, (value - zero) * scale with a rounding each, where a value is a code's number or what
 * the table has for it: of `count` words from number `first` on, all of block `block`, and all columns j.
 * They go to panels of DQ_FPANEL = 16
 * columns: that of code t of word first + n is out[j / 16 * panel + (n * (32 / bits) + t) * 16 + j % 16]. */
typedef void dq_nbits_floats_fn(const dq_nbits *b, size_t block, size_t first, size_t count, float *out,
                                size_t panel);

#endif
