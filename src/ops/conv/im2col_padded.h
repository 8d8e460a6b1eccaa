/* SPDX-License-Identifier: Apache-2.0 */
/* im2col from a padded copy of the image, for first layers and large kernels. The copy has columns that are a
 * stride apart contiguous, so that each step of a panel is one span of it, or a few, for every kernel
 * element. dq_im2col_pack would compute the position of every element, which few channels do not repay. */
#ifndef DQ_OPS_IM2COL_PADDED_H
#define DQ_OPS_IM2COL_PADDED_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_im2col_padded {
    const dq_conv_shape *shape; /* NULL: not used */
    size_t extent[DQ_MAX_RANK]; /* of a plane of the copy, along all axes but the last: … */
    size_t rows, pitch;         /* … rows, and floats of each */
    size_t lines;               /* rows of results */
    size_t planes;              /* of a channel: the stride along the last axis */
    const uint32_t *steps;      /* by step of the sums, where its first element is */
    size_t copy_offset;         /* in the scratch */
} dq_im2col_padded;

/** In prepare; `shape` lives as long as the state, and dq_im2col_pack_fit its window. */
dq_status dq_im2col_padded_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_im2col_padded *p,
                                   dq_error *err);
/** Copies an image. */
void dq_im2col_padded_copy(const dq_op_call *call, const dq_im2col_padded *p, const float *x);
/** Lays out the part's columns of that image, as dq_im2col_pack does. */
void dq_im2col_padded_panels(const dq_op_call *call, const dq_im2col_padded *p, const dq_gemm_part *part,
                             float *workspace, dq_gemm_block_f32 *block);

#endif
