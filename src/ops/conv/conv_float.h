/* SPDX-License-Identifier: Apache-2.0 */
/* Float convolution as a blocked GEMM: A is the weights (output channels as rows), B is the im2col matrix
 * (windows as columns). The windows of one block are packed at a time. Weights, and the pixels of a pointwise
 * convolution, are read in place. */
#ifndef DQ_OPS_CONV_FLOAT_H
#define DQ_OPS_CONV_FLOAT_H

#include "ops/conv/conv_epilogue.h"
#include "ops/conv/im2col_padded.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_conv_float {
    const dq_conv_shape *shape;
    dq_gemm_f32 product;
    bool pointwise;          /* B is the image itself */
    bool unaligned;          /* w may be unaligned, as in the file; rows are then copied */
    dq_im2col_padded padded; /* padded.shape is NULL if not used */
} dq_conv_float;

/** Called in prepare. `shape` must outlive the state. `function`: the epilogue has an activation fn.
 * `unaligned`: w may be unaligned. */
dq_status dq_conv_float_prepare(dq_op_call *call, const dq_conv_shape *shape, bool function, bool unaligned,
                                dq_conv_float *f, dq_error *err);
/** Each sum runs over input channels, then kernel elements in row-major order; padding counts as zeros. */
void dq_conv_float_run(const dq_op_call *call, const dq_conv_float *f, const dq_conv_floats *o);
/** Computes one block of results. `workspace` has the size of the worker scratch that dq_conv_float_prepare
 * reserves. */
void dq_conv_float_part(const dq_op_call *call, const dq_conv_float *f, const dq_conv_floats *o,
                        const dq_gemm_part *part, void *workspace);

#endif
