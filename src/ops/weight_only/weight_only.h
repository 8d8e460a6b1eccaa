/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only quantization: products of float activations with quantized weights. Weights have 2, 4 or 8 bits
 * and a scale and a zero point for each block of a row, or 4 bits that index a table of 16 values.
 *
 *   y[i][n] = sum over k of x[i][k] · (q[n][k] - zero) · scale
 *
 * There are three ways to compute this:
 *
 * - Many rows: the weights are dequantized, (q - zero) * scale, for a float GEMM. Each sum is one chain of
 *   fused multiply-adds in the order of k (with group_idx: block after block). So the result has the bits of
 *   DequantizeLinear and MatMul.
 *
 * - Up to dq_weights_max_integer_rows rows: dq_nbits_s32_fn. Pieces of at most 32 activations become integers
 * of up to 22 bits with a common power of two, and the sum of a piece is exact. The rounding error of x is
 * less than that of a float sum, even if the weights of the largest activations are 0. Weights with a table
 * use the first way, and so do rows with infinities, NaN, tiny values or too large a dynamic range.
 *
 * - If the session honors the node's accuracy_level, this is 4, and weights have 4 or 8 bits: dq_nbits_s8_fn,
 *   for any number of rows. Each block of a row of x becomes round(x / s), s = max |x| / 127, and
 *
 *     y = sum over the blocks, in pieces of 32 weights in their order, of scale · (s · sum of (q - zero) · x)
 *
 *   by fused multiply-adds. The inner sum is exact (if the zero point is no integer: rounded once). Rows with
 *   an infinity or NaN use the first way.
 *
 * Results depend neither on threads nor on the processor. */
#ifndef DQ_OPS_WEIGHT_ONLY_H
#define DQ_OPS_WEIGHT_ONLY_H

#include "ops/matmul/gemm_driver_f32.h"

/** Layout of quantized weights, scales and zero points in their tensors. It is a packing key: zero it,
 * padding included, before setting fields, because it is compared as bytes. */
typedef struct dq_weight_form {
    size_t matrices, n, k;
    /* Strides of quantized values, along n (the rows of all matrices follow one another) and along k. */
    size_t n_stride, k_stride;
    size_t block, groups;          /* quantized values of a block; blocks of a row */
    size_t scale_row, scale_block; /* strides of scales, along n and along blocks */
    size_t scale_run;     /* 0, or: each scale is for so many values contiguous in memory, not for a block */
    size_t zero_row;      /* packed zero points, one for each block of a row: bytes of a row */
    size_t zero_matrix;   /* if zero_row is 0, one zero point for each row: bytes of a matrix */
    bool zeros_as_scales; /* zero points are quantized values with the layout of the scales */
    const uint32_t *sorted; /* NULL, or the order of k by blocks of group_idx; set by dq_weights_prepare */
    uint32_t bits;
    uint32_t high_first; /* bool: of two values in a byte, the first has the high bits */
    uint32_t sign;       /* signed values: mask of their sign bits in a word; else 0 */
    uint32_t scales_f16; /* bool: scales are packed as float16; set by dq_weights_prepare */
} dq_weight_form;

enum { DQ_NO_INPUT = 63 };

/** Maximum number of rows of x for which conversion to integers takes less time than the float GEMM. The bits
 * of results depend on it. */
static inline size_t dq_weights_max_integer_rows(const dq_weight_form *form)
{
    return form->bits == 8 ? 3 : 8;
}

typedef struct dq_weights {
    /* Set by the operator: */
    dq_weight_form form;
    const float *table; /* the 16 values that 4-bit weights index, or NULL */
    /* Input numbers. zeros, group_idx and bias are optional: DQ_NO_INPUT, or omitted. Only the operator reads
     * the bias. */
    uint32_t qvalues, scales, zeros, group_idx, bias;
    size_t rows;             /* rows of x, at most */
    size_t max_integer_rows; /* maximum rows of x that become integers; 0 with `table` */
    bool rounded;            /* x is rounded to 8 bits; only if dq_weights_may_round */
    bool writes_output;      /* dq_weights_io.out is set: the GEMM writes its results there */
    /* Set by dq_weights_prepare: */
    bool ordered;                 /* the order of k (group_idx) is known before the run */
    size_t blocks, words, pieces; /* of a column; upper bounds unless `ordered` */
    uint32_t *lengths;            /* words of each block; NULL unless `ordered` */
    const void *packed, *packed_scales, *packed_zeros; /* NULL: packed in each run */
    bool with_zeros, fractions;                        /* dq_nbits.zeros is used; dq_nbits.fractions */
    float middle;                                      /* dq_nbits.middle */
    size_t row_bytes;                                  /* bytes of the digits, factors and sums of a row */
    size_t scratch_size;                               /* bytes of scratch that a run needs, aligned to 64 */
    /* Byte offsets in that scratch. */
    size_t sorted_at, lengths_at, words_at, scales_at, zeros_at, x_at, digits_at, needs_float_at;
    dq_gemm_f32 product; /* the float GEMM of many rows */
} dq_weights;

/** Whether the node's accuracy_level allows 8-bit activations, the session honors it, and a kernel exists. */
bool dq_weights_may_round(const dq_op_call *call, const dq_weights *w);

/** In prepare, after the operator has set the form and checked that all inputs have its sizes. Raises
 * call->worker_scratch_size to the size that a run needs. The caller reserves w->scratch_size. */
dq_status dq_weights_prepare(dq_op_call *call, dq_weights *w, dq_error *err);

/** Callback: loads row `row` of x as floats. */
typedef void dq_weights_load_fn(const void *arg, size_t row, float *to);
/** Callback, on any thread: consumes rows × cols results (cols ≤ DQ_NBITS_COLS), tile[i * step + j]. */
typedef void dq_weights_store_fn(const void *arg, size_t row, size_t col, size_t rows, size_t cols,
                                 const float *tile, size_t step);

/** In run: packs into `scratch` the forms that prepare could not pack from constants. Fails if group_idx
 * holds an invalid block number. */
dq_status dq_weights_begin(const dq_op_call *call, const dq_weights *w, void *scratch, dq_error *err);
/** Inputs and outputs of a run. `x` holds the rows that `load` returns, contiguous, or is NULL if they are
 * not floats in memory. With w->writes_output, the float GEMM writes its results, plus `bias` unless it is
 * NULL, to `out`, rows of n floats. Else, and from the integer kernels, `store` gets the results. */
typedef struct dq_weights_io {
    dq_weights_load_fn *load;
    dq_weights_store_fn *store;
    const void *arg;
    const float *x;
    float *out;
    const float *bias;
} dq_weights_io;

/** Multiplies m rows (at most w->rows) by matrix number `matrix`. `scratch` is that of dq_weights_begin. */
void dq_weights_run(const dq_op_call *call, const dq_weights *w, void *scratch, size_t matrix, size_t m,
                    const dq_weights_io *ends);

#endif
