/* SPDX-License-Identifier: Apache-2.0 */
/* What comes upon the finished sums of a float convolution: bias, FusedConv's Z and its activation function.
 */
#ifndef DQ_OPS_CONV_EPILOGUE_H
#define DQ_OPS_CONV_EPILOGUE_H

#include "ops/conv/conv_shape.h"
#include "ops/elementwise/elementwise.h"

typedef struct dq_conv_epilogue {
    float low, high; /* Relu and Clip, and what bounds nothing */
    dq_ew_fn *fn;    /* the operator of the other functions' names; NULL: the bounds are all */
    dq_ew_params params;
    const dq_hswish_f32 *gate; /* or NULL; without a function */
} dq_conv_epilogue;

/** The function upon n results, in place. */
static inline void dq_conv_function(const dq_conv_epilogue *f, float *y, size_t n)
{
    const void *in[1] = {y};
    const size_t step[1] = {1};
    if (f->fn)
        f->fn(y, in, step, n, &f->params);
}

/** Operands of a float convolution. */
typedef struct dq_conv_floats {
    const float *x, *w, *bias, *z; /* bias and z may be NULL */
    float *out;
    const dq_conv_epilogue *finish;
} dq_conv_floats;

/** Sums that stand in their planes: `rows` of `cols`, `row_stride` from each other, from o->out + first on.
 */
typedef struct dq_plane_sums {
    size_t first, rows, cols, row_stride;
} dq_plane_sums;

/** What is left to do upon such sums: a bias for the rows (NULL: the sums have it), Z, bounds and gate,
 * unless nothing of that is left (`only_function`), and the function. */
void dq_conv_epilogue_sums(const dq_op_call *call, const dq_conv_floats *o, const dq_plane_sums *s,
                           const float *bias, bool only_function);

#endif
