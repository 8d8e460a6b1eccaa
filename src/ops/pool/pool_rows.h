/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPool, AveragePool and LpPool of p = 2 row by row along the last axis: first the rows under a window
 * become one, then its columns do. */
#ifndef DQ_OPS_POOL_ROWS_H
#define DQ_OPS_POOL_ROWS_H

#include "ops/window.h"

/** Whether dq_max_rows (else dq_average_rows) takes the type, and windows do not reach far over the input: a
 * line of room is as long as they reach. */
bool dq_pool_rows_fits(const dq_window *w, dq_dtype dtype, bool max);

/** Bytes of room that such rows want; false when they cannot be counted. */
bool dq_pool_rows_workspace(const dq_window *w, dq_dtype dtype, bool max, size_t *bytes);

/** Rows begin … end - 1 of all planes' results, a row being window->out of the last axis. `in` and `out` are
 * the first planes. */
typedef struct dq_pool_rows {
    const dq_kernels *kernels;
    const dq_window *window;
    size_t begin, end;
    void *workspace; /* of dq_pool_rows_workspace bytes */
} dq_pool_rows;

/** Padding is never a maximum; a NaN is. */
void dq_max_rows(const dq_pool_rows *rows, dq_dtype dtype, const void *in, void *out);

/** The maxima of floats (`out` may be NULL) and where each lies in its plane, the first of equals; a window
 * in the padding has -infinity and 0. Planes have at most UINT32_MAX elements. */
void dq_max_pool_indices(const dq_pool_rows *rows, const float *in, float *out, int64_t *indices);

/** Averages: sums in double, of each column of a window along its axes first, then of the columns. `pads`:
 * padding counts as elements, but not what windows reach over behind it. */
void dq_average_rows(const dq_pool_rows *rows, bool pads, const float *in, float *out);

/** The square roots of the sums of squares, likewise. */
void dq_norm_rows(const dq_pool_rows *rows, const float *in, float *out);

#endif
