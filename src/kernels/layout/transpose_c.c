/* SPDX-License-Identifier: Apache-2.0 */
/* Portable transposition in blocks that fit the first-level cache in both directions. */
#include "base/checked.h"
#include "kernels/kernels.h"

enum { BLOCK = 16 };

void dq_transpose_x8_c(const uint8_t *src, size_t src_stride, size_t rows, size_t cols, uint8_t sign_xor,
                       uint8_t *dst, size_t dst_stride)
{
    if (rows == 1 && dst_stride == 1) { /* a copy, which the compiler vectorizes */
        for (size_t c = 0; c < cols; c++)
            dst[c] = src[c] ^ sign_xor;
        return;
    }
    for (size_t r0 = 0; r0 < rows; r0 += BLOCK)
        for (size_t c0 = 0; c0 < cols; c0 += BLOCK) {
            size_t r1 = dq_least(r0 + BLOCK, rows), c1 = dq_least(c0 + BLOCK, cols);
            for (size_t c = c0; c < c1; c++)
                for (size_t r = r0; r < r1; r++)
                    dst[c * dst_stride + r] = src[r * src_stride + c] ^ sign_xor;
        }
}

#define TRANSPOSE(name, type)                                                                                \
    void name(const type *src, size_t src_stride, size_t rows, size_t cols, type *dst, size_t dst_stride)    \
    {                                                                                                        \
        for (size_t r0 = 0; r0 < rows; r0 += BLOCK)                                                          \
            for (size_t c0 = 0; c0 < cols; c0 += BLOCK) {                                                    \
                size_t r1 = dq_least(r0 + BLOCK, rows), c1 = dq_least(c0 + BLOCK, cols);                     \
                for (size_t c = c0; c < c1; c++)                                                             \
                    for (size_t r = r0; r < r1; r++)                                                         \
                        dst[c * dst_stride + r] = src[r * src_stride + c];                                   \
            }                                                                                                \
    }
TRANSPOSE(dq_transpose_x16_c, uint16_t)
TRANSPOSE(dq_transpose_x32_c, uint32_t)
