/* Sliding windows over any number of spatial axes: what convolutions and pools share. Attributes strides,
 * dilations, pads and auto_pad as the standard has them; lists that a node leaves out are ones (pads: zeros).
 */
#ifndef DQ_OPS_CONV_SHAPE_H
#define DQ_OPS_CONV_SHAPE_H

#include "ops/op.h"

typedef struct dq_window {
    size_t rank; /* spatial axes: at least 1 */
    int64_t in[DQ_MAX_RANK], kernel[DQ_MAX_RANK];
    int64_t stride[DQ_MAX_RANK], dilation[DQ_MAX_RANK];
    int64_t begin[DQ_MAX_RANK], end[DQ_MAX_RANK]; /* padding; with auto_pad as it comes out */
    int64_t out[DQ_MAX_RANK];
} dq_window;

/** Fills in the rest from rank, in, kernel and the node's attributes. Sentences about the length of an axis
 * name input `input`. `ceil_mode`: a window that reaches past the end padding counts, if it starts before
 * that. Every number in the result, and the span of windows (out - 1) * stride + (kernel - 1) * dilation + 1,
 * fits. */
dq_status dq_window_infer(const dq_op_call *call, uint32_t input, bool ceil_mode, dq_window *w,
                          dq_error *err);

/** (kernel - 1) * dilation + 1 of an axis: elements that a window spans. */
static inline int64_t dq_window_span(const dq_window *w, size_t axis)
{
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

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

/** Refuses input i (when given) unless it has one element, or, where `per_channel`, one for each output
 * channel. */
dq_status dq_conv_param_check(const dq_op_call *call, uint32_t i, bool per_channel, const dq_conv_shape *s,
                              dq_error *err);
/** Refuses a bias (when given) that is not a vector of one element for each output channel. */
dq_status dq_conv_bias_check(const dq_op_call *call, uint32_t i, const dq_conv_shape *s, dq_error *err);

#endif
