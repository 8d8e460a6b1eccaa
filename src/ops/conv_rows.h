/* Float convolutions of few output channels a group (depthwise above all): row by row over padded copies of
 * the image's planes, where packing windows for a matrix product would cost more than the sums. */
#ifndef DQ_OPS_CONV_ROWS_H
#define DQ_OPS_CONV_ROWS_H

#include "ops/conv_finish.h"

typedef struct dq_conv_rows {
    const dq_conv_shape *shape;
    size_t band;                /* output places along the first axis that are done at a time */
    size_t padded[DQ_MAX_RANK]; /* lengths of the copy's axes; the first for a whole band */
    const size_t *offsets;      /* of the kernel's elements in the copy */
} dq_conv_rows;

/** Whether it is the better way; the shape fits then. */
bool dq_conv_rows_suits(const dq_conv_shape *s);
/** In prepare; `shape` lives as long as the state. */
dq_status dq_conv_rows_prepare(dq_op_call *call, const dq_conv_shape *shape, dq_conv_rows *r, dq_error *err);
/** Each sum runs over channels, then the kernel's elements in row-major order; padding counts as zeros. */
void dq_conv_rows_run(const dq_op_call *call, const dq_conv_rows *r, const dq_conv_floats *o);

#endif
