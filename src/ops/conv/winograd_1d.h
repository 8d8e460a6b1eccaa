/* SPDX-License-Identifier: Apache-2.0 */
/* Float convolutions of one row at stride 1, by Winograd along it (kernels/winograd/winograd_f32.h): a kernel
 * of 3 taps takes 4 multiplications for each 6 of the direct way, one of 5, which is cut into 3 and 2, 7
 * for 10. Axes before the row's lie under one window as a whole, so that their elements are to a sum what
 * channels are. Two outputs that are computed together are a dilation apart.
 *
 * What is said of accuracy in conv_winograd.h holds here. Where an output is not finite, all are computed
 * directly. Constant weights are transformed once: they take 4/3 to 3/2 of their memory. */
#ifndef DQ_OPS_WINOGRAD_1D_H
#define DQ_OPS_WINOGRAD_1D_H

#include "ops/conv/conv_float.h"

/** Transformed weights: by group and point; each point's are a row of steps for each output channel. */
typedef struct dq_line_form {
    size_t groups, out; /* out: channels of a group */
    size_t lines;       /* rows of elements of a kernel: by channel, then by the axes before the last */
    size_t taps;        /* of a row */
    size_t threes;      /* of the pieces that a row is cut into, the first, … */
    size_t pieces;      /* … and all of them: the others have 2 taps */
} dq_line_form;

typedef struct dq_winograd_1d {
    const dq_conv_shape *shape;
    const dq_conv_float *direct;
    dq_line_form form;
    size_t pair_distance, row;             /* outputs of a tile from each other; those of a row */
    int64_t in, begin;                     /* of the row's axis */
    const size_t *starts;                  /* of a channel's lines, in its plane of the image */
    size_t tiles, strip, strips;           /* strip: tiles at a time */
    size_t some;                           /* lines at a time */
    size_t m_point;                        /* floats from a point of the sums to the next */
    const void *packed;                    /* weights; NULL: made in each run, at u_offset of the scratch */
    size_t u_offset, odd_offset;           /* of the scratch */
    size_t row_offset, v_offset, m_offset; /* of a worker's */
} dq_winograd_1d;

/** In prepare, behind dq_conv_float_prepare for `direct`, which lives as long as the state. Input `w` has the
 * weights. */
dq_status dq_winograd_1d_prepare(dq_op_call *call, uint32_t w, const dq_conv_float *direct, dq_winograd_1d *g,
                                 dq_error *err);
/** Each point's sum runs over the channels and the elements of the axes before the last in row-major order,
 * then the pieces of a row, one fused multiply-add a step. */
void dq_winograd_1d_run(const dq_op_call *call, const dq_winograd_1d *g, const dq_conv_floats *o);

#endif
