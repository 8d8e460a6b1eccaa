/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of 8-bit pools: their shapes, and the elements under them. */
#ifndef DQ_OPS_Q8_WINDOW_H
#define DQ_OPS_Q8_WINDOW_H

#include "ops/op.h"
#include "ops/window.h"

typedef struct dq_q8_window {
    dq_window window;
    bool include_pad;
    size_t in_size, out_size; /* positions of the input and the result */
    size_t inner;             /* channels where they are last, else 1 */
    size_t kernel_size;
    size_t line; /* results along the last axis, with channels last all channels of each position */
    size_t strides[DQ_MAX_RANK]; /* elements between neighbours along each spatial axis of the input */
} dq_q8_window;

/** The elements of a window over the first `rank` axes. */
typedef struct dq_cells {
    size_t rank, base, total;
    size_t count[DQ_MAX_RANK], step[DQ_MAX_RANK];
} dq_cells;

dq_status dq_q8_window_infer(dq_op_call *call, bool channels_last, dq_error *err);
/** Fills in *s; a worker has scratch for a line of results of `width` bytes each. */
dq_status dq_q8_window_prepare(dq_op_call *call, bool channels_last, size_t width, dq_q8_window *s,
                               dq_error *err);
/** Elements of a window along one axis that are inside the input: the first one's position and their number.
 */
size_t dq_axis_cells(const dq_window *w, size_t axis, size_t position, size_t *first);
dq_cells dq_cells_at(const dq_q8_window *s, size_t rank, size_t position);
/** Goes from one element of the window to the next, in row-major order. */
void dq_next_cell(const dq_cells *c, size_t index[DQ_MAX_RANK], size_t *at);
/** Calls `range` for the lines of the result, `items` elements each (or planes), on all threads. */
void dq_q8_window_run(const dq_op_call *call, const dq_q8_window *s, size_t items, dq_range_fn range,
                      void *job);

#endif
