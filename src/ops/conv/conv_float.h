/* SPDX-License-Identifier: Apache-2.0 */
/* Float convolutions as products of the weights (rows) with the image's windows (columns), laid out for a
 * block of them at a time; both operands are read where they stand otherwise. */
#ifndef DQ_OPS_CONV_FLOAT_H
#define DQ_OPS_CONV_FLOAT_H

#include "ops/conv/conv_epilogue.h"
#include "ops/conv/im2col_padded.h"
#include "ops/matmul/gemm_driver_f32.h"

typedef struct dq_conv_float {
    const dq_conv_shape *shape;
    dq_gemm_f32 product;
    bool pointwise; /* the image is the matrix of columns */
    bool unaligned; /* w need not be aligned: packed weights stay as they are in the file */
    dq_im2col_padded padded;
} dq_conv_float;

/** In prepare; `shape` lives as long as the state. `function`: whether the finish has one; `unaligned`:
 * whether w need not be aligned. */
dq_status dq_conv_float_prepare(dq_op_call *call, const dq_conv_shape *shape, bool function, bool unaligned,
                                dq_conv_float *f, dq_error *err);
/** Each sum runs over channels, then the kernel's elements in row-major order; padding counts as zeros. */
void dq_conv_float_run(const dq_op_call *call, const dq_conv_float *f, const dq_conv_floats *o);
/** The part's results alone, in a room as large as the worker scratch that dq_conv_float_prepare asks for. */
void dq_conv_float_part(const dq_op_call *call, const dq_conv_float *f, const dq_conv_floats *o,
                        const dq_gemm_part *part, void *workspace);

#endif
