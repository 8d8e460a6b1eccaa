/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of float kernels: GEMM, GEMV, im2col and direct convolution.
 *
 * Every sum is one chain. It begins at +0, or with the sum of the steps before, and takes one fused
 * multiply-add (fmaf: product and sum rounded once) per step, in ascending order. So its bits depend neither
 * on the instruction set nor on the blocking of steps, rows and columns. Sign and payload of a NaN are
 * unspecified. */
#ifndef DQ_KERNELS_GEMM_F32_H
#define DQ_KERNELS_GEMM_F32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DQ_GEMM_F32_NR = 16 /* columns of a panel of B */ };

/** An activation of hard-swish type, however it is written. With t = fmaf(x, scale, shift), t < low ? low
 * : t, then t > high ? high : t, x becomes x * t / divisor * factor + term; each of the four operations is
 * rounded. */
typedef struct dq_hswish_f32 {
    float scale, shift, low, high, divisor, factor, term;
} dq_hswish_f32;

/** A block of a product: C (rows by cols) from A (rows by k) and B (k by cols).
 *
 *  Row i, step p of A is a[i * a_row + p]. Column j, step p of B is
 *  b[j / DQ_GEMM_F32_NR * b_panel + p * b_step + j % DQ_GEMM_F32_NR]: a plain matrix has b_panel
 * DQ_GEMM_F32_NR. All columns of the last panel are readable, unless b_panel is DQ_GEMM_F32_NR and rows is 1;
 * columns from `cols` on may hold any values. With k = 0 neither a nor b is read. Row i of C begins at c + i
 * * c_row; nothing after `cols` is written.
 *
 *  `next`, or NULL: the first panel of the next block, to be prefetched.
 *  `far`: C and z are not cached; their neighboring columns belong to the next block.
 *
 *  `more`: C holds partial sums, to which this block adds. `last`: the sums are complete after this block,
 * and C becomes clamp(alpha * sum + bias[i] + z[i * z_row + j]): three roundings (two where alpha is 1, one
 * less for a bias or a z that is NULL), then x < low ? low : x, then x > high ? high : x, and then `gate`,
 * unless it is NULL. */
typedef struct dq_gemm_block_f32 {
    size_t rows, cols, k;
    const float *a, *b;
    size_t a_row, b_step, b_panel;
    const float *next;
    float *c;
    size_t c_row;
    bool more, last, exceeds_caches;
    float alpha, low, high;
    const float *bias, *z;
    size_t z_row;
    const dq_hswish_f32 *gate;
} dq_gemm_block_f32;

typedef void dq_gemm_block_f32_fn(const dq_gemm_block_f32 *block);

/** GEMV with a matrix whose rows are contiguous along the sum: y[i] = the sum over p < k of
 *  a[i * a_row + p] * x[p], for i < rows. */
typedef void dq_gemv_f32_fn(const float *a, size_t a_row, size_t rows, size_t k, const float *x, float *y);

/** im2col into a panel: to[c * step + j] = x[c * plane + at[j]], or +0 where at[j] is negative, for c <
 * channels and j < DQ_GEMM_F32_NR. */
typedef void dq_im2col_gather_f32_fn(const float *x, const int32_t at[DQ_GEMM_F32_NR], size_t channels,
                                     size_t plane, size_t step, float *to);

/** Direct convolution of one channel: for r < rows and i < n
 *      y[r * y_row + i] = the sum over t < taps of w[t] * x[offsets[t] + r * x_row + i],
 * added to the sum in y if `more`. `last`: then clamp(sum + bias), and `gate`, as in a block. `across`, if it
 * is not 0, divides taps, and offsets[t] is offsets[t - across] + x_row from tap `across` on. */
typedef struct dq_conv_f32_rows {
    const float *x, *w;
    const size_t *offsets;
    size_t taps, across, rows, n, x_row, y_row;
    float *y;
    bool more, last;
    float bias, low, high;
    const dq_hswish_f32 *gate;
} dq_conv_f32_rows;

enum { DQ_CONV_F32_SLACK = 32 /* readable floats after the last one of x */ };

typedef void dq_conv_direct_f32_fn(const dq_conv_f32_rows *f);

enum { DQ_CONV_F32_CHANNELS = 16, DQ_CONV_F32_PLACES = 8 };

/** Depthwise convolution of DQ_CONV_F32_CHANNELS contiguous channels c, each with its own weights: for i <
 * n, a multiple of DQ_CONV_F32_PLACES,
 *      y[i * pitch + c] = clamp(sum + bias[c]),
 *      sum over t < taps of w[t * DQ_CONV_F32_CHANNELS + c] * x[offsets[t * n + i] + c].
 * The clamp is that of a block. */
typedef struct dq_dwconv_nchwc_f32 {
    const float *x, *w, *bias;
    const uint32_t *offsets;
    size_t taps, n, pitch;
    float *y;
    float low, high;
} dq_dwconv_nchwc_f32;

typedef void dq_dwconv_nchwc_f32_fn(const dq_dwconv_nchwc_f32 *f);

/** y[r * y_row + i] = x[r * x_row + i * step], for r < rows and i < n. */
typedef void dq_copy_strided_f32_fn(const float *x, size_t x_row, size_t step, size_t rows, size_t n,
                                    float *y, size_t y_row);

#endif
