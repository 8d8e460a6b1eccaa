/* SPDX-License-Identifier: Apache-2.0 */
/* im2col from a padded copy of the image, for first layers and large kernels. The copy is split by column
 * modulo the stride, so that each step of a panel is one contiguous span of it, or a few spans, for every
 * kernel element. dq_im2col_pack computes the position of every element, which costs too much for few
 * channels. */
#ifndef DQ_OPS_IM2COL_PADDED_H
#define DQ_OPS_IM2COL_PADDED_H

#include "ops/conv/conv_shape.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_im2col_padded {
    const dq_conv_shape *shape; /* NULL: not used */
    size_t extent[DQ_MAX_RANK]; /* padded length of all axes but the last */
    size_t rows, pitch;         /* rows of a plane of the copy, and floats of a row */
    size_t lines;               /* output rows */
    size_t planes;              /* planes of a channel: the stride along the last axis */
    const uint32_t *steps;      /* for each step of the GEMM: offset of its first element in the copy */
    size_t copy_offset;         /* of the copy, in the scratch */
} dq_im2col_padded;

/** Called in prepare. `shape` must outlive the state and satisfy dq_im2col_pack_fit. Sets p->shape to NULL if
 * dq_im2col_pack is the better choice. */
dq_status dq_im2col_padded_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_im2col_padded *p,
                                   dq_error *err);
/** Copies one image at x with its padding. */
void dq_im2col_padded_copy(const dq_op_call *call, const dq_im2col_padded *p, const float *x);
/** Packs the block's columns from the copy, as dq_im2col_pack does. */
void dq_im2col_padded_panels(const dq_op_call *call, const dq_im2col_padded *p, const dq_gemm_part *part,
                             float *workspace, dq_gemm_block_f32 *block);

#endif
