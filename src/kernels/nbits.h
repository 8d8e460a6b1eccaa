/* Products of float rows with weights of 2, 4 or 8 bits that have a scale and a zero point a block. */
#ifndef DQ_KERNELS_NBITS_H
#define DQ_KERNELS_NBITS_H

#include <stddef.h>
#include <stdint.h>

enum { DQ_NBITS_COLS = 64, DQ_NBITS_ROWS = 4 };

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

/** y[i * DQ_NBITS_COLS + j] for i < rows (1 … DQ_NBITS_ROWS) and all columns j: from 0, with block after
 * block
 *
 *      s = 0, then s = fma(value, x, s) for each code of the block,
 *      s = fma(-zero, sums[block * rows + i], s),  y = fma(scale, s, y)
 *
 * x[p * rows + i] belongs to code p of a column. Where a code stands for its number, the kernel multiplies
 * the code as it stands in the word, code · 2^(bits · t) in field t; x of all fields but a word's last has
 * been divided by that power of two. */
typedef void dq_nbits_fn(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y);

/** The power of two by which x of code p is multiplied. */
float dq_nbits_factor(const dq_nbits *b, size_t p);

#endif
