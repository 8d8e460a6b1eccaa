/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of GEMM, GEMV and depthwise convolution with 16-bit operands, and of the requantization of
 * their sums. */
#ifndef DQ_KERNELS_GEMM_S16_H
#define DQ_KERNELS_GEMM_S16_H

#include "kernels/requantize/requantize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DQ_GEMM_S16_ROWS = 4, DQ_GEMM_S16_NR = 8, DQ_GEMM_S16_BLOCKS = 3, DQ_GEMM_S16_COLS = 24 };

/** Computes a tile. Its columns are one to three groups of DQ_GEMM_S16_NR, anywhere in memory: for i <
 * DQ_GEMM_S16_ROWS, o < blocks and j < DQ_GEMM_S16_NR
 *      c[i * DQ_GEMM_S16_COLS + o * DQ_GEMM_S16_NR + j] = sum over p < pairs of
 *          a[(p * DQ_GEMM_S16_ROWS + i) * 2] * z[2j] + a[(p * DQ_GEMM_S16_ROWS + i) * 2 + 1] * z[2j + 1]
 * with z = b[o] + offsets[p], modulo 2^32. The other columns of c are undefined after the call. */
typedef void dq_gemm_s16_fn(const int16_t *a, size_t pairs, const int16_t *const b[DQ_GEMM_S16_BLOCKS],
                            const uint32_t *offsets, size_t blocks, int32_t *c);

/** GEMV of one row of int16 with panels of int8: for o < DQ_GEMM_S16_BLOCKS and j < DQ_GEMM_S16_NR
 *      c[o * DQ_GEMM_S16_NR + j] = sum over p < pairs of x[2p] * z[2j] + x[2p + 1] * z[2j + 1]
 * with z = b[o] + p * 2 * DQ_GEMM_S16_NR, modulo 2^32. */
typedef void dq_gemv_s16s8_fn(const int16_t *x, size_t pairs, const int8_t *const b[DQ_GEMM_S16_BLOCKS],
                              int32_t *c);

/** Depthwise convolution of one channel with accumulators as result. For i < rows and j < n
 *      out[i * n + j] = init + sum over t < taps of w[2t] * z[j] + w[2t + 1] * z[j + 1]
 * with z = x + offsets[t] + i * step, modulo 2^32. |w| is at most 256. x may be read up to DQ_GEMM_S8_SLACK
 * bytes past the last element used. */
typedef void dq_dwconv_rows_s16_fn(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                                   const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out);

/** Requantizes rows × cols sums to quantized values of up to 16 bits. With s = i * stride + j, and the
 * index t = i * row_step + j * col_step of the multiplier,
 *
 *      total = sums[s] + 256 * high[s] + extra[i * extra_stride + j] + offset[t]
 *      out[i * out_stride + j] = clamp(round((total * a * b + c) / y) + zero_point, lo, hi)
 *
 * in real numbers, rounded to nearest once, ties to even. a, b and y are `factors`, b and y with index t; c
 * is c[t * c_step]. high and extra (NULL: zeros) and offset are whole numbers such that the total is exact in
 * double, in any order. out gets the lower 16 bits of the result. If an operand is not finite, or y is 0, the
 * quotient is that of IEEE 754. NaN gives lo. Bounds and zero point are in the range of an integer type of up
 * to 16 bits.
 *
 * As with 8 bits (requantize.h), double arithmetic decides nearly all roundings: that of (total - offset) *
 * scale[t] + shift[t], with the product rounded before the sum or not. If the result is at most 2^17 in
 * magnitude, its error is less than `error`; it is rounded correctly if it is no nearer to a tie. */
typedef struct dq_q16_sums {
    size_t rows, cols, stride, extra_stride, out_stride;
    const int32_t *sums, *high;
    const double *extra, *offset, *scale, *shift; /* shift: offset * scale + c / y */
    double error;                                 /* infinite if a scale or shift is not finite */
    dq_factors factors;
    const float *c; /* NULL: zeros */
    size_t c_step;
    size_t row_step, col_step; /* col_step is 0 or 1 */
    int32_t zero_point, lo, hi;
    bool narrow; /* sums + 256 * high fit in int32 */
} dq_q16_sums;
typedef void dq_requantize_s64_fn(const dq_q16_sums *s, uint16_t *out);

/** Returns the part of row i from column j on. */
static inline dq_q16_sums dq_q16_rest(const dq_q16_sums *s, size_t i, size_t j)
{
    const size_t t = i * s->row_step + j * s->col_step;
    dq_q16_sums rest = *s;
    rest.rows = 1;
    rest.cols -= j;
    rest.sums += i * s->stride + j;
    rest.high = rest.high ? rest.high + i * s->stride + j : NULL;
    rest.extra = rest.extra ? rest.extra + i * s->extra_stride + j : NULL;
    rest.offset += t;
    rest.scale += t;
    rest.shift += t;
    rest.factors.b += t * rest.factors.b_step;
    rest.factors.y += t * rest.factors.y_step;
    rest.c = rest.c ? rest.c + t * rest.c_step : NULL;
    return rest;
}

/** Requantizes columns j … j + cols - 1 of row i, with the exact formula near ties. Vector code calls it
 * for rows with results near a tie. */
void dq_requantize_s64_part(const dq_q16_sums *s, size_t i, size_t j, size_t cols, uint16_t *out);

#endif
