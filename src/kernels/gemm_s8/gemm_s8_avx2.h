/* SPDX-License-Identifier: Apache-2.0 */
/* Packed weights of the AVX2 8-bit GEMM.
 *
 * Without a dot-product instruction for bytes, the fast instruction is vpmaddubsw. It adds the two products
 * of a pair of positions in 16 bits and saturates, so that 255 * (w0 + w1) must fit. It fits for every uint8
 * activation if the positive weights of the pair, and its negative ones, each sum to at most 128 in
 * magnitude. The same bound holds for sums of several pairs. They are widened to 32 bits only after a batch:
 * the larger the batch, the faster. So packing splits weights, w = safe + rest. The fast loop multiplies all
 * safe parts. The rest, which is zero almost everywhere, is a sparse list for each column.
 *
 * A batch is `depth` groups of four positions. In each column, the first pairs of the groups make one sum,
 * and the second pairs another. Packing chooses the groups of a batch: it combines groups of large weights
 * with groups of small ones, so that few sums exceed the bound. Depth 2 suits normally distributed weights
 * whose maximum is 3.5 sigma, depth 4 those of 5 sigma, depth 8 those of 10 sigma, with rests for about 2 %
 * of the weights.
 *
 * Columns whose mean is far from zero (quantized values with a zero point far from the middle of their range)
 * are first shifted by the mean. The kernel adds shift * (sum of the row of A).
 *
 * If the rest has too many entries, weights are stored as 16-bit words, and the number of products is halved
 * (S. Winograd, "A New Algorithm for Inner Product", 1968):
 *     x0 w0 + x2 w2 = (x0 + w2)(x2 + w0) - x0 x2 - w0 w2
 * A group of four positions takes one vpmaddwd and three additions for eight columns, with any weights. The
 * last two terms are summed once per row and once per column.
 *
 * A panel of 16 columns:
 *     head    64 bytes
 *     order   for each group of weights the index of its group in a row of A, padded to 64 bytes
 *     safe    groups of 4 positions: 16 columns of 4 bytes; each segment padded to whole groups
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

/* Algorithms (dq_avx2_head.mode): Winograd's on 16-bit words, or batches of safe parts. */
enum { DQ_AVX2_WORDS, DQ_AVX2_BATCHES };

typedef struct dq_avx2_head {
    uint8_t mode, any; /* any: the rest is not empty */
    uint16_t depth;
    uint16_t records[DQ_AVX2_NR]; /* number for each column */
    int8_t shift[DQ_AVX2_NR];     /* subtracted from each column's weights, if `shifted` */
    uint8_t shifted, padding[11];
} dq_avx2_head;

/** Four entries of a column's rest, which add the sum over e of rest[e] * A[position[e]]. Positions count
 * through all segments of a row, each padded to whole groups. The first two entries make a safe pair, and so
 * do the last two. */
typedef struct dq_avx2_record {
    uint16_t position[4];
    int8_t rest[4];
} dq_avx2_record;

static inline size_t dq_avx2_groups(size_t run)
{
    return (run + DQ_AVX2_GROUP - 1) / DQ_AVX2_GROUP;
}

/** Bytes of the `order` part of a panel. */
static inline size_t dq_avx2_order_bytes(size_t groups)
{
    return (groups * sizeof(uint16_t) + 63) / 64 * 64;
}

extern const dq_gemm_s8 dq_gemm_s8_few_avx2;
dq_gemm_s8_panel_size_fn dq_gemm_s8_avx2_panel_size;
dq_gemm_s8_pack_fn dq_gemm_s8_avx2_pack;
dq_gemm_s8_used_fn dq_gemm_s8_avx2_used;

#endif
