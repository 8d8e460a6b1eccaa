/* SPDX-License-Identifier: Apache-2.0 */
/* Direct float convolution, for few output channels a group (mostly depthwise): packing windows for a GEMM
 * would take longer than the sums. It reads padded copies of the planes, in which positions that are a stride
 * apart are contiguous: each kernel element is multiplied with a whole row of windows at once. */
#ifndef DQ_OPS_CONV_DIRECT_H
#define DQ_OPS_CONV_DIRECT_H

#include "ops/algorithm.h"
#include "ops/conv/conv_epilogue.h"

/* Rows of the image under a band's windows: `count` of them, step[0] apart along the first axis. */
typedef struct dq_conv_run {
    size_t to, from; /* the first, in the copy, and in the image, but for the first axis: … */
    int64_t x;       /* … its place on that, from where the band begins */
    size_t count;
} dq_conv_run;

typedef struct dq_conv_direct {
    const dq_conv_shape *shape;
    size_t band;                   /* output places along the first axis that are done at a time */
    size_t step[DQ_MAX_RANK];      /* along each axis, how far windows are apart */
    size_t positions[DQ_MAX_RANK]; /* of the copy that are so far apart, along each axis, for a whole band */
    size_t pitch[DQ_MAX_RANK];     /* places from one to the next along each axis */
    size_t plane;                  /* all of them: there are as many planes as steps multiply to */
    size_t copy;                   /* floats of the copy */
    const dq_conv_run *runs;
    size_t run_count;      /* 0 where there is one axis */
    const size_t *offsets; /* of the kernel's elements in the copy */
} dq_conv_direct;

/** Whether the shape has few output channels a group, and the copy fits. */
bool dq_conv_direct_is_applicable(const dq_conv_shape *s, dq_reason *reason);
/** In prepare; `shape` lives as long as the state. */
dq_status dq_conv_direct_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_conv_direct *r,
                                 dq_error *err);
/** Each sum runs over channels, then the kernel's elements in row-major order; padding counts as zeros. */
void dq_conv_direct_run(const dq_op_call *call, const dq_conv_direct *r, const dq_conv_floats *o);

#endif
