/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition of matrices by square register tiles, for the kernels of the ISA levels. */
#ifndef DQ_KERNELS_TRANSPOSE_TILE_H
#define DQ_KERNELS_TRANSPOSE_TILE_H

#include <stddef.h>

/** Start of the next tile of `side` elements. The last tile ends with the row: it overlaps the one before it
 * and writes the same values again, so that no tail is left if n >= side. */
static inline size_t dq_next_square(size_t at, size_t side, size_t n)
{
    return at + side < n && at + 2 * side > n ? n - side : at + side;
}

/** Defines `name`, which transposes elements of `type` with the tile kernel
 * square(src, src_stride, dst, dst_stride). Matrices smaller than a tile in one direction go to `rest`. */
#define DQ_TRANSPOSE_BY_SQUARES(name, type, side, square, rest)                                              \
    void name(const type *src, size_t src_stride, size_t rows, size_t cols, type *dst, size_t dst_stride)    \
    {                                                                                                        \
        if (rows < (side) || cols < (side)) {                                                                \
            rest(src, src_stride, rows, cols, dst, dst_stride);                                              \
            return;                                                                                          \
        }                                                                                                    \
        for (size_t c = 0; c < cols; c = dq_next_square(c, side, cols))                                      \
            for (size_t r = 0; r < rows; r = dq_next_square(r, side, rows))                                  \
                square(src + r * src_stride + c, src_stride, dst + c * dst_stride + r, dst_stride);          \
    }

#endif
