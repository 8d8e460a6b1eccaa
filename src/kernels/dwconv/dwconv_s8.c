/* SPDX-License-Identifier: Apache-2.0 */
/* 8- and 16-bit depthwise convolutions in portable C. */
#include "kernels/kernels.h"

void dq_dwconv_pairs_s8_c(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out)
{
    for (size_t j = 0; j < n; j++) {
        out[2 * j] = x[j * stride];
        out[2 * j + 1] = x[j * stride + distance];
    }
}

/* Accumulates tap by tap, so that compilers vectorize over outputs. `row_stride`, constant in each call,
 * is the distance in x of neighboring outputs. */
static inline __attribute__((always_inline)) void pairs_of_taps(const int16_t *x, size_t step, size_t rows,
                                                                const ptrdiff_t *offsets, const int16_t *w,
                                                                size_t taps, int32_t init, size_t n,
                                                                size_t row_stride, int32_t *out)
{
    for (size_t i = 0; i < rows; i++, x += step, out += n) {
        for (size_t j = 0; j < n; j++)
            out[j] = init;
        for (size_t t = 0; t < taps; t++) {
            const int16_t *from = x + offsets[t], first = w[2 * t], second = w[2 * t + 1];
            for (size_t j = 0; j < n; j++) {
                const int32_t both = first * from[row_stride * j] + second * from[row_stride * j + 1];
                out[j] = (int32_t)((uint32_t)out[j] + (uint32_t)both);
            }
        }
    }
}

void dq_dwconv_rows_s8_c(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                         const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    pairs_of_taps(x, step, rows, offsets, w, taps, init, n, 2, out);
}

void dq_dwconv_rows_s16_c(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                          const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    pairs_of_taps(x, step, rows, offsets, w, taps, init, n, 1, out);
}

void dq_dwconv_3x3_s8_rows_c(const uint8_t *x, size_t step, size_t rows, const int16_t *w, int32_t init,
                             size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++, x += step, out += n)
        for (size_t j = 0; j < n; j++) {
            uint32_t sum = (uint32_t)init;
            for (size_t r = 0; r < 3; r++)
                for (size_t c = 0; c < 3; c++)
                    sum += (uint32_t)(w[4 * r + c] * x[r * step + j + c]);
            out[j] = (int32_t)sum;
        }
}

const dq_dwconv_3x3_s8 dq_dwconv_3x3_s8_c = {.least = 1, .rows = dq_dwconv_3x3_s8_rows_c};
const dq_dwconv_requantize_s8 dq_dwconv_requantize_s8_c = {.pack = NULL};
