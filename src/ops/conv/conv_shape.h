/* SPDX-License-Identifier: Apache-2.0 */
/* Shape of a convolution: window, channels and groups.
 *
 * Most algorithms first copy the input with its padding, into one of six layouts. Each is the layout that the
 * kernels of the algorithm read; a common layout would need a second copy.
 *
 *   dq_padded_input (conv_s8.h)     bytes, NHWC: rows of a GEMM are pointers to pixels
 *   conv_s8_nc4hw4_images.c         bytes, NC4HW4
 *   conv_s8_depthwise.c             one NCHW plane, neighboring pixels as pairs of int16
 *   dq_input_band (input_band.h)    a band of rows, 16-bit pairs of channels
 *   dq_im2col_padded                floats, whole images, columns split by position modulo the stride
 *   dq_conv_direct                  floats, a band of rows, all axes split by position modulo the stride */
#ifndef DQ_OPS_CONV_SHAPE_H
#define DQ_OPS_CONV_SHAPE_H

#include "ops/window.h"

typedef struct dq_conv_shape {
    dq_window window;
    size_t batch, group;
    size_t in_channels, out_channels;      /* over all groups */
    size_t group_in, group_out;            /* channels of one group */
    size_t in_size, kernel_size, out_size; /* products over the spatial axes */
    size_t rank;                           /* rank of the output: batch, out_channels, window.out */
    int64_t dims[DQ_MAX_RANK];
    /* Layout of x and of the output: NHWC if true, else NCHW. Weights are always channels first. */
    bool x_last, y_last;
} dq_conv_shape;

/** Derives the shape from input x and the weights of input w (channels first), and validates both. */
dq_status dq_conv_shape_infer(const dq_op_call *call, uint32_t x, uint32_t w, bool x_last, bool y_last,
                              dq_conv_shape *out, dq_error *err);

/** True for a 1×1 convolution without padding and with stride 1: output position i reads input position i. */
bool dq_conv_pointwise(const dq_conv_shape *s);
/** True for a 3×3 kernel over two spatial axes, with stride and dilation 1. */
bool dq_conv_is_3x3(const dq_conv_shape *s);

/** Fails if input i is present and its element count is neither 1 nor, if `per_channel`, the number of output
 * channels. */
dq_status dq_conv_param_check(const dq_op_call *call, uint32_t i, bool per_channel, const dq_conv_shape *s,
                              dq_error *err);
/** Fails if bias input i is present and is not a vector of one element per output channel. */
dq_status dq_conv_bias_check(const dq_op_call *call, uint32_t i, const dq_conv_shape *s, dq_error *err);

#endif
