/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes by squares in registers, for the files of instruction sets. */
#ifndef DQ_KERNELS_TRANSPOSE_TILE_H
#define DQ_KERNELS_TRANSPOSE_TILE_H

#include <stddef.h>

/** Where squares of `side` begin: the last one so that it ends with the row. It then reaches back over the
 * one before it and writes the same again, so that nothing is left over where a side is as long as a square.
 */
static inline size_t dq_next_square(size_t at, size_t side, size_t n)
{
    return at + side < n && at + 2 * side > n ? n - side : at + side;
}

/** `name`, a transpose of elements of `type`, by square(src, src_stride, dst, dst_stride); what has no whole
 * square is left to `rest`. */
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
