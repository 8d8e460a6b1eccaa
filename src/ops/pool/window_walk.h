/* Walking the windows of a dq_window: from an output's number to the input elements under it. */
#ifndef DQ_OPS_WINDOW_WALK_H
#define DQ_OPS_WINDOW_WALK_H

#include "ops/conv/conv_shape.h"

/** Where the window of output number `index` (row-major over w->out) begins; negative inside the padding. */
static inline void dq_window_origin(const dq_window *w, size_t index, int64_t origin[DQ_MAX_RANK])
{
    for (size_t d = w->rank; d-- > 0;) {
        size_t n = (size_t)w->out[d];
        origin[d] = (int64_t)(index % n) * w->stride[d] - w->begin[d];
        index /= n;
    }
}

/** Offset in the input's spatial axes of kernel element `tap` (row-major over w->kernel) of the window at
 * `origin`, or -1 when it lies in the padding. */
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

/** The kernel elements of an axis, first … end - 1, outside of which no window has one on the input: a kernel
 * may be far larger than the input and its pads together. */
static inline void dq_window_taps(const dq_window *w, size_t d, int64_t *first, int64_t *end)
{
    int64_t low = w->begin[d] - (w->out[d] - 1) * w->stride[d];
    int64_t high = w->begin[d] + w->in[d] - 1;
    *first = low > 0 ? (low - 1) / w->dilation[d] + 1 : 0;
    *end = high < 0 ? 0 : high / w->dilation[d] + 1;
    *end = *end < w->kernel[d] ? *end : w->kernel[d];
}

#endif
