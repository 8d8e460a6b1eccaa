/* What comes upon the finished sums of a float convolution: bias, FusedConv's Z and its activation function.
 */
#ifndef DQ_OPS_CONV_FINISH_H
#define DQ_OPS_CONV_FINISH_H

#include "ops/conv_shape.h"
#include "ops/rnn_activation.h"

typedef struct dq_conv_finish {
    float low, high;            /* Relu and Clip, and what bounds nothing */
    dq_rnn_activation function; /* fn NULL: the bounds are all */
} dq_conv_finish;

/** Operands of a float convolution. */
typedef struct dq_conv_floats {
    const float *x, *w, *bias, *z; /* bias and z may be NULL */
    float *out;
    const dq_conv_finish *finish;
} dq_conv_floats;

#endif
