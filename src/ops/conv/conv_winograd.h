/* SPDX-License-Identifier: Apache-2.0 */
/* Float convolutions of 3×3 at stride 1 by kernels/winograd/winograd_f32.h: 4 multiplications for each 9 of
 * the direct way. Constant weights of small images are transformed once: they take 16/9 of their memory then,
 * and are not needed besides, unless a result is not finite. Others are transformed in each run.
 *
 * An output's error is in proportion to the largest pixel times the largest weight under its window, channel
 * by channel, where the direct way's is to each product: on random data it is the smaller one, as sums are
 * shorter, but where a small weight meets a pixel much larger than its neighbours, that pixel's rounding
 * shows. Which pixels an output depends on is not changed. Where an output is not finite, those of its chunk
 * (which the shapes alone settle) are computed directly, as transforms make NaN of infinities. */
#ifndef DQ_OPS_CONV_WINOGRAD_H
#define DQ_OPS_CONV_WINOGRAD_H

#include "ops/conv/conv_float.h"

/** Transformed weights: by group, panel of output channels and point; panels' points are `point` floats
 * apart. */
typedef struct dq_winograd_f32_form {
    dq_transpose_x32_fn *transpose;
    dq_winograd_f32_weights_fn *weights;
    size_t groups, panels, in, out; /* in, out: channels of a group */
    size_t point;
} dq_winograd_f32_form;

typedef struct dq_conv_winograd {
    const dq_conv_shape *shape;
    const dq_conv_float *direct;
    size_t across, down; /* tiles of a plane */
    size_t rows, chunks; /* rows of tiles in a chunk, at most; chunks of a plane */
    size_t tiles;        /* of a chunk */
    size_t in_padded,
        panels; /* of a group: input channels as the kernels take them, panels of output channels */
    size_t panels_per_task; /* panels whose products are made at a time */
    bool pixels_first; /* one chunk is all there is: its pixels are transformed before the panels' turn */
    bool own;          /* each thread transforms for itself what all of them need */
    dq_winograd_f32_form form;
    const void *packed;      /* weights; NULL: made in each run, at u_offset of the scratch */
    size_t v_point, m_point; /* floats from a point to the next: pixels' and products' */
    /* u: of a worker's scratch where it is its own; v: of the scratch where threads share them, else of a
     * worker's, as are the others */
    size_t u_offset, v_offset, held_offset, image_offset, sums_offset, out_offset;
} dq_conv_winograd;

/** In prepare, behind dq_conv_float_prepare for `direct`, which lives as long as the state. Input `w` has the
 * weights. */
dq_status dq_conv_winograd_prepare(dq_op_call *call, uint32_t w, const dq_conv_float *direct,
                                   dq_conv_winograd *g, dq_error *err);
/** Each sum of products runs over the channels from 0 up, one fused multiply-add a step. */
void dq_conv_winograd_run(const dq_op_call *call, const dq_conv_winograd *g, const dq_conv_floats *o);

#endif
