/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution of small images with constant weights in channel-blocked layout (NCHWc). A vector
 * holds several channels of one position, because a plane of few positions would leave most of a vector
 * empty. It serves floats, and also 8-bit quantized values, whose sums are integers that floats represent
 * exactly (dwconv_nchwc_s8.c). */
#ifndef DQ_OPS_DWCONV_NCHWC_H
#define DQ_OPS_DWCONV_NCHWC_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

enum {
    DQ_DWCONV_NCHWC_TAPS = 64,    /* maximum kernel elements */
    DQ_DWCONV_NCHWC_CHANNELS = 64 /* maximum channels of a block */
};

typedef struct dq_dwconv_nchwc {
    const dq_conv_shape *shape;
    const float *weights; /* packed: by block of DQ_CONV_F32_CHANNELS channels, kernel element, channel */
    size_t channels;      /* channels of a block */
    size_t blocks;        /* blocks of an image */
    size_t images;        /* images of a task */
    size_t positions;     /* output positions of a task, rounded up to DQ_CONV_F32_PLACES */
    uint32_t *offsets;    /* input offset of each kernel element for each output position; padding has
                             that of the zeros after the images */
} dq_dwconv_nchwc;

/** A task: channels channel … channel + n - 1 of images image … image + images - 1. */
typedef struct dq_dwconv_nchwc_task {
    size_t image, images, channel, n;
} dq_dwconv_nchwc_task;

/** Whether the algorithm applies to the shape, given constant weights; and its work. */
bool dq_dwconv_nchwc_is_applicable(const dq_conv_shape *s, dq_reason *reason);
dq_algorithm_work dq_dwconv_nchwc_work(const dq_conv_shape *s);
/** Called in prepare. `shape` must outlive the state. Packs weights input w and sets the worker scratch. */
dq_status dq_dwconv_nchwc_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape,
                                  dq_dwconv_nchwc *c, dq_error *err);
/** Each sum runs over kernel elements in row-major order; padding counts as zeros. o->w (conv_epilogue.h) is
 * not read. */
struct dq_conv_floats;
void dq_dwconv_nchwc_run(const dq_op_call *call, const dq_dwconv_nchwc *c, const struct dq_conv_floats *o);

/* ---- Shared with dwconv_nchwc_s8.c --------------------------------------------------------------------- */

/** Prepares all fields but `weights`. */
dq_status dq_dwconv_nchwc_lay_out(dq_op_call *call, const dq_conv_shape *shape, dq_dwconv_nchwc *c,
                                  dq_error *err);
/** Number of floats of the packed weights; and the index of element `tap` of a channel in them. */
size_t dq_dwconv_nchwc_weights(const dq_conv_shape *s);
size_t dq_dwconv_nchwc_weight(size_t taps, size_t channel, size_t tap);
/** Number of tasks; and task `i`. */
size_t dq_dwconv_nchwc_tasks(const dq_dwconv_nchwc *c);
dq_dwconv_nchwc_task dq_dwconv_nchwc_task_at(const dq_dwconv_nchwc *c, size_t i);
/** Floats of a worker's images in NCHWc with the position of zeros after them; and of the whole workspace,
 * which has the results after that. */
size_t dq_dwconv_nchwc_image(const dq_dwconv_nchwc *c);
size_t dq_dwconv_nchwc_workspace(const dq_dwconv_nchwc *c);
/** Computes the results of a task whose images are in the workspace. bias begins at channel 0; or NULL. */
void dq_dwconv_nchwc_sums(const dq_op_call *call, const dq_dwconv_nchwc *c, const dq_dwconv_nchwc_task *task,
                          const float *bias, float low, float high, float *workspace);
/** Tasks that a thread takes at a time. */
size_t dq_dwconv_nchwc_grain(const dq_dwconv_nchwc *c);

#endif
