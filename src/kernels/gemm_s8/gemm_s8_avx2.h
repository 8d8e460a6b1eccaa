/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of AVX2's integer products.
 *
 * Without a dot instruction for bytes, the fast way is vpmaddubsw, which adds the two products of a pair of
 * positions in 16 bits and saturates: 255 * (w0 + w1) must fit. It does for every uint8 when the pair's
 * positive weights, and its negative ones, sum to at most 128 in size; and so do the sums of several pairs,
 * which are widened to 32 bits only after a batch of them: the more the better. So packing splits weights
 * into what is safe and the rest, w = safe + rest: all safe parts run through the fast loop, and the rest,
 * which is zero nearly everywhere, stands in a list for each column.
 *
 * A batch is `depth` groups of four positions, whose first pairs make one sum for each column, and whose
 * second pairs another. Which groups these are is open: packing puts heavy ones together with light ones, so
 * that few sums exceed what is safe. Depth 2 suits normally distributed weights whose maximum is 3.5 sigma,
 * depth 4 those of 5 sigma, depth 8 those of 10 sigma, with rests for about 2 % of the weights.
 *
 * Columns whose mean is far from zero (codes with a zero point far from their middle) are first shifted by
 * it: the sum of a row then stands for it.
 *
 * Where rests are too many, weights become words, and products are halved in number (S. Winograd, "A New
 * Algorithm for Inner Product", 1968):
 *     x0 w0 + x2 w2 = (x0 + w2)(x2 + w0) - x0 x2 - w0 w2
 * A group of four positions takes one vpmaddwd and three additions for eight columns, with any weights; the
 * last two terms are summed once for a row and once for a column.
 *
 * A panel of 16 columns:
 *     head    64 bytes
 *     order   which group of the row each group of weights meets, padded to 64 bytes
 *     safe    groups of 4 positions: 16 columns of 4 bytes; each run padded to whole groups
 *     rest    records of four entries, column after column
 * or
 *     head
 *     terms   16 int32, the sums of w0 w2 + w1 w3
 *     words   of each group, for columns 0 … 7 and for 8 … 15: w2 and w3 of each, then w0 and w1 of each
 */
#ifndef DQ_KERNELS_GEMM_S8_AVX2_H
#define DQ_KERNELS_GEMM_S8_AVX2_H

#include "kernels/gemm_s8/gemm_s8.h"

enum { DQ_AVX2_NR = 16, DQ_AVX2_GROUP = 4, DQ_AVX2_GROUP_BYTES = DQ_AVX2_NR * DQ_AVX2_GROUP };

/* How the weights may be multiplied. */
enum { DQ_AVX2_WORDS, DQ_AVX2_BATCHES };

typedef struct dq_avx2_head {
    uint8_t mode, any; /* any: there are records */
    uint16_t depth;
    uint16_t records[DQ_AVX2_NR]; /* of each column */
    int8_t shift[DQ_AVX2_NR];     /* what was taken from each column's weights, where `shifted` */
    uint8_t shifted, padding[11];
} dq_avx2_head;

/** Four entries of a column's rest: sum over e of rest[e] * (A at position[e]), where positions count on from
 * run to run, each padded to whole groups. The first two make a safe pair, and the last two. */
typedef struct dq_avx2_record {
    uint16_t position[4];
    int8_t rest[4];
} dq_avx2_record;

static inline size_t dq_avx2_groups(size_t run)
{
    return (run + DQ_AVX2_GROUP - 1) / DQ_AVX2_GROUP;
}

/** Bytes of the order of so many groups. */
static inline size_t dq_avx2_order_bytes(size_t groups)
{
    return (groups * sizeof(uint16_t) + 63) / 64 * 64;
}

extern const dq_gemm_s8 dq_gemm_s8_few_avx2;
dq_gemm_s8_panel_size_fn dq_gemm_s8_avx2_panel_size;
dq_gemm_s8_pack_fn dq_gemm_s8_avx2_pack;

#endif
