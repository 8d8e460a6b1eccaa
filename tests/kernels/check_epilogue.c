/* SPDX-License-Identifier: Apache-2.0 */
/* Finished sums. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

static float finished(int32_t sum, float scale, float bias, const float *z, float low, float high)
{
    volatile float v = (float)sum * scale; /* volatile: rounded here, whatever the compiler would rather do */
    v = v + bias;
    if (z)
        v = v + *z;
    return v < low ? low : v > high ? high : v;
}

void check_dequantize_acc_f32(const dq_kernels *k)
{
    static const float lows[] = {-INFINITY, 0, -1000}, highs[] = {INFINITY, 6, 1e6f};
    size_t n;
    for (size_t i = 0; kernel_size(i / 6, &n); i++) {
        float *y = kernel_bytes(n * sizeof *y), *z = i % 2 ? kernel_floats(n) : NULL,
              *params = kernel_floats(2);
        float low = lows[i / 2 % 3], high = highs[i / 2 % 3];
        int32_t *sums = kernel_memory(n * sizeof *sums);
        for (size_t j = 0; j < n; j++) /* small sums too, down to 0 */
            sums[j] = (int32_t)((kernel_random(UINT32_MAX) >> kernel_random(32)) *
                                (kernel_random(2) ? 1 : UINT32_MAX));
        memcpy(y, sums, n * sizeof *sums);
        float bias = kernel_random(3) ? params[1] : -0.0f;
        k->dequantize_acc_f32(y, n, params[0], bias, z, low, high);
        for (size_t j = 0; j < n; j++) {
            float want = finished(sums[j], params[0], bias, z ? z + j : NULL, low, high);
            KERNEL_FAIL_UNLESS((isnan(want) && isnan(y[j])) || memcmp(&want, &y[j], sizeof want) == 0,
                               "n %zu, element %zu: %d * %g + %g is %.9g, expected %.9g", n, j, sums[j],
                               (double)params[0], (double)bias, (double)y[j], (double)want);
        }
        kernel_done();
    }
}

void check_dequantize_columns_f32(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i / 2, &n); i++) {
        float *y = kernel_bytes(n * sizeof *y), *factors = kernel_floats(n);
        const float *bias = i % 2 ? kernel_floats(n) : NULL;
        int32_t *sums = kernel_memory(n * sizeof *sums);
        for (size_t j = 0; j < n; j++)
            sums[j] = (int32_t)(kernel_random(UINT32_MAX) >> kernel_random(32));
        k->dequantize_columns_f32(sums, n, factors, bias, y);
        for (size_t j = 0; j < n; j++) {
            float want = (float)sums[j] * factors[j];
            if (bias)
                want = want + bias[j];
            KERNEL_FAIL_UNLESS((isnan(want) && isnan(y[j])) || memcmp(&want, &y[j], sizeof want) == 0,
                               "n %zu, element %zu: %d is %.9g, expected %.9g", n, j, sums[j], (double)y[j],
                               (double)want);
        }
        kernel_done();
    }
}
