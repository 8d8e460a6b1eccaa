/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: the elements of each result, and the vectorized implementations. */
#ifndef DQ_OPS_REDUCE_H
#define DQ_OPS_REDUCE_H

#include "kernels/kernels.h"
#include "ops/op.h"

typedef enum dq_reduce_kind {
    DQ_REDUCE_MIN,
    DQ_REDUCE_MAX,
    DQ_REDUCE_SUM,
    DQ_REDUCE_MEAN,
    DQ_REDUCE_PROD,
    DQ_REDUCE_L1,
    DQ_REDUCE_L2,
    DQ_REDUCE_SUM_SQUARE,
    DQ_REDUCE_LOG_SUM,
    DQ_REDUCE_LOG_SUM_EXP
} dq_reduce_kind;

/** An iteration over dimensions in row-major order; strides are in elements of the input. */
typedef struct dq_walk {
    size_t rank, count;
    size_t dims[DQ_MAX_RANK], strides[DQ_MAX_RANK];
} dq_walk;

typedef struct dq_reduction {
    dq_reduce_kind kind;
    dq_walk kept, reduced; /* over the results; over the elements of one result */
} dq_reduction;

/** Returns the offset of element i. */
size_t dq_walk_at(const dq_walk *w, size_t i);

/** Final result from an accumulator (sum, extreme or product) over `count` elements. `shift` is the maximum
 * that DQ_REDUCE_LOG_SUM_EXP subtracted. */
double dq_reduce_finish(dq_reduce_kind kind, double shift, double sum, size_t count);

/** Returns the offset at `coord` in a walk over the dimensions before `inner`, and advances `coord`. */
size_t dq_walk_next(const dq_walk *w, size_t coord[DQ_MAX_RANK], size_t inner);

/** Results that a task takes, for about equal work. */
size_t dq_reduce_grain(const dq_reduction *s);
/** The same for results in rows of `row` contiguous ones: at least `grain`, and whole rows if short. */
size_t dq_column_grain(size_t grain, size_t row);

/** The `sign_xor` of kernels/reduce/reduce_axis.h that makes the extreme the largest value. The kernels
 * compare floats, 8-bit integers as unsigned, and wider integers as signed. */
uint64_t dq_extreme_sign_xor(dq_dtype dtype, bool max);

/** Number of results from number i on that are contiguous in `kept`: at most DQ_REDUCE_BLOCK, and before
 * `end`. */
enum { DQ_REDUCE_BLOCK = 256 };
size_t dq_reduce_strided(const dq_walk *kept, size_t i, size_t end);

/** True if each result has a contiguous row of up to `most` elements and the rows are contiguous. Such rows
 * are transposed, so that vectors hold several results. */
bool dq_reduce_short_rows(const dq_reduction *s, size_t most);
/** Transposes a contiguous matrix of rows by cols elements of `width` 1 or 4 bytes to `to`. */
void dq_reduce_transpose(const dq_kernels *kernels, size_t width, const void *x, size_t rows, size_t cols,
                         void *to);

/** Reduces `in` to `out`, which has the same element type. Returns false if no vectorized algorithm applies.
 *
 * Float, float16 and bfloat16 are accumulated in double; exponentials are float. The order of accumulation:
 *
 *   - Short rows (dq_reduce_short_rows), and results that are contiguous: row-major.
 *
 *   - One contiguous row of elements per result: in the 16 lanes of kernels/elementwise/float_rows.h,
 *     products too.
 *
 *   - Several contiguous segments of up to 256 elements per result: first the elements of equal position in
 *     each segment, in row-major order; then the positions in these lanes.
 *
 *   - Longer segments, and segments of exponentials: one after the other, each in these lanes. Products and
 *     absolute values carry the lanes on to the next segment instead.
 *
 * Integers go to dq_reduce_integers. */
bool dq_reduce_by_vectors(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                          const dq_tensor *in, dq_tensor *out);
/** The same for integers: extremes of 8, 32 and 64 bits, sums of 32 and 64 bits, means of signed 32 and 64
 * bits. */
bool dq_reduce_integers(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                        const dq_tensor *in, dq_tensor *out);

#endif
