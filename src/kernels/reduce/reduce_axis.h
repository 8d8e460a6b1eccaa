/* SPDX-License-Identifier: Apache-2.0 */
/* Contracts of reductions along an axis. They reduce columns: each column over `count` rows with stride
 * `step`, starting with row 0. A contiguous row is reduced as several columns, whose results are then
 * combined. */
#ifndef DQ_KERNELS_REDUCE_AXIS_H
#define DQ_KERNELS_REDUCE_AXIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Combines y[i] with x[t * step + i], for i < n and each t < count. `sign_xor` is first XORed with the
 * elements of x. */
typedef void dq_join_fn(const void *x, size_t step, size_t count, size_t n, uint64_t sign_xor, void *y);
/** First index of the maximum: best[i] is the largest of x[t * step + i], t < count, and where[i] its first
 * t. count is 1 … 2^31 - 1. `sign_xor` as above; for floats it is 0 or the sign bit. A float column with a
 * NaN has best NaN, or another value, and any t. -0 equals 0; either may be best. */
typedef void dq_arg_fn(const void *x, ptrdiff_t step, size_t count, size_t n, uint64_t sign_xor, void *best,
                       int32_t *where);

typedef struct dq_reduce_axis_mixed {
    dq_join_fn *max_8, *max_32, *max_64; /* maximum of uint8_t, int32_t, int64_t; y has the same type */
    /** Sums of int32_t and uint64_t in uint64_t, modulo 2^64; they ignore sign_xor. */
    dq_join_fn *add_32, *add_64;
    /** Products, sums of absolute values and sums of squares of floats, in double, in the order of t. Squares
     * are exact before they are added. They ignore sign_xor. */
    dq_join_fn *mul_f32, *abs_f32, *squares_f32;
    /** Cumulative sums: sums[i] += x[t * step + i] in double, in the order of t; y[t * step + i] is sums[i]
     * as a float after that (`exclusive`: before that). */
    void (*cumulate_f32)(const float *x, ptrdiff_t step, size_t count, size_t n, bool exclusive, float *y,
                         double *sums);
    dq_arg_fn *arg_8, *arg_32, *arg_f32; /* for uint8_t, int32_t, float; best is int32_t, int32_t, float */
} dq_reduce_axis_mixed;

#endif
