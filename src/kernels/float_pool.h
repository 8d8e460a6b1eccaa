/* Contracts of pools of floats, a row of results at a time: the rows under its windows become a line, and the
 * line's columns the results.
 *
 * A maximum is u > v ? u : v of what was met before (u) and the next element (v), unless u is a NaN, which
 * stays. A mean's sums are in double. */
#ifndef DQ_KERNELS_FLOAT_POOL_H
#define DQ_KERNELS_FLOAT_POOL_H

#include <stddef.h>

enum { DQ_POOL_SLACK = 32 /* elements of a line behind the last one that may be read */ };

/** Windows along a line: `count` of them, `stride` apart, each of `taps` elements `dilation` apart. */
typedef struct dq_line_windows {
    size_t count, stride, taps, dilation;
} dq_line_windows;

typedef struct dq_float_pool {
    /** line[i] = the maximum of x[at[r] + i] for r from 0 to rows - 1; rows is at least 1. */
    void (*max_rows)(const float *x, const size_t *at, size_t rows, size_t n, float *line);
    /** line[i] = their sum, from +0 on, one after the other. */
    void (*sum_rows)(const float *x, const size_t *at, size_t rows, size_t n, double *line);
    /** y[i] = the maximum of line[i * stride + t * dilation] for t from 0 up. */
    void (*max_windows)(const float *line, const dq_line_windows *w, float *y);
    /** y[i] = their sum, one after the other, times factor * shares[i]; rounded once more to float. */
    void (*mean_windows)(const double *line, const dq_line_windows *w, double factor, const double *shares,
                         float *y);
} dq_float_pool;

#endif
