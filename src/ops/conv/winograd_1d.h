/* SPDX-License-Identifier: Apache-2.0 */
/* 1-D Winograd F(2,3) float convolution along one row at stride 1 (kernels/winograd/winograd_f32.h). A kernel
 * of 3 taps needs 4 multiplications for 6 of direct convolution. A kernel of 5 taps is split into 3 and 2 and
 * needs 7 for 10.
 *
 * One window covers the axes before the row's axis completely; their elements are summed as channels are. The
 * distance between the two outputs of a tile is the dilation.
 *
 * Accuracy is that of conv_winograd.h. If an output is not finite, all outputs are computed directly.
 * Constant weights are transformed once and then take 4/3 to 3/2 of their memory. */
#ifndef DQ_OPS_WINOGRAD_1D_H
#define DQ_OPS_WINOGRAD_1D_H

#include "ops/conv/conv_float.h"

/** Layout of transformed weights: by group, point, output channel, step. Points 0, 1 and 3 have a step for
 * each piece of each line, point 2 only for the pieces of 3 taps. */
typedef struct dq_winograd_1d_weights {
    size_t groups, out; /* groups; output channels of a group */
    size_t lines;       /* rows of a kernel: by input channel, then by the axes before the row's axis */
    size_t taps;        /* elements of a kernel row */
    size_t threes;      /* pieces of 3 taps; they come first */
    size_t pieces;      /* all pieces of a kernel row: the others have 2 taps */
} dq_winograd_1d_weights;

typedef struct dq_winograd_1d {
    const dq_conv_shape *shape;
    const dq_conv_float *direct;
    dq_winograd_1d_weights form;
    size_t pair_distance, row;             /* distance between the outputs of a tile; outputs of a row */
    int64_t in, begin;                     /* input length and begin padding of the row's axis */
    const size_t *starts;                  /* offset of each line of a channel in its input plane */
    size_t tiles, strip, strips;           /* tiles of a row; tiles of a strip; strips of a row */
    size_t some;                           /* lines transformed at a time */
    size_t m_point;                        /* stride between points of the products, in floats */
    const void *packed;                    /* weights; NULL: transformed in each run, at u_offset */
    size_t u_offset, odd_offset;           /* in the scratch; odd: a bool per strip, true if not finite */
    size_t row_offset, v_offset, m_offset; /* in the worker scratch */
} dq_winograd_1d;

/** Called in prepare, after dq_conv_float_prepare for `direct`, which must outlive the state. `w`: index of
 * the weights input. */
dq_status dq_winograd_1d_prepare(dq_op_call *call, uint32_t w, const dq_conv_float *direct, dq_winograd_1d *g,
                                 dq_error *err);
/** Each point's sum runs over input channels and elements of the axes before the row's axis in row-major
 * order, then over the pieces of a row, one fused multiply-add a step. */
void dq_winograd_1d_run(const dq_op_call *call, const dq_winograd_1d *g, const dq_conv_floats *o);

#endif
