/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of quantized operands with a quantized result. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

/* A ratio of scales, now and then an odd one. */
static float ratio(void)
{
    static const float odd[] = {0, INFINITY, NAN, -1, 1, 0.5f, 1e30f, 1e-30f};
    if (kernel_random(4) == 0)
        return odd[kernel_random(sizeof odd / sizeof odd[0])];
    return ldexpf(1 + (float)kernel_random(1 << 23), -(int)kernel_random(12) - 18);
}

static double rounded(float v, double low, double high)
{
    return isnan(v) || v < (float)low ? low : v > (float)high ? high : (double)rintf(v);
}

/* Codes of a or b that were overwritten by the result are the result. */
static void same_qvalues(const void *got, const void *want, size_t n, const char *what)
{
    KERNEL_FAIL_UNLESS(n == 0 || memcmp(got, want, n) == 0, "%zu codes in place of %s differ", n, what);
}

#define CHECK_QLINEAR(type, suffix, low, high)                                                               \
    void check_qlinear_add_##suffix(const dq_kernels *k)                                                     \
    {                                                                                                        \
        size_t n;                                                                                            \
        for (size_t i = 0; kernel_size(i / 4, &n); i++) {                                                    \
            size_t step = i % 2;                                                                             \
            type *a = kernel_bytes(n), *b = kernel_bytes(step ? n : 1), *y = kernel_bytes(n);                \
            float ra = ratio(), rb = ratio(), fixed = (float)kernel_random(4000) / 16 - 125;                 \
            k->qlinear_add_##suffix(a, ra, b, rb, step, fixed, n, y);                                        \
            for (size_t j = 0; j < n; j++) {                                                                 \
                float inner = fmaf((float)b[j * step], rb, fixed);                                           \
                double want = rounded(fmaf((float)a[j], ra, inner), low, high);                              \
                KERNEL_FAIL_UNLESS(y[j] == want, "n %zu: %d * %g + (%d * %g + %g) is %d, expected %g", n,    \
                                   a[j], (double)ra, b[j * step], (double)rb, (double)fixed, y[j], want);    \
            }                                                                                                \
            if (step) {                                                                                      \
                type *z = kernel_bytes(n);                                                                   \
                memcpy(z, b, n);                                                                             \
                k->qlinear_add_##suffix(a, ra, z, rb, step, fixed, n, z);                                    \
                same_qvalues(z, y, n, "b");                                                                  \
            }                                                                                                \
            k->qlinear_add_##suffix(a, ra, b, rb, step, fixed, n, a);                                        \
            same_qvalues(a, y, n, "a");                                                                      \
            kernel_done();                                                                                   \
        }                                                                                                    \
    }                                                                                                        \
    void check_qlinear_mul_##suffix(const dq_kernels *k)                                                     \
    {                                                                                                        \
        size_t n;                                                                                            \
        for (size_t i = 0; kernel_size(i / 4, &n); i++) {                                                    \
            size_t step = i % 2;                                                                             \
            type *a = kernel_bytes(n), *b = kernel_bytes(step ? n : 1), *y = kernel_bytes(n);                \
            int za = (int)kernel_random(256) + (low), zb = (int)kernel_random(256) + (low);                  \
            float r = ratio(), zero = (float)((int)kernel_random(256) + (low));                              \
            k->qlinear_mul_##suffix(a, za, b, zb, step, r, zero, n, y);                                      \
            for (size_t j = 0; j < n; j++) {                                                                 \
                float product = (float)((a[j] - za) * (b[j * step] - zb)) * r;                               \
                double want = rounded(product + zero, low, high);                                            \
                KERNEL_FAIL_UNLESS(y[j] == want,                                                             \
                                   "n %zu: (%d - %d) * (%d - %d) * %g + %g is %d, expected %g", n, a[j], za, \
                                   b[j * step], zb, (double)r, (double)zero, y[j], want);                    \
            }                                                                                                \
            if (step) {                                                                                      \
                type *z = kernel_bytes(n);                                                                   \
                memcpy(z, b, n);                                                                             \
                k->qlinear_mul_##suffix(a, za, z, zb, step, r, zero, n, z);                                  \
                same_qvalues(z, y, n, "b");                                                                  \
            }                                                                                                \
            k->qlinear_mul_##suffix(a, za, b, zb, step, r, zero, n, a);                                      \
            same_qvalues(a, y, n, "a");                                                                      \
            kernel_done();                                                                                   \
        }                                                                                                    \
    }

CHECK_QLINEAR(uint8_t, u8, 0, UINT8_MAX)
CHECK_QLINEAR(int8_t, s8, INT8_MIN, INT8_MAX)

void check_lookup_x8(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i / 2, &n); i++) {
        bool in_place = i % 2;
        uint8_t *x = kernel_bytes(n), *table = kernel_bytes(256), *kept = kernel_memory(n);
        uint8_t *y = in_place ? x : kernel_bytes(n);
        for (size_t j = 0; j < n; j++)
            kept[j] = x[j];
        k->lookup_x8(x, n, table, y);
        for (size_t j = 0; j < n; j++)
            KERNEL_FAIL_UNLESS(y[j] == table[kept[j]], "n %zu: entry %u is %u, expected %u", n, kept[j], y[j],
                               table[kept[j]]);
        kernel_done();
    }
}
