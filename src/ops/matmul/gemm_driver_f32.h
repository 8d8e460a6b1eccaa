/* SPDX-License-Identifier: Apache-2.0 */
/* Driver of the blocked float GEMM (dq_gemm_block_f32_fn). Callbacks set the operands of each block: pointers
 * into the tensors, or packed copies in the workspace of a thread. Each sum is one chain of fused
 * multiply-adds over ascending k, independent of the block sizes. */
#ifndef DQ_OPS_GEMM_DRIVER_F32_H
#define DQ_OPS_GEMM_DRIVER_F32_H

#include "ops/op.h"

/** A block of a product: rows by cols results, and terms p … p + k - 1 of the sums. */
typedef struct dq_gemm_part {
    size_t batch, row, rows, col, cols, p, k;
} dq_gemm_part;

/** Sets one operand of the block: a and a_row; b, b_step and b_panel; or c, c_row and the epilogue. The
 * callback may pack the operand into `workspace`: rows * k floats of A, or k floats for each column of whole
 * panels. */
typedef void dq_gemm_part_fn(const void *arg, const dq_gemm_part *part, float *workspace,
                             dq_gemm_block_f32 *block);

typedef struct dq_gemm_f32 {
    size_t batches, m, n, k;
    size_t grain; /* blocks along k begin at multiples of it */
    /* 0, or: `b` decodes quantized weights, `strip` columns at a time. Blocks of columns begin at multiples
     * of it. It divides 64. */
    size_t strip;
    bool a_workspace; /* `a` packs rows into its workspace */
    bool flat;        /* m is 1 and B is a plain matrix, read without a copy: `b` gets no workspace */
    bool b_packed;    /* B is packed already: `b` gets no workspace */
    bool c_workspace; /* `c` uses its workspace for the results, which `done` stores */
    dq_gemm_part_fn *a, *b, *c;
    /* Called once for each finished block of results (p and k are those of the last steps); or NULL. */
    void (*done)(const void *arg, const dq_gemm_part *part, const dq_gemm_block_f32 *block);
    /* Set by dq_gemm_f32_prepare: rows and columns of a task; terms of a block along k (KC); threads. `far`:
     * the results exceed the caches. */
    size_t row_block, col_block, depth, workers;
    bool exceeds_caches;
} dq_gemm_f32;

/** In prepare: chooses the block sizes and reserves the worker scratch of dq_gemm_f32_run. */
dq_status dq_gemm_f32_prepare(dq_op_call *call, dq_gemm_f32 *f, dq_error *err);
void dq_gemm_f32_run(const dq_op_call *call, const dq_gemm_f32 *f, const void *arg);
/** Computes a block of one matrix on this thread: any rows, at most f->col_block columns, all of k.
 * `workspace` has the size that dq_gemm_f32_prepare reserves for a worker. */
void dq_gemm_f32_part(const dq_op_call *call, const dq_gemm_f32 *f, const void *arg, const dq_gemm_part *part,
                      void *workspace);

/** Packs a block of B into panels in `workspace` and sets `block` to them. Element (p, j) of B is
 * from[j * col_stride + p * step_stride]. */
void dq_pack_b_f32(dq_transpose_x32_fn *transpose, const float *from, size_t col_stride, size_t step_stride,
                   const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block);

/** Sets `block` to a block of B whose columns are the spatial positions of an NCHW image: packed into
 * `workspace`, or read in `image` itself if that is as fast. */
void dq_pack_b_nchw_f32(dq_transpose_x32_fn *transpose, const dq_gemm_f32 *f, const float *image,
                        const dq_gemm_part *part, float *workspace, dq_gemm_block_f32 *block);

/** A batch of contiguous k × n matrices. */
typedef struct dq_pack_b_shape {
    size_t batches, n, k;
    size_t col_stride, step_stride; /* in elements */
} dq_pack_b_shape;

/** In prepare: packs constant input i into panels, once for all runs. The input holds the matrices `of` as
 * float, float16 or bfloat16. Panel j of the batch begins at j * DQ_GEMM_F32_NR * k; each matrix begins a new
 * panel. */
dq_status dq_panels_f32_constant(dq_op_call *call, uint32_t i, const dq_pack_b_shape *of,
                                 const float **panels, dq_error *err);

#endif
