/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

/* Duplicates elements: two equal neighbors are one number of twice the width. */
#define TWICE(name, T, wide)                                                                                 \
    static void name(const void *from, size_t n, void *to, void *also)                                       \
    {                                                                                                        \
        typedef wide __attribute__((aligned(sizeof(T)), may_alias)) pair;                                    \
        const T *restrict x = from;                                                                          \
        pair *restrict y = to, *restrict z = also;                                                           \
        for (size_t i = 0; i < n; i++)                                                                       \
            y[i] = z[i] = (wide)(x[i] | (wide)x[i] << 8 * sizeof(T));                                        \
    }
TWICE(twice_1, uint8_t, uint16_t)
TWICE(twice_2, uint16_t, uint32_t)
TWICE(twice_4, uint32_t, uint64_t)

static void twice_8(const void *from, size_t n, void *to, void *also)
{
    const uint64_t *restrict x = from;
    uint64_t *restrict y = to, *restrict z = also;
    for (size_t i = 0; i < n; i++)
        y[2 * i] = y[2 * i + 1] = z[2 * i] = z[2 * i + 1] = x[i];
}

void dq_upsample2x_x_c(const void *x, size_t n, size_t width, size_t rows, void *y)
{
    static void (*const by_width[])(const void *from, size_t n, void *to, void *also) = {
        [1] = twice_1, [2] = twice_2, [4] = twice_4, [8] = twice_8};
    const char *from = x;
    char *to = y;
    for (size_t bytes = n * width; rows > 0; rows--, from += bytes, to += 4 * bytes)
        by_width[width](from, n, to, to + 2 * bytes);
}
