/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of float Winograd convolution F(2×2, 3×3): 3×3 kernels at stride 1, four outputs of a channel
 * from 16 products (a direct sum takes 36). With the 4×4 input pixels d, the 3×3 weights g, and
 *
 *         1  0 -1  0          1   0   0          1  1  1  0
 *   B =   0  1  1  0    G =  1/2 1/2 1/2    A =  0  1 -1 -1
 *         0 -1  1  0         1/2-1/2 1/2
 *         0  1  0 -1          0   0   1
 *
 * the outputs are A ((G g G') * (B d B')) A', where * is the elementwise product, summed over the channels,
 * and ' transposes. Every sum and product is rounded to float, in this order: first down the columns, then
 * along the rows. The rows of B are one sum each; those of G are x, ((x + z) + y) / 2, ((x + z) - y) / 2 and
 * z; those of A are (x + y) + z and (y - z) - w. Output (y, x) depends only on the 3×3 pixels from (y, x) on.
 * The payload of a NaN is not specified. */
#ifndef DQ_KERNELS_WINOGRAD_F32_H
#define DQ_KERNELS_WINOGRAD_F32_H

#include <stdbool.h>
#include <stddef.h>

enum {
    DQ_FWINOGRAD_POINTS = 16, /* elements of a 4×4 matrix, row by row */
    DQ_FWINOGRAD_STEP = 16    /* input and output channels are multiples of it */
};

/** Input transform B d B' of each channel: element p of channel c goes to v[p * point + c]. The channels of
 * pixel p begin at d[p]; `channels` is a multiple of DQ_FWINOGRAD_STEP. */
typedef void dq_winograd_f32_input_fn(const float *const d[DQ_FWINOGRAD_POINTS], size_t channels, float *v,
                                      size_t point);

/** Weight transform G g G' of channels × DQ_FWINOGRAD_STEP kernels. Element t of kernel j of channel c is
 * g[(c * 9 + t) * DQ_FWINOGRAD_STEP + j]; element p goes to u[p * point + c * DQ_FWINOGRAD_STEP + j]. */
typedef void dq_winograd_f32_weights_fn(const float *g, size_t channels, float *u, size_t point);

/** Output transform A m A' of each channel j, where element p of m is m[p * point + j], plus bias[j], then
 * x < low ? low : x, then x > high ? high : x. Output p goes to y[p][j]. `channels` is a multiple of
 * DQ_FWINOGRAD_STEP. Returns whether all results are finite before the bounds. */
typedef bool dq_winograd_f32_output_fn(const float *m, size_t point, size_t channels, const float *bias,
                                       float low, float high, float *const y[4]);

/* 1-D Winograd F(2, 3): A ((G g) * (B x)), two outputs of 3 taps from 4 products, not 6. Two taps use F(2,
 * 2), which has no point 2: B x is x0 - x1, x1, 0, x1 - x2, and G g is g0, g0 + g1, 0, g1. Longer kernels are
 * sums of such, point by point. */

/** Input transform B x of panels × DQ_GEMM_F32_NR tiles. Element j of tile i is x[j * x_row + i]. Point p
 * goes to v[p][i / DQ_GEMM_F32_NR * panel + i % DQ_GEMM_F32_NR]. With 2 taps v[2] is not written, and element
 * 3 not read. */
typedef void dq_winograd_f32_line_fn(const float *x, size_t x_row, size_t panels, size_t taps,
                                     float *const v[4], size_t panel);

/** Output transform A m of tiles i < n, a multiple of DQ_GEMM_F32_NR. Element p of m is m[p * point + i].
 * Adds bias, then applies the bounds as above: output q goes to y[q * n + i]. Returns whether all are finite
 * before the bounds. */
typedef bool dq_winograd_f32_line_output_fn(const float *m, size_t point, size_t n, float bias, float low,
                                            float high, float *y);

typedef struct dq_winograd_f32 {
    dq_winograd_f32_input_fn *input;
    dq_winograd_f32_weights_fn *weights;
    dq_winograd_f32_output_fn *output;
    dq_winograd_f32_line_fn *line;
    dq_winograd_f32_line_output_fn *line_output;
} dq_winograd_f32;

#endif
