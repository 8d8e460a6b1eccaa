/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

bool dq_bilinear_f32_c(const float *x, size_t below, const size_t *at, const double *weight,
                       size_t weight_stride, size_t n, bool narrow, void *y)
{
    unsigned odd = 0;
    for (size_t i = 0; i < n; i++) {
        const float *high = x + at[i], *low = high + below;
        const double *w = weight + i;
        const double sum = (w[0] * (double)high[0] + w[weight_stride] * (double)high[1]) +
                           (w[2 * weight_stride] * (double)low[0] + w[3 * weight_stride] * (double)low[1]) +
                           0;
        if (narrow)
            ((float *)y)[i] = (float)sum;
        else
            ((double *)y)[i] = sum;
        odd |= sum != sum;
    }
    return odd != 0;
}
