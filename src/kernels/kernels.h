/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels: inner loops over pointers and sizes; no tensor, no status, no allocation. Portable C fills the
 * table, then the files of each ISA level in the mask overwrite the slots that they compute faster
 * (kernels.def lists all implementations).
 *
 * The comment of a slot's type is its contract, and holds for every implementation bit for bit unless it says
 * otherwise. Common to all: pointers need only the alignment of their element type, n may be 0, sources are
 * not read past their end, destinations not written past theirs, sources and destinations do not overlap. */
#ifndef DQ_KERNELS_KERNELS_H
#define DQ_KERNELS_KERNELS_H

#include "kernels/conv_nc4hw4/nc4hw4.h"
#include "kernels/dwconv/dwconv_s8.h"
#include "kernels/elementwise/float_rows.h"
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/gemm_s16/gemm_bytesplit_s16s8.h"
#include "kernels/gemm_s16/gemm_s16.h"
#include "kernels/gemm_s8/gemm_s8.h"
#include "kernels/pool/average_pool.h"
#include "kernels/pool/float_pool.h"
#include "kernels/pool/pool.h"
#include "kernels/reduce/reduce_axis.h"
#include "kernels/requantize/epilogue.h"
#include "kernels/requantize/requantize.h"
#include "kernels/weight_only/nbits.h"
#include "kernels/winograd/winograd.h"
#include "kernels/winograd/winograd_f32.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Quantized or dequantized rows of at least so many elements may be written with non-temporal stores. */
enum { DQ_FAR_ROW = 1 << 20 };

/** Updates *lo and *hi with the minimum and maximum of x[0 … n-1]. NaN elements are ignored. A zero result is
 * always +0, because the order of elements would decide between +0 and -0. */
typedef void dq_minmax_f32_fn(const float *x, size_t n, float *lo, float *hi);

/** y[i] = saturate(round(x[i] / scale[i * step]) + zero[i * step]): one float division, round to nearest
 * even, then the zero point, then saturation to y's type; nothing overflows in between. A NaN quotient gives
 * the type's minimum. `step` is 0 (one scale for the row) or 1; `zero` NULL means zero points of 0. */
typedef void dq_quantize_f32_u8_fn(const float *x, size_t n, const float *scale, const uint8_t *zero,
                                   size_t step, uint8_t *y);
typedef void dq_quantize_f32_s8_fn(const float *x, size_t n, const float *scale, const int8_t *zero,
                                   size_t step, int8_t *y);
typedef void dq_quantize_f32_u16_fn(const float *x, size_t n, const float *scale, const uint16_t *zero,
                                    size_t step, uint16_t *y);
typedef void dq_quantize_f32_s16_fn(const float *x, size_t n, const float *scale, const int16_t *zero,
                                    size_t step, int16_t *y);

/** y[i] = (float)(x[i] - zero[i * step]) * scale[i * step]: the difference is exact (int32: computed in 64
 * bits), then rounded to float, then one float multiplication. `step` as above. */
typedef void dq_dequantize_u8_f32_fn(const uint8_t *x, size_t n, const float *scale, const uint8_t *zero,
                                     size_t step, float *y);
typedef void dq_dequantize_s8_f32_fn(const int8_t *x, size_t n, const float *scale, const int8_t *zero,
                                     size_t step, float *y);
typedef void dq_dequantize_u16_f32_fn(const uint16_t *x, size_t n, const float *scale, const uint16_t *zero,
                                      size_t step, float *y);
typedef void dq_dequantize_s16_f32_fn(const int16_t *x, size_t n, const float *scale, const int16_t *zero,
                                      size_t step, float *y);
typedef void dq_dequantize_s32_f32_fn(const int32_t *x, size_t n, const float *scale, const int32_t *zero,
                                      size_t step, float *y);

/** The same for blocks of `block` elements; each block has its own scale and zero point. */
typedef void dq_dequantize_blocks_u8_f32_fn(const uint8_t *x, size_t blocks, size_t block, const float *scale,
                                            const uint8_t *zero, float *y);
typedef void dq_dequantize_blocks_s8_f32_fn(const int8_t *x, size_t blocks, size_t block, const float *scale,
                                            const int8_t *zero, float *y);

/** Converts between float16 and float: widening is exact; narrowing rounds to nearest even, and overflow
 * gives infinity. A NaN becomes quiet and keeps its sign and as much of its payload as fits. */
typedef void dq_convert_f16_f32_fn(const uint16_t *x, size_t n, float *y);
typedef void dq_convert_f32_f16_fn(const float *x, size_t n, uint16_t *y);

/** y[i] = saturate(round(a[i] * a_ratio + (b[i * step] * b_ratio + fixed))): each product and sum is one
 * fused multiply-add of floats, the second on the result of the first; round to nearest even; NaN gives the
 * type's minimum. `step` is 0 (one b for the row) or 1. y may be a, or where step is 1 b. */
typedef void dq_qlinear_add_u8_fn(const uint8_t *a, float a_ratio, const uint8_t *b, float b_ratio,
                                  size_t step, float fixed, size_t n, uint8_t *y);
typedef void dq_qlinear_add_s8_fn(const int8_t *a, float a_ratio, const int8_t *b, float b_ratio, size_t step,
                                  float fixed, size_t n, int8_t *y);

/** y[i] = saturate(round((a[i] - a_zero) * (b[i * step] - b_zero) * ratio + zero)). The integer product is
 * exact. Its product with ratio, and the sum with zero, are each rounded to float. Rounding, NaN, `step` and
 * aliasing of y are as above. */
typedef void dq_qlinear_mul_u8_fn(const uint8_t *a, int a_zero, const uint8_t *b, int b_zero, size_t step,
                                  float ratio, float zero, size_t n, uint8_t *y);
typedef void dq_qlinear_mul_s8_fn(const int8_t *a, int a_zero, const int8_t *b, int b_zero, size_t step,
                                  float ratio, float zero, size_t n, int8_t *y);

/** Nearest-neighbor upsampling by 2 × 2: y holds each row of x twice, with each element twice. x has `rows`
 * contiguous rows of `n` elements of `width` bytes (1, 2, 4 or 8). x and y are aligned to an element's size
 * and do not overlap. */
typedef void dq_upsample2x_x_fn(const void *x, size_t n, size_t width, size_t rows, void *y);

/** Bilinear interpolation: for i < n, with p = x + at[i] and the weights w[k] = weight[k * workspace + i],
 *      y[i] = 0 + ((w[0] * p[0] + w[1] * p[1]) + (w[2] * p[below] + w[3] * p[below + 1])).
 * All operations are in double without fused multiply-adds. y is double or, with `narrow`, rounded to float.
 * Returns whether any result is NaN. */
typedef bool dq_bilinear_f32_fn(const float *x, size_t below, const size_t *at, const double *weight,
                                size_t weight_stride, size_t n, bool narrow, void *y);

/** y[i] = table[x[i]]; y may be x. */
typedef void dq_lookup_x8_fn(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y);

typedef struct dq_kernels {
    unsigned isa; /* the ISA mask from which the kernels were selected */
#define DQ_SLOT(type, name) type *name;
#include "kernels/slots.def"
#undef DQ_SLOT
} dq_kernels;

/* Declares every implementation in kernels.def: a function, or a constant struct of functions (type `const
 * dq_gemm_s8`). */
#define DQ_KERNEL(isa, type, slot, function) extern type function;
#include "kernels/kernels.def"
#undef DQ_KERNEL

/** Fills the table for an ISA mask (dq_isa bits, see base/cpu.h). */
void dq_kernels_select(unsigned isa_mask, dq_kernels *out);

#endif
