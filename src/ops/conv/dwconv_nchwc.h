/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution of small images with constant weights in channel-blocked layout (NCHWc): a vector
 * holds several channels of one position, as a plane of few positions would leave most of a vector empty. For
 * floats, and for 8-bit values, whose sums are whole numbers that floats represent exactly
 * (dwconv_nchwc_s8.c). */
#ifndef DQ_OPS_DWCONV_NCHWC_H
#define DQ_OPS_DWCONV_NCHWC_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

enum {
    DQ_DWCONV_NCHWC_TAPS = 64,    /* kernel elements, at most */
    DQ_DWCONV_NCHWC_CHANNELS = 64 /* channels of a block, at most */
};

typedef struct dq_dwconv_nchwc {
    const dq_conv_shape *shape;
    const float *weights; /* of DQ_CONV_F32_CHANNELS channels side by side, by element of the kernel */
    size_t channels;      /* of a block */
    size_t blocks;        /* blocks of an image */
    size_t images;        /* images of a task */
    size_t positions;     /* output positions, rounded up to what kernels take */
    uint32_t *offsets;    /* of the kernel elements for each output position; after the images there is a
                             position of zeros */
} dq_dwconv_nchwc;

/** A task: `n` channels from `channel` on of `images` images from `image` on. */
typedef struct dq_dwconv_nchwc_task {
    size_t image, images, channel, n;
} dq_dwconv_nchwc_task;

/** Whether the algorithm applies to the shape with constant weights, and its work. */
bool dq_dwconv_nchwc_is_applicable(const dq_conv_shape *s, dq_reason *reason);
dq_algorithm_work dq_dwconv_nchwc_work(const dq_conv_shape *s);
/** In prepare; `shape` lives as long as the state. */
dq_status dq_dwconv_nchwc_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                  dq_dwconv_nchwc *c, dq_error *err);
/** Each sum runs over the kernel's elements in row-major order; padding counts as zeros. The weights of the
 * operands (conv_epilogue.h) are not read. */
struct dq_conv_floats;
void dq_dwconv_nchwc_run(const dq_op_call *call, const dq_dwconv_nchwc *c, const struct dq_conv_floats *o);

/* ---- Parts --------------------------------------------------------------------------------------------- */

/** All but the weights. */
dq_status dq_dwconv_nchwc_lay_out(dq_op_call *call, const dq_conv_shape *shape, dq_dwconv_nchwc *c,
                                  dq_error *err);
/** Floats of packed weights, and where element `tap` of a channel is among them. */
size_t dq_dwconv_nchwc_weights(const dq_conv_shape *s);
size_t dq_dwconv_nchwc_weight(size_t taps, size_t channel, size_t tap);
/** How many tasks there are, and task `i` of them. */
size_t dq_dwconv_nchwc_tasks(const dq_dwconv_nchwc *c);
dq_dwconv_nchwc_task dq_dwconv_nchwc_task_at(const dq_dwconv_nchwc *c, size_t i);
/** Of a room: floats of the turned images with the place of zeros; and of that with the results behind it. */
size_t dq_dwconv_nchwc_image(const dq_dwconv_nchwc *c);
size_t dq_dwconv_nchwc_workspace(const dq_dwconv_nchwc *c);
/** Results of a task whose images stand in the room. bias, that of channel 0, may be NULL. */
void dq_dwconv_nchwc_sums(const dq_op_call *call, const dq_dwconv_nchwc *c, const dq_dwconv_nchwc_task *task,
                          const float *bias, float low, float high, float *workspace);
/** How many tasks are a piece of parallel work. */
size_t dq_dwconv_nchwc_grain(const dq_dwconv_nchwc *c);

#endif
