/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of float pooling kernels, in two passes. The first pass reduces the input rows under a row of
 * windows to one line. The second pass reduces the line's columns under each window to the results.
 *
 * A maximum is u > v ? u : v of the maximum so far (u) and the next element (v); a NaN in u stays. Sums of
 * means are in double. */
#ifndef DQ_KERNELS_FLOAT_POOL_H
#define DQ_KERNELS_FLOAT_POOL_H

#include <stdbool.h>
#include <stddef.h>

enum { DQ_POOL_SLACK = 32 /* elements past a line's last one that may be read */ };

/** `lines` lines, row_stride elements from one to the next, each reduced from `under` input rows (for maxima
 * at least 1). Row r of line l is the n elements from x + at[r] + l * step on. */
typedef struct dq_pool_lines {
    const float *x;
    const size_t *at;
    size_t under, step, n, lines, row_stride;
} dq_pool_lines;

/** Windows along `lines` lines, row_stride elements from one to the next: `count` windows on each, with
 * stride `stride`, kernel `taps` and dilation `dilation`. The results of the lines are contiguous. */
typedef struct dq_line_windows {
    size_t count, stride, taps, dilation, lines, row_stride;
    bool root; /* for mean_windows: take the square root */
} dq_line_windows;

typedef struct dq_pool_f32 {
    /** line[i] = the maximum of element i of its rows, in the order of rows. */
    void (*max_rows)(const dq_pool_lines *p, float *line);
    /** line[i] = the sum from +0 of element i of its rows, in the order of rows. */
    void (*sum_rows)(const dq_pool_lines *p, double *line);
    /** The same with squares. */
    void (*square_rows)(const dq_pool_lines *p, double *line);
    /** y[i] = the maximum of line[i * stride + t * dilation], in the order of t. */
    void (*max_windows)(const float *line, const dq_line_windows *w, float *y);
    /** y[i] = the sum of the same elements, in the order of t, times factor * shares[i]; if w->root, the
     * square root of that. Rounded once to float. */
    void (*mean_windows)(const double *line, const dq_line_windows *w, double factor, const double *shares,
                         float *y);
} dq_pool_f32;

#endif
