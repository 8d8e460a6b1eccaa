/* SPDX-License-Identifier: Apache-2.0 */
/* Float epilogue of integer accumulators in portable C. */
#include "kernels/kernels.h"

#include <string.h>

void dq_dequantize_columns_f32_c(const int32_t *restrict c, size_t n, const float *restrict factors,
                                 const float *restrict bias, float *restrict y)
{
    if (bias)
        for (size_t j = 0; j < n; j++)
            y[j] = (float)c[j] * factors[j] + bias[j];
    else
        for (size_t j = 0; j < n; j++)
            y[j] = (float)c[j] * factors[j];
}

void dq_dequantize_acc_f32_c(float *y, size_t n, float scale, float bias, const float *z, float low,
                             float high)
{
    for (size_t i = 0; i < n; i++) {
        int32_t sum;
        memcpy(&sum, &y[i], sizeof sum);
        float v = (float)sum * scale;
        v = v + bias;
        if (z)
            v = v + z[i];
        v = v < low ? low : v;
        y[i] = v > high ? high : v;
    }
}
