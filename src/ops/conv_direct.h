/* Convolution without a matrix product, for groups of few output channels (depthwise above all), where
 * packing windows costs more than the sums. */
#ifndef DQ_OPS_CONV_DIRECT_H
#define DQ_OPS_CONV_DIRECT_H

#include "ops/conv_shape.h"

/** Whether dq_conv_direct is the better way for this shape and type (float or double alone). */
bool dq_conv_direct_suits(const dq_conv_shape *s, dq_dtype dtype);

/** out = windows of x times w plus bias (may be NULL). Each sum runs over channels, then the kernel's
 * elements in row-major order, leaving out those on padding; the bias comes last. */
void dq_conv_direct(const dq_op_call *call, const dq_conv_shape *s, const dq_tensor *x, const dq_tensor *w,
                    const dq_tensor *bias, dq_tensor *out);

#endif
