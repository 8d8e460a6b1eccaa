/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of integer Winograd convolution F(2×2, 3×3): 3×3 kernels at stride 1, four outputs of a channel
 * from 16 products (a direct sum takes 36). With the 4×4 input pixels d, the 3×3 weights g, and
 *
 *         1  0 -1  0          2  0  0          1  1  1  0
 *   B =   0  1  1  0    G =   1  1  1    A =   0  1 -1 -1
 *         0 -1  1  0          1 -1  1
 *         0  1  0 -1          0  0  2
 *
 * the outputs are A ((G g G') * (B d B')) A' / 4, where * is the elementwise product, summed over the
 * channels, and ' transposes. All are integers: G is twice the usual one, so that the sums are four times the
 * outputs.
 *
 * Exact: |B d B'| is at most 4 · 255 and |G g G'| at most 9 · 128, which 16 bits hold; sums are modulo
 * 2^32, and four times the outputs fit in 32 bits for at most DQ_WINOGRAD_CHANNELS channels. */
#ifndef DQ_KERNELS_WINOGRAD_H
#define DQ_KERNELS_WINOGRAD_H

#include "kernels/gemm_s8/gemm_s8.h"

enum {
    DQ_WINOGRAD_POINTS = 16,    /* elements of a 4×4 matrix, row by row */
    DQ_WINOGRAD_COLS = 16,      /* output channels of a panel */
    DQ_WINOGRAD_STEP = 16,      /* input channels are a multiple of it */
    DQ_WINOGRAD_CHANNELS = 1792 /* 4 · 9 · 255 · 128 times it is below 2^31 */
};

/** Input transform B d B' of `tiles` adjacent tiles, two pixels from one to the next. Element p of tile i and
 * channel c goes to v[p * point + i * channels + c]. The channels of the first tile's pixel in row i and
 * column j begin at x + i * row + j * pixel; `channels` is a multiple of DQ_WINOGRAD_STEP. */
typedef void dq_winograd_input_fn(const uint8_t *x, size_t row, size_t pixel, size_t tiles, size_t channels,
                                  int16_t *v, size_t point);

/** Product of one point: m[i * DQ_WINOGRAD_COLS + j] = sum over c < channels of v[i * channels + c] *
 * u[c / 2][j][c % 2], modulo 2^32, for i < rows and all columns j of a panel u; `channels` as above. */
typedef void dq_winograd_product_fn(const int16_t *v, size_t rows, size_t channels, const int16_t *u,
                                    int32_t *m);

/** Output transform init[j] + (A m A') / 4 of each tile i and column j. Element p of m is m[p * point + i *
 * DQ_WINOGRAD_COLS + j]. Output (y, x) goes to y_0[(y * width + 2 * i + x) * DQ_WINOGRAD_COLS + j], but not
 * past `width` outputs a row, nor `rows` (1 or 2) rows. tiles is half of width, rounded up. */
typedef void dq_winograd_output_fn(const int32_t *m, size_t point, const int32_t *init, size_t width,
                                   size_t rows, int32_t *y);

typedef struct dq_winograd_s8 {
    dq_winograd_input_fn *input;
    dq_winograd_product_fn *product;
    dq_winograd_output_fn *output;
} dq_winograd_s8;

#endif
