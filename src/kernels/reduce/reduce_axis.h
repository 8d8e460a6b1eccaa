/* SPDX-License-Identifier: Apache-2.0 */
/* Columns: what the elements of rows that lie `step` apart come to, each column by itself, from row 0 down. A
 * row is reduced as columns, too, whose results are then joined. */
#ifndef DQ_KERNELS_REDUCE_AXIS_H
#define DQ_KERNELS_REDUCE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** y[i] is joined with x[t * step + i], i below n, for each t below count. `sign_xor`: bits of x that are
 * turned over before, as many as an element has. */
typedef void dq_join_fn(const void *x, size_t step, size_t count, size_t n, uint64_t sign_xor, void *y);
/** The first of the largest of x[t * step + i], t below count (1 … 2^31 - 1): best[i] is that element,
 * where[i] its t. `sign_xor` as above; of floats it is 0, or the sign bit. A float column with a NaN has NaN
 * for its best, perhaps others, too, and any t. -0 equals 0, and which of them is best is open. */
typedef void dq_arg_fn(const void *x, ptrdiff_t step, size_t count, size_t n, uint64_t sign_xor, void *best,
                       int32_t *where);

typedef struct dq_reduce_axis_mixed {
    dq_join_fn *max_8, *max_32, *max_64; /* the larger of uint8_t, int32_t, int64_t, as is y */
    /** int32_t and uint64_t added to uint64_t, modulo 2^64; nothing is turned. */
    dq_join_fn *add_32, *add_64;
    /** Products, sums of absolute values and of squares of floats, in double, one after the other: squares
     * are exact before they are added. Nothing is turned. */
    dq_join_fn *mul_f32, *abs_f32, *squares_f32;
    /** sums[i] += x[t * step + i] in double for t from 0 up, and y[t * step + i] is that in float;
     * `exclusive`: what it was before. */
    void (*cumulate_f32)(const float *x, ptrdiff_t step, size_t count, size_t n, bool exclusive, float *y,
                         double *sums);
    dq_arg_fn *arg_8, *arg_32, *arg_f32; /* of uint8_t, int32_t, float; best is int32_t, int32_t, float */
} dq_reduce_axis_mixed;

#endif
