/* SPDX-License-Identifier: Apache-2.0 */
/* Products of float matrices (dq_gemm_block_f32_fn), block by block: the operands are read where they stand,
 * or laid out in a worker's room, through callbacks. Each sum is one chain over k from 0 up, whatever the
 * blocks. */
#ifndef DQ_OPS_FLOAT_PRODUCT_H
#define DQ_OPS_FLOAT_PRODUCT_H

#include "ops/op.h"

/** A part of a product: rows by cols results, and k steps from step p on. */
typedef struct dq_gemm_part {
    size_t batch, row, rows, col, cols, p, k;
} dq_gemm_part;

/** Fills in a part of the block: a and a_row, or b, b_step and b_panel, or c, c_row and all that `last`
 * wants. `workspace` is floats that the callback may lay the operand out in: rows * k, or as many for each of
 * k steps as the columns of whole panels. */
typedef void dq_gemm_part_fn(const void *arg, const dq_gemm_part *part, float *workspace,
                             dq_gemm_block_f32 *block);

typedef struct dq_gemm_f32 {
    size_t batches, m, n, k;
    size_t grain;     /* blocks of steps begin at multiples of it */
    size_t strip;     /* 0, or: B is made of what takes less memory, so many columns at a time, and blocks of
                         columns begin at multiples of it: a divisor of 64 */
    bool a_workspace; /* whether `a` lays out rows */
    bool flat;        /* m is 1 and B is a plain matrix, read where it stands: `b` gets no room */
    bool laid_out;    /* B stands in panels: `b` gets no room */
    bool c_workspace; /* whether `c` takes its room for the results: `done` brings them away */
    dq_gemm_part_fn *a, *b, *c;
    /* Results that are whole, or NULL: called once for each part (its p and k are those of the last steps).
     */
    void (*done)(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block);
    size_t row_block, col_block, depth, workers; /* by dq_gemm_f32_prepare */
    bool far;                                    /* likewise: results are more than caches keep */
} dq_gemm_f32;

/** Cuts into blocks and asks for the worker scratch of dq_gemm_f32_run; in prepare. */
dq_status dq_gemm_f32_prepare(dq_op_call *call, dq_gemm_f32 *f, dq_error *err);
void dq_gemm_f32_run(const dq_op_call *call, const dq_gemm_f32 *f, const void *arg);
/** A part of a batch: any rows, with at most f->col_block columns, and all steps. `workspace` is as much as
 * dq_gemm_f32_prepare asked for. */
void dq_gemm_f32_part(const dq_op_call *call, const dq_gemm_f32 *f, const void *arg, const dq_gemm_part *part,
                      void *workspace);

/** Lays a part of B out in panels: column j, step p is from[j * col_stride + p * step_stride]. */
void dq_fpanels(dq_transpose_x32_fn *transpose, const float *from, size_t col_stride, size_t step_stride,
                const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block);

/** A part of a B that is the pixels of an image, channel after channel: laid out, or where it stands when
 * that is as good. */
void dq_fpixels(dq_transpose_x32_fn *transpose, const dq_gemm_f32 *f, const float *image,
                const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block);

/** Matrices of n columns and k steps, one behind the other. */
typedef struct dq_fpanels_of {
    size_t batches, n, k;
    size_t col_stride, step_stride; /* in elements */
} dq_fpanels_of;

/** Constant input i, such matrices of floats or of 16 bits, in panels for all runs: panel j of them all
 * begins at j * DQ_FPANEL * k, and a matrix with a panel. In prepare. */
dq_status dq_fpanels_constant(dq_op_call *call, uint32_t i, const dq_fpanels_of *of, const float **panels,
                              dq_error *err);

#endif
