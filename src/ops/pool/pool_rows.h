/* SPDX-License-Identifier: Apache-2.0 */
/* Separable pooling: MaxPool, AveragePool and LpPool with p = 2, one output row at a time. First the input
 * rows of the windows are reduced to one line, then the columns of each window in that line. */
#ifndef DQ_OPS_POOL_ROWS_H
#define DQ_OPS_POOL_ROWS_H

#include "ops/window.h"

/** True if dq_max_rows (`max`) or dq_average_rows supports the type, and windows do not reach far beyond the
 * input. A line in the workspace is as long as windows reach. */
bool dq_pool_rows_fits(const dq_window *w, dq_dtype dtype, bool max);

/** Gives the bytes of a worker's workspace. Returns false if they overflow size_t. */
bool dq_pool_rows_workspace(const dq_window *w, dq_dtype dtype, bool max, size_t *bytes);

/** Output rows begin … end - 1, counted over all planes; a row is the output along the last axis. The
 * arguments `in` and `out` of the functions below are the first planes. */
typedef struct dq_pool_rows {
    const dq_kernels *kernels;
    const dq_window *window;
    size_t begin, end;
    void *workspace; /* of dq_pool_rows_workspace bytes */
} dq_pool_rows;

/** Maxima. Padding is never the maximum; a NaN always is. */
void dq_max_rows(const dq_pool_rows *rows, dq_dtype dtype, const void *in, void *out);

/** Maxima of floats (`out` may be NULL), and the offset of each in its plane; the first of equal maxima
 * counts. A window of padding only has the maximum -infinity and the offset 0. Planes have at most UINT32_MAX
 * elements. */
void dq_max_pool_indices(const dq_pool_rows *rows, const float *in, float *out, int64_t *indices);

/** Averages, summed in double: first each column of a window along the other axes, then the columns. `pads`:
 * padding counts as elements (count_include_pad), but positions past the padding (ceil_mode) do not. */
void dq_average_rows(const dq_pool_rows *rows, bool pads, const float *in, float *out);

/** Square roots of sums of squares, summed in the same order. */
void dq_norm_rows(const dq_pool_rows *rows, const float *in, float *out);

#endif
