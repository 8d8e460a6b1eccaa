/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of the 8-bit depthwise convolution kernels. */
#ifndef DQ_KERNELS_DWCONV_S8_H
#define DQ_KERNELS_DWCONV_S8_H

#include "kernels/requantize/requantize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Interleaves two elements of an image row as dq_dwconv_rows_s8_fn reads them: for j < n
 *      out[2j] = x[j * stride],   out[2j + 1] = x[j * stride + distance].
 * x may be read up to DQ_GEMM_S8_SLACK bytes past the last of them. */
typedef void dq_dwconv_pairs_s8_fn(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out);

/** Depthwise convolution of one channel with accumulators as result. For i < rows and j < n
 *      out[i * n + j] = init + sum over t < taps of w[2t] * z[2j] + w[2t + 1] * z[2j + 1]
 * with z = x + offsets[t] + i * step, modulo 2^32. |w| is at most 256. x may be read up to DQ_GEMM_S8_SLACK
 * bytes past the last element used. */
typedef void dq_dwconv_rows_s8_fn(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                                  const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out);

/** The same for a 3×3 kernel at stride 1, from bytes. For i < rows and j < n
 *      out[i * n + j] = init + sum over r < 3, c < 3 of w[4 * r + c] * x[(i + r) * step + j + c].
 * |w| is at most 256, w[4 * r + 3] is 0. x may be read up to DQ_GEMM_S8_SLACK bytes past the last element
 * used. */
typedef void dq_dwconv_3x3_s8_fn(const uint8_t *x, size_t step, size_t rows, const int16_t *w, int32_t init,
                                 size_t n, int32_t *out);

typedef struct dq_dwconv_3x3_s8 {
    int64_t least; /* minimum outputs of a row for vector code */
    dq_dwconv_3x3_s8_fn *rows;
} dq_dwconv_3x3_s8;

/** Depthwise convolution of one channel with fused requantization. For i < rows and j < n, out[i * n + j]
 * is the result of dq_requantize_s32_fn for init + sum over t < elements of w[t] * x[i * down + j * stride +
 * at[t]]. stride is 1 or 2, down is not 0. x may be read up to DQ_GEMM_S8_SLACK bytes past the last element
 * used.
 *
 * `put` computes this from packed parameters of a channel: size(elements) bytes, a multiple of 8, aligned to
 * 8. `pack` makes them from the weights (|w| is at most 256), init, and multiplier 0, zero_point, lo and hi
 * of `to`. If it returns false, the caller computes accumulators and requantizes them in a second step.
 *
 * Only the offsets at[t] depend on the row pitch of x, so that they are filled in later. `pack` takes
 * dq_conv_s8_at of each element; `place` replaces it by at[t] = row * pitch + column. `place` returns the
 * bytes that it writes to `out` (NULL: that it would write), a multiple of 8, or 0 if an offset is too large.
 */
enum { DQ_CONV_S8_ROW = 256, DQ_CONV_S8_MAX = 240 /* exclusive maximum of a kernel's rows and columns */ };
static inline size_t dq_conv_s8_at(size_t row, size_t column)
{
    return row * DQ_CONV_S8_ROW + column;
}
static inline size_t dq_conv_s8_offset(size_t at, size_t pitch)
{
    return at / DQ_CONV_S8_ROW * pitch + at % DQ_CONV_S8_ROW;
}

typedef size_t dq_dwconv_requantize_size_fn(size_t elements);
typedef bool dq_dwconv_requantize_pack_fn(const int16_t *w, const size_t *at, size_t elements, int32_t init,
                                          const dq_requantize_to *to, void *packed);
typedef size_t dq_dwconv_requantize_resolve_fn(const void *packed, size_t pitch, void *out);
typedef void dq_dwconv_requantize_put_fn(const uint8_t *x, size_t row_pitch, size_t stride, size_t rows,
                                         const void *packed, size_t n, uint8_t *out);

typedef struct dq_dwconv_requantize_s8 {
    dq_dwconv_requantize_size_fn *size;
    dq_dwconv_requantize_pack_fn *pack; /* all functions are NULL if the level has no such kernel */
    dq_dwconv_requantize_resolve_fn *resolve;
    dq_dwconv_requantize_put_fn *put;
} dq_dwconv_requantize_s8;

/** A float with which NEON's fused requantization gives exact results for sums of up to `largest` in
 * magnitude; 0 if there is none. */
float dq_dwconv_exact_scale_neon(const dq_requantize_to *to, double largest);

/** For kernels that write rows of outputs in chunks. Rows have n outputs each, without gaps. The first rows
 * may be written in whole chunks: a row's last chunk ends with the row if it is long enough, else the next
 * row overwrites the excess. Returns how many rows that are. */
static inline size_t dq_dwconv_whole_chunks(size_t rows, size_t n, size_t chunk)
{
    return n >= chunk || n == 0 ? rows : rows * n < chunk ? 0 : (rows * n - chunk) / n + 1;
}

/** The first output of the chunk for outputs from `at` on. */
static inline size_t dq_dwconv_chunk_at(size_t at, size_t n, size_t chunk)
{
    return n >= chunk && n - at < chunk ? n - chunk : at;
}

/** Portable C, which kernels call for short rows. */
dq_dwconv_3x3_s8_fn dq_dwconv_3x3_s8_rows_c;

#endif
