/* SPDX-License-Identifier: Apache-2.0 */
/* Epilogue of float convolutions: bias, FusedConv's addend Z and the activation function. */
#ifndef DQ_OPS_CONV_EPILOGUE_H
#define DQ_OPS_CONV_EPILOGUE_H

#include "ops/conv/conv_shape.h"
#include "ops/elementwise/elementwise.h"

typedef struct dq_conv_epilogue {
    float low, high; /* bounds of Relu and Clip; infinite if there are none */
    dq_ew_fn *fn;    /* elementwise kernel of any other activation; NULL: only the bounds */
    dq_ew_params params;
    const dq_hswish_f32 *gate; /* hard-swish-type activation, or NULL; never together with fn */
} dq_conv_epilogue;

/** Applies fn, if any, to n results in place. */
static inline void dq_conv_function(const dq_conv_epilogue *f, float *y, size_t n)
{
    const void *in[1] = {y};
    const size_t step[1] = {1};
    if (f->fn)
        f->fn(y, in, step, n, &f->params);
}

/** Operands of a float convolution. */
typedef struct dq_conv_floats {
    const float *x, *w, *bias, *z; /* bias and z may be NULL; z has the output's shape */
    float *out;
    const dq_conv_epilogue *finish;
} dq_conv_floats;

/** Sums in the output tensor: a matrix of `rows` by `cols` with `row_stride`, from o->out + first on. */
typedef struct dq_plane_sums {
    size_t first, rows, cols, row_stride;
} dq_plane_sums;

/** Applies the rest of the epilogue to such sums: bias per row (NULL: the sums include it), Z, bounds and
 * gate, then fn. `only_function`: the sums already include all but fn. */
void dq_conv_epilogue_sums(const dq_op_call *call, const dq_conv_floats *o, const dq_plane_sums *s,
                           const float *bias, bool only_function);

#endif
