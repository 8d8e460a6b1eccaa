/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithm table of 8-bit convolutions (conv_s8.def). */
#ifndef DQ_OPS_CONV_S8_ALGORITHMS_H
#define DQ_OPS_CONV_S8_ALGORITHMS_H

#include "ops/algorithm.h"
#include "ops/conv/conv_shape.h"

/** The problem that the rows' is_applicable and work read. */
typedef struct dq_conv_s8_problem {
    const dq_conv_shape *shape;
    bool depthwise; /* several groups of one input channel each */
    bool unpadded;  /* the image is neither padded nor cropped */
    bool constant_weights;
    bool equal_weight_zeros;   /* the weights' zero points are constant and equal */
    bool no_weight_zeros;      /* they are also 0 after conversion of the weights to int8 */
    bool known_requantization; /* every operand of the requantized result but x is constant */
    bool same_sign;            /* x has the signedness that the GEMM kernel takes */
    size_t image_bytes;        /* bytes of one image of x */
    size_t run, runs;          /* of a window: bytes of a contiguous run, and number of runs */
    size_t weight_chunks;      /* parts of a GEMM's weights that separate tasks take */
    const dq_kernels *kernels;
} dq_conv_s8_problem;

/* Functions of each row; `state` of prepare and run is a dq_conv_s8. */
#define DQ_ROW(name, summary, run)                                                                           \
    bool dq_conv_s8_##name##_is_applicable(const void *problem, dq_reason *reason);                          \
    dq_algorithm_work dq_conv_s8_##name##_work(const void *problem);                                         \
    dq_status dq_conv_s8_##name##_prepare(dq_op_call *call, void *state, dq_error *err);
#include "ops/conv/conv_s8.def"
#undef DQ_ROW

/** The largest number of input channels for which a 1×1 convolution costs less from NCHW (nc4hw4) than as a
 * GEMM over NHWC pixels. SIZE_MAX: nc4hw4 takes NCHW and NHWC at the same cost. 0: the GEMM always costs
 * less. Layout assignment uses it. */
size_t dq_conv_s8_depth_of_planes(const dq_kernels *kernels);

void dq_conv_s8_depthwise_nchwc_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_depthwise_nchw_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_depthwise_nhwc_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_winograd_2d_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_nc4hw4_run(const dq_op_call *call, const void *state, const void *operands);
void dq_conv_s8_gemm_run(const dq_op_call *call, const void *state, const void *operands);

#endif
