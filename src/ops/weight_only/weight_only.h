/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float rows with matrices whose weights alone are quantized: 2, 4 or 8 bits with a scale and a
 * zero point for each block of a row, or 4 bits that name one of 16 values.
 *
 *   y[i][n] = sum over k of x[i][k] · (code[n][k] - zero) · scale
 *
 * in float precision, activations as they are.
 *
 * Many rows: the weights become floats, (code - zero) * scale, and each sum is one chain of fused
 * multiply-adds, in the order of k unless the blocks are given by group_idx: the bits of DequantizeLinear and
 * MatMul. Up to dq_weights_max_integer_rows rows: dq_nbits_s32_fn, with x in pieces of at most 32 as integers
 * of which the largest has 22 bits; the sum of a piece is exact, and what x loses is less than the sum in
 * floats could lose, even where the weights of the largest x are 0. A row that cannot be taken so, for
 * infinities, NaN, tiny values or sizes too far apart, and weights that stand for values of a table, go the
 * first way.
 *
 * Where the session honors the node's accuracy_level and that is 4, and codes have 4 or 8 bits:
 * dq_nbits_s8_fn, whatever the number of rows. Each block of a row of x becomes round(x / s), s = max
 * |x| / 127, and
 *
 *   y = sum over the blocks, in pieces of 32 codes in their order, of scale · (s · sum of (code - zero) · x)
 *
 * by fused multiply-adds, where the inner sum is exact (zero points that are not whole: rounded once). A row
 * with an infinity or NaN has float precision.
 *
 * Results depend neither on threads nor on the processor. */
#ifndef DQ_OPS_WEIGHT_ONLY_H
#define DQ_OPS_WEIGHT_ONLY_H

#include "ops/matmul/gemm_driver_f32.h"

/** Where a weight's code, scale and zero point stand. Zeroed before it is filled in: compared as bytes. */
typedef struct dq_weight_form {
    size_t matrices, n, k;
    size_t n_stride, k_stride; /* codes from one n to the next (matrices follow), from one k to the next */
    size_t block, groups;      /* codes of a block; blocks of a row */
    size_t scale_row, scale_block; /* scales from one n to the next, from one block to the next */
    size_t scale_run;       /* 0, or: scales stand for runs of codes as they lie, not for blocks of rows */
    size_t zero_row;        /* packed zero points: bytes of a row, one a block … */
    size_t zero_matrix;     /* … or, with zero_row 0, bytes of a matrix, one a row … */
    bool zeros_as_scales;   /* … or codes that stand as scales do */
    const uint32_t *sorted; /* set by prepare */
    uint32_t bits;
    uint32_t high_first; /* of two codes in a byte the first is the upper one */
    uint32_t sign;       /* of codes that have one: its bits in a word */
} dq_weight_form;

enum { DQ_NO_INPUT = 63 };

/** The most rows of x that become integers: as many as take less time so. Results depend on it. */
static inline size_t dq_weights_max_integer_rows(const dq_weight_form *form)
{
    return form->bits == 8 ? 3 : 8;
}

typedef struct dq_weights {
    /* filled in by the operator: */
    dq_weight_form form;
    const float *table;                               /* values of 4-bit codes, or NULL */
    uint32_t qvalues, scales, zeros, group_idx, bias; /* inputs, from zeros on they may be DQ_NO_INPUT or left
                                                       out; the bias is the operator's */
    size_t rows;                                      /* of x, at most */
    size_t few;    /* the most rows of x that become integers, 0 with `table` */
    bool rounded;  /* x to 8 bits: only where dq_weights_may_round */
    bool straight; /* whether runs give a place for results of many rows */
    /* by prepare: */
    bool ordered;                                      /* the order of codes is known */
    size_t blocks, words, pieces;                      /* of a column */
    uint32_t *lengths;                                 /* of blocks, in words */
    const void *packed, *packed_scales, *packed_zeros; /* NULL: made in each run */
    bool with_zeros, fractions;                        /* as in dq_nbits */
    float middle;
    size_t row_bytes;    /* of a row's digits and what belongs to them */
    size_t scratch_size; /* bytes of the call's scratch that a run wants, aligned to 64 */
    size_t sorted_at, lengths_at, words_at, scales_at, zeros_at, x_at, digits_at, odd_at;
    dq_gemm_f32 product; /* of many rows */
} dq_weights;

/** Whether the node's accuracy_level allows 8-bit activations, the session honors it, and there is a kernel.
 */
bool dq_weights_may_round(const dq_op_call *call, const dq_weights *w);

/** In prepare, when the form is filled in and all inputs have the sizes it says. Raises
 * call->worker_scratch_size to what a run wants. */
dq_status dq_weights_prepare(dq_op_call *call, dq_weights *w, dq_error *err);

/** Row `row` of x as floats. */
typedef void dq_weights_load_fn(const void *arg, size_t row, float *to);
/** Takes rows × cols results (at most DQ_NBITS_COLS columns), tile[i * step + j]; called on many threads. */
typedef void dq_weights_store_fn(const void *arg, size_t row, size_t col, size_t rows, size_t cols,
                                 const float *tile, size_t step);

/** Makes for this run what does not depend on constants alone. Fails when a block number of group_idx is
 * outside the blocks. */
dq_status dq_weights_begin(const dq_op_call *call, const dq_weights *w, void *scratch, dq_error *err);
/** What a run reads and writes: `x` is the rows that `load` gives, one after the other, or NULL when they are
 * not floats in memory. With w->straight, many rows' results, plus `bias` unless it is NULL, go to
 * `out`, rows of n floats; else, and of few rows, `store` takes them. */
typedef struct dq_weights_ends {
    dq_weights_load_fn *load;
    dq_weights_store_fn *store;
    const void *arg;
    const float *x;
    float *out;
    const float *bias;
} dq_weights_ends;

/** m rows (at most w->rows) times a matrix. `scratch` is that of dq_weights_begin. */
void dq_weights_run(const dq_op_call *call, const dq_weights *w, void *scratch, size_t matrix, size_t m,
                    const dq_weights_ends *ends);

#endif
