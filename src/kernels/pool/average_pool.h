/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of the average-pooling kernels for 8-bit quantized values: sums of a window's rows in int16, then
 * sums along the rows and requantization. Included by kernels.h. */
#ifndef DQ_KERNELS_AVERAGE_POOL_H
#define DQ_KERNELS_AVERAGE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DQ_AVERAGE_STEP = 64 /* dq_average_means.n is a multiple of it */ };

/** Sums of `under` rows, at least one, for `rows` results of n elements each:
 * sums[i * sums_step + j] = sum over r < under of x[i * row_step + r * x_step + j], minus bias, modulo 2^16.
 * x is int8 if is_signed, else uint8. */
typedef struct dq_average_sums {
    const uint8_t *x;
    size_t x_step, under, row_step, rows, n;
    bool is_signed;
    int16_t bias;
    int16_t *sums;
    size_t sums_step;
} dq_average_sums;

/** Means of n windows: s[i] = sum over k < kernel of sums[i + k * dilation], modulo 2^16, and
 * v[i] = (float)s[i] * multiplier[i]. Then out[i] = q(v[i] - margin). Unless `near_ties` is NULL, bit i % 64
 * of near_ties[i / 64] is whether q(v[i] + margin) differs from it.
 *
 * q(v) = saturate(round(v) + zero), to int8 if is_signed, else to uint8. round is to nearest even; NaN gives
 * the type's minimum. Each operation is rounded to float. v[i] is NaN, or at most 2^30 in magnitude. */
typedef struct dq_average_means {
    const int16_t *sums;
    size_t kernel, dilation, n;
    const float *multiplier;
    float margin;
    int zero;
    bool is_signed;
    uint8_t *out;
    uint64_t *near_ties;
} dq_average_means;

typedef struct dq_average_pool_x8 {
    void (*sum_rows)(const dq_average_sums *r);
    void (*means)(const dq_average_means *m);
} dq_average_pool_x8;

#endif
