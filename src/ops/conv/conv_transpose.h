/* SPDX-License-Identifier: Apache-2.0 */
/* Sub-pixel decomposition of transposed float convolution into ordinary convolutions. Outputs whose positions
 * have the same remainder modulo the strides form a phase. Each phase is a convolution of stride 1 with a
 * subset of the kernel elements in reverse order. */
#ifndef DQ_OPS_CONV_TRANSPOSE_H
#define DQ_OPS_CONV_TRANSPOSE_H

#include "ops/conv/conv_direct.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_conv_transpose_shape {
    size_t rank; /* number of spatial axes */
    size_t batch, group, group_in, group_out;
    size_t in_size, kernel_size, out_size;
    int64_t in[DQ_MAX_RANK], kernel[DQ_MAX_RANK], out[DQ_MAX_RANK];
    int64_t stride[DQ_MAX_RANK], dilation[DQ_MAX_RANK], begin[DQ_MAX_RANK];
} dq_conv_transpose_shape;

typedef struct dq_conv_transpose_phase {
    dq_window window;                            /* of stride 1, over the input */
    int64_t first[DQ_MAX_RANK];                  /* coordinates of the phase's first output */
    int64_t tap[DQ_MAX_RANK], step[DQ_MAX_RANK]; /* first kernel element of a window; decrement to the next */
    size_t weights;                              /* offset of its weights in the arranged ones */
    size_t offset;                               /* offset of its first output in a channel */
    dq_gemm_f32 product;
    dq_conv_shape shape; /* of direct convolution (by_rows) */
    dq_conv_direct rows;
} dq_conv_transpose_phase;

typedef struct dq_conv_transpose_f32 {
    const dq_conv_transpose_shape *shape;
    dq_conv_transpose_phase *phases;
    size_t count;
    bool at_once;   /* kernel equals stride: each output reads one pixel, and the first phase's GEMM computes
                       all */
    size_t bias_at; /* at_once: offset of the repeated bias in the scratch */
    bool by_rows;   /* few channels: phases use direct convolution, whose results are then interleaved */
    size_t sums_at; /* by_rows: offset of those results in the scratch */
    size_t sums, interleaved; /* floats of one phase's results; phases that are interleaved along a row */
    const float *weights;     /* arranged by phase, once; NULL: in each run, at weights_at of the scratch */
    size_t weights_at;
} dq_conv_transpose_f32;

/** True if there are not too many phases and all their windows satisfy dq_im2col_pack_fit. */
bool dq_conv_transpose_has_phases(const dq_conv_transpose_shape *s);
/** Called in prepare. `shape` must outlive the state. `w`: index of the weights input. */
dq_status dq_conv_transpose_prepare_phases(dq_op_call *call, uint32_t w, const dq_conv_transpose_shape *shape,
                                           dq_conv_transpose_f32 *f, dq_error *err);
/** Each sum runs over input channels, then from the last to the first kernel element that reaches the input.
 * The bias (may be NULL) is added next, then the bounds apply. */
void dq_conv_transpose_run_phases(const dq_op_call *call, const dq_conv_transpose_f32 *f, const float *x,
                                  const float *w, const float *bias, dq_bounds bounds, float *out);

#endif
