/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions of small images with constant weights: some channels are turned, so that they stand
 * side by side at each place, where a plane of few places would leave most of a vector empty. In floats; and
 * of 8-bit codes, whose sums are whole numbers that floats hold (dwconv_nchwc_s8.c). */
#ifndef DQ_OPS_DWCONV_NCHWC_H
#define DQ_OPS_DWCONV_NCHWC_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

enum {
    DQ_DWCONV_NCHWC_TAPS = 64,    /* elements of a kernel, … */
    DQ_DWCONV_NCHWC_CHANNELS = 64 /* … and channels that are turned together, at most */
};

typedef struct dq_dwconv_nchwc {
    const dq_conv_shape *shape;
    const float *weights; /* of DQ_CONV_F32_CHANNELS channels side by side, by element of the kernel */
    size_t channels;      /* that are turned together, … */
    size_t blocks;        /* … how many times in an image, … */
    size_t images;        /* … and of how many images, one behind the other */
    size_t places;        /* of their results, as many as kernels take */
    uint32_t *offsets; /* of the kernel's elements, for each place; behind the images is a place of zeros */
} dq_dwconv_nchwc;

/** A task: `n` channels from `channel` on of `images` images from `image` on. */
typedef struct dq_dwconv_nchwc_task {
    size_t image, images, channel, n;
} dq_dwconv_nchwc_task;

/** Whether it can compute the shape with constant weights, and what it then does. */
bool dq_dwconv_nchwc_is_applicable(const dq_conv_shape *s, dq_reason *reason);
dq_algorithm_work dq_dwconv_nchwc_work(const dq_conv_shape *s);
/** In prepare; `shape` lives as long as the state. */
dq_status dq_dwconv_nchwc_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                  dq_dwconv_nchwc *c, dq_error *err);
/** Each sum runs over the kernel's elements in row-major order; padding counts as zeros. The weights among
 * the operands (conv_epilogue.h) are not looked at. */
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
