/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd F(2×2, 3×3) float convolution: 3×3 kernels at stride 1 (kernels/winograd/winograd_f32.h). It needs
 * 4 multiplications for 9 of direct convolution.
 *
 * Weights: constant weights of small images are transformed once. They then take 16/9 of their memory, and
 * the original weights are read only if an output is not finite. Other weights are transformed in each run.
 *
 * Accuracy: an output's error is proportional to the largest pixel times the largest weight in its window,
 * channel by channel; that of direct convolution is proportional to each product. On random data the Winograd
 * error is the smaller one, because the sums are shorter. It is larger where a small weight meets a pixel
 * much larger than its neighbors: then that pixel's rounding shows. An output depends on the same pixels as
 * in direct convolution.
 *
 * Infinities: transforms make NaN of infinities. If an output is not finite, all outputs of its chunk are
 * computed directly. Chunks depend on shapes only. */
#ifndef DQ_OPS_CONV_WINOGRAD_H
#define DQ_OPS_CONV_WINOGRAD_H

#include "ops/conv/conv_float.h"

/** Layout of transformed weights: by group, panel of output channels, point. The stride between points of a
 * panel is `point` floats. It is compared as bytes (a key of dq_call_pack). */
typedef struct dq_winograd_f32_form {
    dq_transpose_x32_fn *transpose;
    dq_winograd_f32_weights_fn *weights;
    size_t groups, panels, in, out; /* panels, and channels in and out, of a group */
    size_t point;
} dq_winograd_f32_form;

typedef struct dq_conv_winograd {
    const dq_conv_shape *shape;
    const dq_conv_float *direct;
    size_t across, down;      /* tiles of a plane: columns, rows */
    size_t rows, chunks;      /* maximum rows of tiles in a chunk; chunks of a plane */
    size_t tiles;             /* maximum tiles of a chunk */
    size_t in_padded, panels; /* of a group: input channels rounded up to DQ_FWINOGRAD_STEP; output panels */
    size_t panels_per_task;   /* panels multiplied at a time */
    bool pixels_first; /* one image of one chunk: all pixels are transformed first, then tasks take panels */
    bool per_thread;   /* each thread has its own copy of the shared transformed data */
    dq_winograd_f32_form form;
    const void *packed;      /* weights; NULL: transformed in each run, at u_offset */
    size_t v_point, m_point; /* stride between points, in floats: of transformed pixels; of products */
    /* Offsets into the worker scratch, with two exceptions: u_offset is into the shared scratch unless `own`,
     * v_offset is into the shared scratch if `pixels_first` and not `own`. */
    size_t u_offset, v_offset, thread_cache_offset, image_offset, sums_offset, out_offset;
} dq_conv_winograd;

/** Called in prepare, after dq_conv_float_prepare for `direct`, which must outlive the state. `w`: index of
 * the weights input. */
dq_status dq_conv_winograd_prepare(dq_op_call *call, uint32_t w, const dq_conv_float *direct,
                                   dq_conv_winograd *g, dq_error *err);
/** Each sum over transformed values runs over input channels from 0 up, one fused multiply-add a step. */
void dq_conv_winograd_run(const dq_op_call *call, const dq_conv_winograd *g, const dq_conv_floats *o);

#endif
