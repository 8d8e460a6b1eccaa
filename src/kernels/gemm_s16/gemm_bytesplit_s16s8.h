/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of the byte-split GEMM: int8 weights times 16-bit quantized values, for ISA levels with a
 * dot-product instruction for bytes. A 16-bit value is 256 · upper byte (signed) + lower byte. The two byte
 * planes hold quads: four contiguous bytes, which are multiplied by four contiguous weights. */
#ifndef DQ_KERNELS_GEMM_BYTESPLIT_S16S8_H
#define DQ_KERNELS_GEMM_BYTESPLIT_S16S8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DQ_GEMM_BYTESPLIT_ROWS = 16, /* rows of weights in a panel */
    DQ_GEMM_BYTESPLIT_COLS = 16, /* columns of quantized values: two groups of NR, anywhere in memory */
    DQ_GEMM_BYTESPLIT_NR = 8,
    DQ_GEMM_BYTESPLIT_DEPTH = 16, /* quads of a block along the sum */
    DQ_GEMM_BYTESPLIT_PANELS = 2, /* maximum panels of a tile */
    DQ_GEMM_BYTESPLIT_WEIGHTS =
        DQ_GEMM_BYTESPLIT_ROWS * DQ_GEMM_BYTESPLIT_DEPTH * 4, /* bytes of a panel's block */
    DQ_GEMM_BYTESPLIT_CODES =
        2 * DQ_GEMM_BYTESPLIT_COLS * DQ_GEMM_BYTESPLIT_DEPTH * 4, /* bytes of a block of columns */
    DQ_GEMM_BYTESPLIT_SUMS = DQ_GEMM_BYTESPLIT_PANELS * DQ_GEMM_BYTESPLIT_ROWS * DQ_GEMM_BYTESPLIT_COLS
};

/** Packs columns for the kernel. For q < quads, the lower bytes of quad q of column j are the four bytes
 * at x[j / 8] + offsets[q] + j % 8 * 4; its upper bytes are `upper` bytes further. The rest of the
 * last block of `to` is not written. */
typedef void dq_gemm_bytesplit_s16s8_gather_fn(const uint8_t *const x[2], const uint32_t *offsets,
                                               size_t quads, size_t upper, uint8_t *to);

/** Packs columns of a pointwise convolution in the same form, from channels as they are in memory: channel
 * `c` of column j < n (1 to DQ_GEMM_BYTESPLIT_COLS) is x[c * step + j] ^ sign_xor, where sign_xor is 0
 * or 0x8000. Missing columns, and missing channels of the last quad, get arbitrary values. */
typedef void dq_gemm_bytesplit_s16s8_split_fn(const uint16_t *x, size_t step, size_t channels, size_t n,
                                              uint16_t sign_xor, uint8_t *to);

/** Computes 1 or 2 panels of weights times packed columns, modulo 2^32, separately for lower and upper bytes:
 *      lower[i * DQ_GEMM_BYTESPLIT_COLS + j] = sum over quads q and their bytes b of
 *          w[(i / 16 * blocks + q / 16) * DQ_GEMM_BYTESPLIT_WEIGHTS + i % 16 * 64 + q % 16 * 4 + b]
 *          * byte b of quad q of column j
 * for i < rows, at most DQ_GEMM_BYTESPLIT_PANELS * DQ_GEMM_BYTESPLIT_ROWS, with blocks =
 * dq_gemm_bytesplit_s16s8_blocks(quads). The other rows of lower and upper are undefined after the call.
 * Panels and blocks are whole: weights after the last row and the last quad are 0. `sums` has the sum of each
 * row of w. */
typedef void dq_gemm_bytesplit_s16s8_tile_fn(const int8_t *w, const int32_t *sums, size_t rows, size_t quads,
                                             const uint8_t *gathered, int32_t *lower, int32_t *upper);

static inline size_t dq_gemm_bytesplit_s16s8_blocks(size_t quads)
{
    return (quads + DQ_GEMM_BYTESPLIT_DEPTH - 1) / DQ_GEMM_BYTESPLIT_DEPTH;
}

typedef struct dq_gemm_bytesplit_s16s8 {
    dq_gemm_bytesplit_s16s8_gather_fn *gather;
    dq_gemm_bytesplit_s16s8_split_fn *split;
    dq_gemm_bytesplit_s16s8_tile_fn *tile;
    /* Called before and after calls of tile, on the same thread; NULL: nothing to do. */
    void (*begin)(void), (*done)(void);
} dq_gemm_bytesplit_s16s8;

#endif
