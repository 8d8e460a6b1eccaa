/* SPDX-License-Identifier: Apache-2.0 */
/* Nearest-neighbor upsampling by two, 16 bytes at a time; the portable kernel does the tail of a row. */
#include "kernels/kernels.h"

#include <arm_neon.h>
#include <string.h>

#define TWICE(name, T, load, store, first_half, second_half)                                                 \
    static void name(const void *from, size_t vectors, void *to, void *also)                                 \
    {                                                                                                        \
        enum { LANES = 16 / sizeof(T) };                                                                     \
        const T *x = from;                                                                                   \
        T *y = to, *z = also;                                                                                \
        for (; vectors; vectors--, x += LANES, y += 2 * LANES, z += 2 * LANES) {                             \
            store(y, first_half(load(x), load(x)));                                                          \
            store(y + LANES, second_half(load(x), load(x)));                                                 \
            store(z, first_half(load(x), load(x)));                                                          \
            store(z + LANES, second_half(load(x), load(x)));                                                 \
        }                                                                                                    \
    }
TWICE(twice_1, uint8_t, vld1q_u8, vst1q_u8, vzip1q_u8, vzip2q_u8)
TWICE(twice_2, uint16_t, vld1q_u16, vst1q_u16, vzip1q_u16, vzip2q_u16)
TWICE(twice_4, uint32_t, vld1q_u32, vst1q_u32, vzip1q_u32, vzip2q_u32)
TWICE(twice_8, uint64_t, vld1q_u64, vst1q_u64, vzip1q_u64, vzip2q_u64)

void dq_upsample2x_x_neon(const void *x, size_t n, size_t width, size_t rows, void *y)
{
    static void (*const by_width[])(const void *from, size_t vectors, void *to, void *also) = {
        [1] = twice_1, [2] = twice_2, [4] = twice_4, [8] = twice_8};
    const size_t bytes = n * width, vectors = bytes / 16, left = bytes % 16;
    const char *from = x;
    char *to = y;
    for (; rows > 0; rows--, from += bytes, to += 4 * bytes) {
        char *end = to + 2 * (bytes - left), workspace[4 * 16];
        by_width[width](from, vectors, to, to + 2 * bytes);
        dq_upsample2x_x_c(from + bytes - left, left / width, width, 1, workspace);
        memcpy(end, workspace, 2 * left);
        memcpy(end + 2 * bytes, workspace, 2 * left);
    }
}
