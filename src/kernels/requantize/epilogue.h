/* SPDX-License-Identifier: Apache-2.0 */
/* Contract of the float epilogue of integer accumulators. Included by kernels.h. */
#ifndef DQ_KERNELS_EPILOGUE_H
#define DQ_KERNELS_EPILOGUE_H

#include <stddef.h>
#include <stdint.h>

/** Converts n int32 accumulators at y to floats, in place: v = (float)sum * scale + bias (+ z[i], unless z is
 * NULL), each step rounded to float. Then v < low gives low, and v > high gives high; NaN and -0 pass. A bias
 * of -0.0 changes nothing, nor do bounds of -inf and inf. z does not overlap y. */
typedef void dq_dequantize_acc_f32_fn(float *y, size_t n, float scale, float bias, const float *z, float low,
                                      float high);

/** Dequantizes n accumulators with a factor for each: y[j] = (float)c[j] * factors[j] (+ bias[j], unless bias
 * is NULL), each step rounded to float. The arrays do not overlap. */
typedef void dq_dequantize_columns_f32_fn(const int32_t *c, size_t n, const float *factors, const float *bias,
                                          float *y);

#endif
