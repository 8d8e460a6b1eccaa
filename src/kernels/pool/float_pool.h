/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of pools of floats, a row of results at a time: the rows under its windows become a line, and the
 * line's columns the results.
 *
 * A maximum is u > v ? u : v of what was met before (u) and the next element (v), unless u is a NaN, which
 * stays. A mean's sums are in double. */
#ifndef DQ_KERNELS_FLOAT_POOL_H
#define DQ_KERNELS_FLOAT_POOL_H

#include <stdbool.h>
#include <stddef.h>

enum { DQ_POOL_SLACK = 32 /* elements of a line behind the last one that may be read */ };

/** `lines` lines that are `row_stride` from each other, each made of `under` rows, 1 or more for maxima: row
 * r of line l is the n elements from x + at[r] + l * step on. */
typedef struct dq_pool_lines {
    const float *x;
    const size_t *at;
    size_t under, step, n, lines, row_stride;
} dq_pool_lines;

/** Windows along `lines` lines that are `row_stride` from each other: `count` of them on each, `stride`
 * apart, each of `taps` elements `dilation` apart. The results of a line follow those of the one before. */
typedef struct dq_line_windows {
    size_t count, stride, taps, dilation, lines, row_stride;
    bool root; /* for mean_windows */
} dq_line_windows;

typedef struct dq_pool_f32 {
    /** Element i of a line = the maximum of elements i of its rows, from the first on. */
    void (*max_rows)(const dq_pool_lines *p, float *line);
    /** Their sum, from +0 on, one after the other. */
    void (*sum_rows)(const dq_pool_lines *p, double *line);
    /** The sum of their squares, likewise. */
    void (*square_rows)(const dq_pool_lines *p, double *line);
    /** y[i] = the maximum of line[i * stride + t * dilation] for t from 0 up. */
    void (*max_windows)(const float *line, const dq_line_windows *w, float *y);
    /** y[i] = their sum, one after the other, times factor * shares[i], or where w->root is set the square
     * root of that; rounded once more to float. */
    void (*mean_windows)(const double *line, const dq_line_windows *w, double factor, const double *shares,
                         float *y);
} dq_pool_f32;

#endif
