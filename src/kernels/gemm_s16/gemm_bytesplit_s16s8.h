/* SPDX-License-Identifier: Apache-2.0 */
/* Products of int8 weights with 16-bit codes, byte by byte, where a processor adds four products at once: a
 * code is 256 · upper + lower byte, the upper one signed, and planes hold quads of such bytes, which meet
 * four neighbouring weights. */
#ifndef DQ_KERNELS_GEMM_BYTESPLIT_S16S8_H
#define DQ_KERNELS_GEMM_BYTESPLIT_S16S8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DQ_GEMM_BYTESPLIT_ROWS = 16, /* of weights, in a panel */
    DQ_GEMM_BYTESPLIT_COLS = 16, /* of codes: two octets that stand anywhere */
    DQ_GEMM_BYTESPLIT_NR = 8,
    DQ_GEMM_BYTESPLIT_DEPTH = 16, /* quads of a block */
    DQ_GEMM_BYTESPLIT_PANELS = 2, /* that are multiplied together */
    DQ_GEMM_BYTESPLIT_WEIGHTS =
        DQ_GEMM_BYTESPLIT_ROWS * DQ_GEMM_BYTESPLIT_DEPTH * 4, /* bytes of a panel's block */
    DQ_GEMM_BYTESPLIT_CODES =
        2 * DQ_GEMM_BYTESPLIT_COLS * DQ_GEMM_BYTESPLIT_DEPTH * 4, /* bytes of a block of columns */
    DQ_GEMM_BYTESPLIT_SUMS = DQ_GEMM_BYTESPLIT_PANELS * DQ_GEMM_BYTESPLIT_ROWS * DQ_GEMM_BYTESPLIT_COLS
};

/** Brings columns to the kernel's own form: quad q of column j is the four bytes at x[j / 8] + offsets[q] + j
 * % 8 * 4, of lower bytes, and those `upper` bytes further, of upper ones, for q < quads. What is behind the
 * last quad of a block of `to` is left as it is. */
typedef void dq_gemm_bytesplit_s16s8_gather_fn(const uint8_t *const x[2], const uint32_t *offsets,
                                               size_t quads, size_t upper, uint8_t *to);

/** Sums of 1 or 2 panels of weights with gathered columns, modulo 2^32, of lower bytes and of upper ones:
 *      lower[i * DQ_GEMM_BYTESPLIT_COLS + j] = sum over quads q and their bytes b of
 *          w[(i / 16 * blocks + q / 16) * DQ_GEMM_BYTESPLIT_WEIGHTS + i % 16 * 64 + q % 16 * 4 + b] * column
 * j's byte for i < panels * DQ_GEMM_BYTESPLIT_ROWS. `sums` are those of each row of w. */
typedef void dq_gemm_bytesplit_s16s8_tile_fn(const int8_t *w, const int32_t *sums, size_t panels,
                                             size_t blocks, const uint8_t *gathered, int32_t *lower,
                                             int32_t *upper);

typedef struct dq_gemm_bytesplit_s16s8 {
    dq_gemm_bytesplit_s16s8_gather_fn *gather;
    dq_gemm_bytesplit_s16s8_tile_fn *tile;
    void (*begin)(void), (*done)(void); /* around calls of tile, on the same thread; NULL: nothing to do */
} dq_gemm_bytesplit_s16s8;

#endif
