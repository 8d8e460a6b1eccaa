/* SPDX-License-Identifier: Apache-2.0 */
/* Float convolution of small images with constant weights, as a GEMM with im2row: A is the windows (rows), B
 * is the weights (columns), packed into panels once.
 *
 * dq_conv_float has the windows as columns instead: a 7×7 image would fill three panels and one column of the
 * fourth. Weights are most of the memory here, and packed panels are read sequentially. */
#ifndef DQ_OPS_CONV_GEMM_SMALL_H
#define DQ_OPS_CONV_GEMM_SMALL_H

#include "ops/conv/conv_epilogue.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_conv_gemm_small {
    const dq_conv_shape *shape;
    dq_gemm_f32 product;
    const float *panels;
    size_t panel_count; /* panels of a group's weights */
    bool pointwise;
    size_t row;           /* stride between rows of A, in floats */
    size_t chunk, chunks; /* input channels that a task lays out; tasks per group */
    size_t rows_offset;   /* offset of A in the scratch */
} dq_conv_gemm_small;

/** Called in prepare. `shape` must outlive the state and satisfy dq_im2col_pack_fit. Packs weights w. */
dq_status dq_conv_gemm_small_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                     dq_conv_gemm_small *c, dq_error *err);
/** Each sum runs over input channels, then kernel elements in row-major order; padding counts as zeros. o->w
 * is not read. */
void dq_conv_gemm_small_run(const dq_op_call *call, const dq_conv_gemm_small *c, const dq_conv_floats *o);

#endif
