/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of 8-bit pooling operators: shapes, and iteration over the elements of a window. */
#ifndef DQ_OPS_Q8_WINDOW_H
#define DQ_OPS_Q8_WINDOW_H

#include "ops/op.h"
#include "ops/window.h"

typedef struct dq_q8_window {
    dq_window window;
    bool include_pad;
    size_t in_size, out_size; /* spatial positions of the input and of the output */
    size_t inner;             /* channels in NHWC, else 1 */
    size_t kernel_size;
    size_t line; /* outputs along the last spatial axis; in NHWC with all channels of each position */
    size_t strides[DQ_MAX_RANK]; /* stride of each spatial axis of the input, in elements */
} dq_q8_window;

/** The elements of a window inside the input, over the first `rank` axes: offset of the first, number of all;
 * and for each axis count and stride. */
typedef struct dq_window_elements {
    size_t rank, base, total;
    size_t count[DQ_MAX_RANK], step[DQ_MAX_RANK];
} dq_window_elements;

/** Infers the shape of output 0; its type is that of input 0. */
dq_status dq_q8_window_infer(dq_op_call *call, bool channels_last, dq_error *err);
/** Called in prepare: fills in *s and reserves worker scratch for a line of results of `width` bytes each. */
dq_status dq_q8_window_prepare(dq_op_call *call, bool channels_last, size_t width, dq_q8_window *s,
                               dq_error *err);
/** Returns how many elements of a window are inside the input along an axis; *first: its first position. */
size_t dq_window_elements_along(const dq_window *w, size_t axis, size_t position, size_t *first);
/** The elements of the window of output `position` (row-major over the first `rank` axes). */
dq_window_elements dq_window_elements_at(const dq_q8_window *s, size_t rank, size_t position);
/** Advances `index` and the offset *at to the next element of the window, in row-major order. */
void dq_window_next_element(const dq_window_elements *c, size_t index[DQ_MAX_RANK], size_t *at);
/** Calls `range` on all threads, with ranges of output lines (or planes) of `items` elements each. */
void dq_q8_window_run(const dq_op_call *call, const dq_q8_window *s, size_t items, dq_range_fn range,
                      void *job);

#endif
