/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

/* Clamps and rounds; NaN gives the minimum. */
static int qvalue_of(float v, float low, float high)
{
    v = v > low ? v : low;
    v = v < high ? v : high;
    return (int)nearbyintf(v);
}

#define QLINEAR_ADD(name, type, low, high)                                                                   \
    void name(const type *a, float a_ratio, const type *b, float b_ratio, size_t step, float fixed,          \
              size_t n, type *y)                                                                             \
    {                                                                                                        \
        for (size_t i = 0; i < n; i++) {                                                                     \
            float sum = fmaf((float)b[i * step], b_ratio, fixed);                                            \
            y[i] = (type)qvalue_of(fmaf((float)a[i], a_ratio, sum), low, high);                              \
        }                                                                                                    \
    }
QLINEAR_ADD(dq_qlinear_add_u8_c, uint8_t, 0, 255)
QLINEAR_ADD(dq_qlinear_add_s8_c, int8_t, -128, 127)

#define QLINEAR_MUL(name, type, low, high)                                                                   \
    void name(const type *a, int a_zero, const type *b, int b_zero, size_t step, float ratio, float zero,    \
              size_t n, type *y)                                                                             \
    {                                                                                                        \
        for (size_t i = 0; i < n; i++) {                                                                     \
            float product = (float)((a[i] - a_zero) * (b[i * step] - b_zero)) * ratio;                       \
            y[i] = (type)qvalue_of(product + zero, low, high);                                               \
        }                                                                                                    \
    }
QLINEAR_MUL(dq_qlinear_mul_u8_c, uint8_t, 0, 255)
QLINEAR_MUL(dq_qlinear_mul_s8_c, int8_t, -128, 127)

void dq_lookup_x8_c(const uint8_t *x, size_t n, const uint8_t table[256], uint8_t *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}
