/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of finished sums. Included by kernels.h. */
#ifndef DQ_KERNELS_EPILOGUE_H
#define DQ_KERNELS_EPILOGUE_H

#include <stddef.h>
#include <stdint.h>

/** n int32 sums at y become floats in their place: v = (float)sum * scale + bias (+ z[i], unless z is NULL),
 * each step rounded to float by itself; then v < low gives low, and what is above high gives high: NaN and -0
 * pass. A bias of -0.0 changes nothing, nor do bounds of -inf and inf. z does not overlap y. */
typedef void dq_dequantize_acc_f32_fn(float *y, size_t n, float scale, float bias, const float *z, float low,
                                      float high);

#endif
