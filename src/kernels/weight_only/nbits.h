/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of weight-only products: float rows times weights of 2, 4 or 8 bits with a scale and a zero
 * point per block. */
#ifndef DQ_KERNELS_NBITS_H
#define DQ_KERNELS_NBITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DQ_NBITS_COLS = 64,
    DQ_NBITS_PIECE = 32,    /* maximum quantized values of a block that are summed as integers: a piece */
    DQ_NBITS_DIGITS = 3,    /* digits of X for weights of 2 and 4 bits */
    DQ_NBITS_MAX = 1 << 22, /* maximum magnitude of X */
    DQ_NBITS_ROWS = 64      /* maximum rows of dq_nbits_rounded */
};

/** For quantized values of `bits` bits: words of a piece; parts of a word, which one mask each extracts;
 * bytes of a word's digits. */
#define DQ_NBITS_PIECE_WORDS(bits) ((size_t)(DQ_NBITS_PIECE * (bits) / 32))
#define DQ_NBITS_PARTS(bits) ((bits) == 8 ? 2 : 8 / (bits))
#define DQ_NBITS_DIGIT_BYTES(bits) ((size_t)(4 * ((bits) == 8 ? 4 : DQ_NBITS_DIGITS * 8 / (bits))))
/** Bytes of a rounded row's digits per piece. */
#define DQ_NBITS_ROUNDED_BYTES(bits) ((size_t)(DQ_NBITS_PIECE * ((bits) == 8 ? 2 : 1)))

/** Weights of DQ_NBITS_COLS columns. A word holds 32 / bits quantized values of one column, the first in
 * its low bits. */
typedef struct dq_nbits {
    unsigned bits;              /* 2, 4 or 8 */
    const float *table;         /* for 4 bits: floats of the 16 quantized values; NULL: the numbers */
    size_t blocks;              /* number of blocks along a column */
    const uint32_t *lengths;    /* length of each block, in words */
    const uint32_t *words;      /* [word][column] */
    const float *scales;        /* [block][column]; NULL: scales_f16 */
    const uint16_t *scales_f16; /* the same as float16, all finite */
    const float *zeros;         /* [block][column], or NULL: `middle` for all columns */
    float middle;
    bool fractions;  /* zero points may be fractions, or out of the range of quantized values */
    size_t distance; /* bytes ahead that single passes over the weights prefetch */
} dq_nbits;

/** A row of x as integers. The words of each block are taken in pieces of DQ_NBITS_PIECE quantized values,
 * or the remainder. In each piece x is factor * X, where X is a whole number of magnitude at most
 * DQ_NBITS_MAX. A piece with a negative factor (its magnitude counts) holds only a part of x: the next
 * digits and factor are for the same words.
 *
 *  For 2 and 4 bits X = 65536 d2 + 256 d1 + d0, with digits of type int8. With P = 8 / bits, digit e of
 * quantized value t + P * i of word n, t < P and i < 4, is digits[((n * P + t) * DQ_NBITS_DIGITS + e) * 4 +
 * i]: the quantized values at bits t * bits of a word's four bytes. For 8 bits X = 2048 d1 + d0, with digits
 * of type int16. Digit e of quantized value t + 2 * i of word n, t < 2 and i < 2, has index ((n * 2 + t) * 2
 * + e) * 2 + i, and -1024 <= d0 < 1024. */
typedef struct dq_nbits_row {
    const int8_t *digits;
    const float *factors; /* factor of each piece */
    const int32_t *sums;  /* sum of all X of each piece */
} dq_nbits_row;

/** Computes y[j] for all columns j of weights without a table: from 0, piece by piece
 *
 *      y = fma(scale, f * V, y),   V = the sum of (q - whole) * X, rounded once
 *
 * where q is the quantized value, f = |factor|, and `whole` the whole number 0 ... 2^bits - 1 nearest to the
 * zero point (ties to even; 0 for NaN). So a large x whose weight is 0 takes no precision from the others.
 * With `fractions` then
 *
 *      y = fma(scale, (zero - whole) * -(f * sum), y). */
typedef void dq_nbits_s32_fn(const dq_nbits *b, const dq_nbits_row *x, float *y);

/** Rows of x rounded to 8 bits: in each piece x is factor * digit. The digits of a row take
 * DQ_NBITS_ROUNDED_BYTES per piece. That of quantized value t + P * i of word n has the index that it would
 * have in a dq_nbits_row of one digit (for 8 bits as int16, too). Shorter pieces are padded with zeros. */
typedef struct dq_nbits_rounded {
    size_t rows;          /* 1, or a multiple of 4 up to DQ_NBITS_ROWS */
    const int8_t *digits; /* [piece][row][byte] */
    const float *factors; /* [piece][row] */
    const float *sums;    /* sum of the digits, [piece][row] */
    /* If all columns have the same zero point, a quantized value: -zero * sum, [piece][row]. Otherwise NULL.
     */
    const int32_t *starts;
} dq_nbits_rounded;

/** Computes y[i * DQ_NBITS_COLS + j] for all rows i and columns j of weights of 4 or 8 bits without a
 * table: from 0, piece by piece
 *
 *      y = fma(scale, factor * fma(-zero, sum, D), y)
 *
 * where D, the sum of quantized value * digit, is exact, and so is the inner fma if the zero point is a whole
 * number. */
typedef void dq_nbits_s8_fn(const dq_nbits *b, const dq_nbits_rounded *x, float *y);

/** A block of a row of x, `words` words of quantized values, and its first piece in a dq_nbits_rounded of
 * `rows` rows. */
typedef struct dq_nbits_block {
    const float *x;
    size_t words, rows;
    unsigned bits; /* 4 or 8 */
    int8_t *digits;
    float *factors, *sums;
} dq_nbits_block;

/** Rounds a block to 8 bits: factor = max |x| / 127 (1 if that is 0) and digit = saturate(round(x / factor)),
 * ties to even, -128 for NaN. Sets all its pieces. False if a digit is -128: the results are then
 * unspecified. */
typedef bool dq_nbits_round_s8_fn(const dq_nbits_block *block);

/** Dequantizes weights: (value - zero) * scale with one rounding each, where value is the quantized value
 * or its table entry. It converts `count` words from index `first` on, all of block `block`, of all columns
 * j, to panels of DQ_GEMM_F32_NR = 16 columns. Quantized value t of word first + n goes to
 *      out[j / 16 * panel + (n * (32 / bits) + t) * 16 + j % 16]. */
typedef void dq_nbits_f32_fn(const dq_nbits *b, size_t block, size_t first, size_t count, float *out,
                             size_t panel);

#endif
