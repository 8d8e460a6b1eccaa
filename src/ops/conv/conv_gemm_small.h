/* SPDX-License-Identifier: Apache-2.0 */
/* Float convolutions of small images with constant weights: as products of the windows (rows) with the
 * weights (columns, in panels that are made once). An image of 7×7 would fill three panels and one column of
 * the fourth, where dq_conv_float multiplies the weights with the windows; and weights, which are most of the
 * memory there, are read straight through. */
#ifndef DQ_OPS_CONV_GEMM_SMALL_H
#define DQ_OPS_CONV_GEMM_SMALL_H

#include "ops/conv/conv_epilogue.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_conv_gemm_small {
    const dq_conv_shape *shape;
    dq_gemm_f32 product;
    const float *panels;
    size_t panel_count; /* of a group */
    bool pointwise;
    size_t row;           /* floats from a window to the next */
    size_t chunk, chunks; /* of channels that are laid out at a time */
    size_t rows_offset;   /* of the windows, in the scratch */
} dq_conv_gemm_small;

/** In prepare; `shape` lives as long as the state, and dq_im2col_pack_fit holds for its window. */
dq_status dq_conv_gemm_small_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                     dq_conv_gemm_small *c, dq_error *err);
/** Each sum runs over channels, then the kernel's elements in row-major order; padding counts as zeros. The
 * weights among the operands are not looked at. */
void dq_conv_gemm_small_run(const dq_op_call *call, const dq_conv_gemm_small *c, const dq_conv_floats *o);

#endif
