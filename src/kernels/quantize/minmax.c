/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

void dq_minmax_f32_c(const float *x, size_t n, float *lo, float *hi)
{
    float low = *lo, high = *hi;
    for (size_t i = 0; i < n; i++) {
        /* a NaN never replaces a number */
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *lo = low + 0.0f; /* -0 becomes 0 */
    *hi = high + 0.0f;
}
