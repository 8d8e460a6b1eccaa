/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions of floats as ordinary ones: the results whose places leave the same remainder when
 * they are divided by the strides form a phase, and each phase is a convolution of stride 1 with some of the
 * kernel's elements, turned around. */
#ifndef DQ_OPS_CONV_TRANSPOSE_H
#define DQ_OPS_CONV_TRANSPOSE_H

#include "ops/conv/conv_direct.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_transposed {
    size_t rank; /* spatial axes */
    size_t batch, group, group_in, group_out;
    size_t in_size, kernel_size, out_size;
    int64_t in[DQ_MAX_RANK], kernel[DQ_MAX_RANK], out[DQ_MAX_RANK];
    int64_t stride[DQ_MAX_RANK], dilation[DQ_MAX_RANK], begin[DQ_MAX_RANK];
} dq_transposed;

typedef struct dq_transposed_phase {
    dq_window window;                            /* over the input, of stride 1 */
    int64_t first[DQ_MAX_RANK];                  /* place of the phase's first result */
    int64_t tap[DQ_MAX_RANK], step[DQ_MAX_RANK]; /* the window's first kernel element, and down to the next */
    size_t weights;                              /* where its weights begin in the arranged ones */
    size_t offset;                               /* of the phase's first result in a channel */
    dq_gemm_f32 product;
    dq_conv_shape shape; /* direct convolution by rows */
    dq_conv_direct rows;
} dq_transposed_phase;

typedef struct dq_transposed_floats {
    const dq_transposed *shape;
    dq_transposed_phase *phases;
    size_t count;
    bool at_once;   /* each result takes one pixel: the first phase's product has the rows of all */
    size_t bias_at; /* of those rows, in the scratch */
    bool by_rows;   /* few channels: phases are convolutions of rows, whose sums are then brought … */
    size_t sums_at; /* … from the scratch, those of as many as take turns, `sums` each */
    size_t sums, interleaved;
    const float *weights; /* arranged once; NULL: for each run, in the scratch */
    size_t weights_at;
} dq_transposed_floats;

/** Whether there are not too many phases, and all of their windows can be counted (dq_im2col_pack_fit). */
bool dq_transposed_fits(const dq_transposed *s);
/** In prepare; `shape` lives as long as the state. `w`: the number of the weights' input. */
dq_status dq_transposed_prepare(dq_op_call *call, uint32_t w, const dq_transposed *shape,
                                dq_transposed_floats *f, dq_error *err);
/** Each sum runs over channels, then the kernel's elements that reach the input, from the last to the first;
 * then the bias (may be NULL); then the bounds. */
void dq_transposed_run(const dq_op_call *call, const dq_transposed_floats *f, const float *x, const float *w,
                       const float *bias, dq_bounds bounds, float *out);

#endif
