/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows over any number of spatial axes, shared by convolutions and pools. Attributes strides,
 * dilations, pads and auto_pad have the standard's meaning; absent lists are ones (pads: zeros). */
#ifndef DQ_OPS_WINDOW_H
#define DQ_OPS_WINDOW_H

#include "ops/op.h"

typedef struct dq_window {
    size_t rank; /* spatial axes: at least 1 */
    int64_t in[DQ_MAX_RANK], kernel[DQ_MAX_RANK];
    int64_t stride[DQ_MAX_RANK], dilation[DQ_MAX_RANK];
    int64_t begin[DQ_MAX_RANK], end[DQ_MAX_RANK]; /* padding; with auto_pad the resolved one */
    int64_t out[DQ_MAX_RANK];
} dq_window;

/** Computes the other fields from rank, in, kernel and the node's attributes. Error messages about the length
 * of an axis name input `input`. `ceil_mode`: a window that reaches past the end padding counts if it starts
 * before that padding. The function rejects sizes that overflow: all results fit, and so does the span of all
 * windows, (out - 1) * stride + (kernel - 1) * dilation + 1. */
dq_status dq_window_infer(const dq_op_call *call, uint32_t input, bool ceil_mode, dq_window *w,
                          dq_error *err);

/** Elements that a window spans along an axis: (kernel - 1) * dilation + 1. */
static inline int64_t dq_window_span(const dq_window *w, size_t axis)
{
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

/** Origin of the window of output `index` (row-major over w->out); negative in the padding. */
static inline void dq_window_origin(const dq_window *w, size_t index, int64_t origin[DQ_MAX_RANK])
{
    for (size_t d = w->rank; d-- > 0;) {
        size_t n = (size_t)w->out[d];
        origin[d] = (int64_t)(index % n) * w->stride[d] - w->begin[d];
        index /= n;
    }
}

/** Offset in the input's spatial axes of kernel element `tap` (row-major over w->kernel) of the window at
 * `origin`; -1 if it is in the padding. */
static inline int64_t dq_window_at(const dq_window *w, const int64_t origin[DQ_MAX_RANK], size_t tap)
{
    int64_t offset = 0, step = 1;
    for (size_t d = w->rank; d-- > 0;) {
        size_t n = (size_t)w->kernel[d];
        int64_t x = origin[d] + (int64_t)(tap % n) * w->dilation[d];
        if (x < 0 || x >= w->in[d])
            return -1;
        offset += x * step;
        step *= w->in[d];
        tap /= n;
    }
    return offset;
}

/** The range first … end - 1 of kernel elements along an axis that meet the input in at least one window. A
 * kernel may be far larger than the input and its padding. */
static inline void dq_window_taps(const dq_window *w, size_t d, int64_t *first, int64_t *end)
{
    int64_t low = w->begin[d] - (w->out[d] - 1) * w->stride[d];
    int64_t high = w->begin[d] + w->in[d] - 1;
    *first = low > 0 ? (low - 1) / w->dilation[d] + 1 : 0;
    *end = high < 0 ? 0 : high / w->dilation[d] + 1;
    *end = *end < w->kernel[d] ? *end : w->kernel[d];
}

/** Counts the elements 0, step, 2 step … of a window at `origin` that are in [low, high); *first is the first
 * one. */
size_t dq_window_overlap(int64_t origin, int64_t kernel, int64_t step, int64_t low, int64_t high,
                         int64_t *first);

#endif
