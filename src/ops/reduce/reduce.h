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

/** Results of a piece of parallel work. */
size_t dq_reduce_grain(const dq_reduction *s);

/** Reduces `in` to `out`, whose element type is the same; false where none of these ways is for it:
 *
 * Floats of 32 and 16 bits, but for products, are accumulated in double, exponentials being floats. Elements
 * side by side are added in the lanes of kernels/float_rows.h, and stretches of them one after the other;
 * short rows, and results side by side, in row-major order. Extremes of integers of 8, 32 and 64 bits. */
bool dq_reduce_by_vectors(dq_threads *threads, const dq_kernels *kernels, const dq_reduction *s,
                          const dq_tensor *in, dq_tensor *out);

#endif
