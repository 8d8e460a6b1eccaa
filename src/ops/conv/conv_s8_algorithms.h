/* SPDX-License-Identifier: Apache-2.0 */
/* The table of 8-bit convolutions (conv_s8.def). */
#ifndef DQ_OPS_CONV_S8_ALGORITHMS_H
#define DQ_OPS_CONV_S8_ALGORITHMS_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

/** What an algorithm is chosen by. */
typedef struct dq_conv_s8_problem {
    const dq_conv_shape *shape;
    bool depthwise; /* several groups, of one input channel each */
    bool unpadded;  /* nothing of the image is padded or cropped */
    bool constant_weights;
    bool equal_weight_zeros;   /* the zero points of the weights are known and equal … */
    bool no_weight_zeros;      /* … and 0, once the weights are signed */
    bool known_requantization; /* all but x that the quantized result is computed from is known */
    bool same_sign;            /* x has the sign that matrix products take */
    size_t image_bytes;        /* of one image of x */
    size_t run, runs;     /* of a window of all channels: bytes of a contiguous piece, and their number */
    size_t weight_chunks; /* into how many the threads divide the weights of a matrix product */
    const dq_kernels *kernels;
} dq_conv_s8_problem;

/* The functions of each row; `state` of prepare and run is a dq_conv_s8. */
#define DQ_ROW(name, summary, run)                                                                           \
    bool dq_conv_s8_##name##_is_applicable(const void *problem, dq_reason *reason);                          \
    dq_algorithm_work dq_conv_s8_##name##_work(const void *problem);                                         \
    dq_status dq_conv_s8_##name##_prepare(dq_op_call *call, void *state, dq_error *err);
#include "ops/conv/conv_s8.def"
#undef DQ_ROW

/** Up to how many input channels convolutions of 1×1 cost less from planes (nc4hw4) than as matrix products
 * of pixels; SIZE_MAX: planes and pixels cost nc4hw4 the same; 0: matrix products always cost less. Layouts
 * are assigned by it. */
size_t dq_conv_s8_depth_of_planes(const dq_kernels *kernels);

void dq_conv_s8_depthwise_nchwc_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_depthwise_nchw_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_depthwise_nhwc_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_winograd_2d_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_nc4hw4_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_gemm_run(const dq_op_call *call, const void *state, const void *operands);

#endif
