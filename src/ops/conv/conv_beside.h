/* Depthwise float convolutions of small images with constant weights: some channels are turned, so that they
 * stand side by side at each place, where a plane of few places would leave most of a vector empty. */
#ifndef DQ_OPS_CONV_BESIDE_H
#define DQ_OPS_CONV_BESIDE_H

#include "ops/conv/conv_finish.h"

typedef struct dq_conv_beside {
    const dq_conv_shape *shape;
    const float *weights; /* of DQ_FCONV_CHANNELS channels side by side, by element of the kernel */
    size_t channels;      /* that are turned together */
    size_t places;        /* of results, as many as kernels take */
    uint32_t *offsets;    /* of the kernel's elements, for each place; behind the image is a place of zeros */
} dq_conv_beside;

/** Whether it is the better way for the node's input `w`. */
bool dq_conv_beside_suits(const dq_op_call *call, uint32_t w, const dq_conv_shape *s);
/** In prepare; `shape` lives as long as the state. */
dq_status dq_conv_beside_prepare(dq_op_call *call, uint32_t w, const dq_conv_shape *shape, dq_conv_beside *c,
                                 dq_error *err);
/** Each sum runs over the kernel's elements in row-major order; padding counts as zeros. The weights among
 * the operands are not looked at. */
void dq_conv_beside_run(const dq_op_call *call, const dq_conv_beside *c, const dq_conv_floats *o);

#endif
