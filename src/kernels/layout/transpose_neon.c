/* SPDX-License-Identifier: Apache-2.0 */
/* Transposition by register tiles: 16 × 16 bytes, 8 × 8 16-bit or 4 × 4 32-bit elements. Portable C
 * transposes matrices that are smaller than a tile. */
#include "kernels/kernels.h"
#include "kernels/layout/transpose_tile.h"

#include <arm_neon.h>
#include <string.h>

enum { SIDE8 = 16, SIDE16 = 8, SIDE32 = 4 };

/* Transposes 16 × 16 bytes. Each step interleaves the first half of the vectors with the second; after four
 * steps the rows are columns. */
static inline void transpose_16(uint8x16_t v[SIDE8])
{
    for (int step = 0; step < 4; step++) {
        uint8x16_t next[SIDE8];
        for (int i = 0; i < SIDE8 / 2; i++) {
            next[2 * i] = vzip1q_u8(v[i], v[i + 8]);
            next[2 * i + 1] = vzip2q_u8(v[i], v[i + 8]);
        }
        memcpy(v, next, sizeof next);
    }
}

static inline void square_8(const uint8_t *src, size_t src_stride, uint8x16_t sign_xor, uint8_t *dst,
                            size_t dst_stride)
{
    uint8x16_t v[SIDE8];
    for (size_t r = 0; r < SIDE8; r++)
        v[r] = veorq_u8(vld1q_u8(src + r * src_stride), sign_xor);
    transpose_16(v);
    for (size_t c = 0; c < SIDE8; c++)
        vst1q_u8(dst + c * dst_stride, v[c]);
}

void dq_transpose_x8_neon(const uint8_t *src, size_t src_stride, size_t rows, size_t cols, uint8_t sign_xor,
                          uint8_t *dst, size_t dst_stride)
{
    if (rows < SIDE8 || cols < SIDE8) {
        dq_transpose_x8_c(src, src_stride, rows, cols, sign_xor, dst, dst_stride);
        return;
    }
    uint8x16_t sign_xors = vdupq_n_u8(sign_xor);
    for (size_t c = 0; c < cols; c = dq_next_square(c, SIDE8, cols))
        for (size_t r = 0; r < rows; r = dq_next_square(r, SIDE8, rows))
            square_8(src + r * src_stride + c, src_stride, sign_xors, dst + c * dst_stride + r, dst_stride);
}

static inline void square_16(const uint16_t *src, size_t src_stride, uint16_t *dst, size_t dst_stride)
{
    uint16x8_t v[SIDE16], next[SIDE16];
    for (size_t r = 0; r < SIDE16; r++)
        v[r] = vld1q_u16(src + r * src_stride);
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < SIDE16 / 2; i++) {
            next[2 * i] = vzip1q_u16(v[i], v[i + 4]);
            next[2 * i + 1] = vzip2q_u16(v[i], v[i + 4]);
        }
        memcpy(v, next, sizeof next);
    }
    for (size_t c = 0; c < SIDE16; c++)
        vst1q_u16(dst + c * dst_stride, v[c]);
}

DQ_TRANSPOSE_BY_SQUARES(dq_transpose_x16_neon, uint16_t, SIDE16, square_16, dq_transpose_x16_c)

static inline uint32x4_t first_halves(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}
static inline uint32x4_t second_halves(uint32x4_t a, uint32x4_t b)
{
    return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
}

static inline void square_32(const uint32_t *src, size_t src_stride, uint32_t *dst, size_t dst_stride)
{
    uint32x4_t v[SIDE32];
    for (size_t r = 0; r < SIDE32; r++)
        v[r] = vld1q_u32(src + r * src_stride);
    uint32x4_t even0 = vtrn1q_u32(v[0], v[1]), odd0 = vtrn2q_u32(v[0], v[1]);
    uint32x4_t even1 = vtrn1q_u32(v[2], v[3]), odd1 = vtrn2q_u32(v[2], v[3]);
    vst1q_u32(dst, first_halves(even0, even1));
    vst1q_u32(dst + dst_stride, first_halves(odd0, odd1));
    vst1q_u32(dst + 2 * dst_stride, second_halves(even0, even1));
    vst1q_u32(dst + 3 * dst_stride, second_halves(odd0, odd1));
}

DQ_TRANSPOSE_BY_SQUARES(dq_transpose_x32_neon, uint32_t, SIDE32, square_32, dq_transpose_x32_c)
