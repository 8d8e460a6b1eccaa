/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a convolution: its window, channels and groups.
 *
 * Most algorithms first copy the input with its padding, in one of six layouts: each is the layout that the
 * kernels of the algorithm read, so that a common layout would need a second copy.
 *
 *   dq_padded_input (conv_s8.h)     bytes, NHWC: rows of a GEMM are pointers to pixels
 *   conv_s8_nc4hw4_images.c         bytes, NC4HW4
 *   conv_s8_depthwise.c             one NCHW plane, neighbors as pairs of 16 bits
 *   dq_input_band (input_band.h)    a band of rows, 16-bit pairs of channels
 *   dq_im2col_padded                floats, whole images, columns in the order of GEMM panels
 *   dq_conv_direct                  floats, a band of rows, by remainder of the stride */
#ifndef DQ_OPS_CONV_SHAPE_H
#define DQ_OPS_CONV_SHAPE_H

#include "ops/window.h"

typedef struct dq_conv_shape {
    dq_window window;
    size_t batch, group;
    size_t in_channels, out_channels;      /* of all groups */
    size_t group_in, group_out;            /* of one */
    size_t in_size, kernel_size, out_size; /* products over the spatial axes */
    size_t rank;                           /* of the result: batch, out_channels, window.out */
    int64_t dims[DQ_MAX_RANK];
    /* Which of them are batch, spatial axes, channels; weights are as ever. */
    bool x_last, y_last;
} dq_conv_shape;

/** The shape of a convolution of input x with the weights of input w (channels first). */
dq_status dq_conv_shape_infer(const dq_op_call *call, uint32_t x, uint32_t w, bool x_last, bool y_last,
                              dq_conv_shape *out, dq_error *err);

/** Whether output places are those of the image, each from one of it. */
bool dq_conv_pointwise(const dq_conv_shape *s);
/** Whether the kernel is of 3×3 over two spatial axes, at stride and dilation 1. */
bool dq_conv_is_3x3(const dq_conv_shape *s);

/** Refuses input i (when given) unless it has one element, or, where `per_channel`, one for each output
 * channel. */
dq_status dq_conv_param_check(const dq_op_call *call, uint32_t i, bool per_channel, const dq_conv_shape *s,
                              dq_error *err);
/** Refuses a bias (when given) that is not a vector of one element for each output channel. */
dq_status dq_conv_bias_check(const dq_op_call *call, uint32_t i, const dq_conv_shape *s, dq_error *err);

#endif
