/* SPDX-License-Identifier: Apache-2.0 */
/* Direct float convolution for few output channels per group (mostly depthwise), where packing windows for a
 * GEMM would take longer than the sums.
 *
 * It reads a padded copy of each input plane. The copy is split by position modulo the stride, so that the
 * inputs of one kernel element for a row of outputs are contiguous. Each kernel element is then multiplied
 * with a whole row of windows at once. */
#ifndef DQ_OPS_CONV_DIRECT_H
#define DQ_OPS_CONV_DIRECT_H

#include "ops/algorithm.h"
#include "ops/conv/conv_epilogue.h"

/* Input rows that a band's windows read: `count` of them, at stride step[0] along the first axis. */
typedef struct dq_conv_run {
    size_t to, from; /* offsets of the first row: in the copy; in the image, without the first axis */
    int64_t x;       /* first-axis coordinate of the first row in the image, relative to the band's start */
    size_t count;
} dq_conv_run;

typedef struct dq_conv_direct {
    const dq_conv_shape *shape;
    size_t band;                   /* output positions along the first axis that one band has */
    size_t step[DQ_MAX_RANK];      /* stride of windows along each axis; 1 if there is one window */
    size_t positions[DQ_MAX_RANK]; /* positions of one plane of the copy along each axis, for a whole band */
    size_t pitch[DQ_MAX_RANK];     /* stride along each axis within a plane of the copy, in floats */
    size_t plane;                  /* floats of a plane; the copy has one for each remainder of the steps */
    size_t copy;                   /* floats of the whole copy */
    const dq_conv_run *runs;
    size_t run_count;      /* 0 for one spatial axis */
    const size_t *offsets; /* offset of each kernel element in the copy */
} dq_conv_direct;

/** True if the shape has few output channels per group and windows do not reach far into the padding. */
bool dq_conv_direct_is_applicable(const dq_conv_shape *s, dq_reason *reason);
/** Called in prepare. `shape` must outlive the state. Allocates in call->arena; sets the worker scratch. */
dq_status dq_conv_direct_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_conv_direct *r,
                                 dq_error *err);
/** Each sum runs over input channels, then kernel elements in row-major order; padding counts as zeros. */
void dq_conv_direct_run(const dq_op_call *call, const dq_conv_direct *r, const dq_conv_floats *o);

#endif
