/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: which elements meet, and those that go by vectors. */
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

/** Dimensions walked in row-major order; strides in elements of the input. */
typedef struct dq_walk {
    size_t rank, count;
    size_t dims[DQ_MAX_RANK], strides[DQ_MAX_RANK];
} dq_walk;

typedef struct dq_reduction {
    dq_reduce_kind kind;
    dq_walk kept, reduced;
} dq_reduction;

/** The offset of element i. */
size_t dq_walk_at(const dq_walk *w, size_t i);

/** What becomes of a sum, extreme or product over `count` elements. */
double dq_reduce_finish(dq_reduce_kind kind, double shift, double sum, size_t count);

/** The next stretch of a walk over the dimensions below `inner`: its coordinates move on, and the offset is
 * returned. */
size_t dq_walk_next(const dq_walk *w, size_t coord[DQ_MAX_RANK], size_t inner);

/** Results of a piece of parallel work. */
size_t dq_reduce_grain(const dq_reduction *s);
/** The same, at least `grain`, where `row` of them stand side by side: whole rows if they are short. */
size_t dq_column_grain(size_t grain, size_t row);

/** The `sign_xor` of kernels/reduce/reduce_axis.h that makes the extreme the largest: of floats, of integers
 * of 8 bits, which are unsigned there, and of wider ones, which are signed. */
uint64_t dq_extreme_sign_xor(dq_dtype dtype, bool max);

/** As many results from number i on as stand side by side, at most DQ_REDUCE_BLOCK. */
enum { DQ_REDUCE_BLOCK = 256 };
size_t dq_reduce_strided(const dq_walk *kept, size_t i, size_t end);

/** Whether rows are short (up to `most` elements), and one behind the other: they are turned, so that their
 * results stand side by side. */
bool dq_reduce_short_rows(const dq_reduction *s, size_t most);
/** Rows of elements of 1 or 4 bytes as columns, side by side in `to`. */
void dq_reduce_transpose(const dq_kernels *kernels, size_t width, const void *x, size_t rows, size_t cols,
                         void *to);

/** Reduces `in` to `out`, whose element type is the same; false where none of these ways is for it:
 *
 * Floats of 32 and 16 bits are accumulated in double, exponentials being floats. Short rows, and results side
 * by side: in row-major order. Elements side by side: in the 16 lanes of kernels/elementwise/float_rows.h,
 * also where they are multiplied. Stretches of them: up to 256 long, what stands at the same place of each in
 * row-major order, and then the places in these lanes; of exponentials, and where they are longer, one after
 * the other, but for products and absolute values, whose lanes go on. Integers: dq_reduce_integers. */
bool dq_reduce_by_vectors(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                          const dq_tensor *in, dq_tensor *out);
/** The same for extremes of integers of 8, 32 and 64 bits, sums of those of 32 and 64, means of signed ones.
 */
bool dq_reduce_integers(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                        const dq_tensor *in, dq_tensor *out);

#endif
