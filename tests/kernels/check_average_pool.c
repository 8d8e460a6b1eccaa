/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_check.h"

#include <math.h>

static void check_sum_rows(const dq_average_pool_x8 *k, size_t n, bool is_signed)
{
    dq_average_sums r = {
        .n = n, .is_signed = is_signed, .under = 1 + kernel_random(4), .rows = kernel_random(4)};
    r.x_step = n + kernel_random(3);
    r.row_step = kernel_random(2) ? r.x_step : 2 * r.x_step + 1;
    r.sums_step = n + kernel_random(3);
    r.bias = (int16_t)kernel_random(1 << 16);
    const size_t rows = r.rows;
    const uint8_t *x = r.x = kernel_bytes(rows ? (rows - 1) * r.row_step + (r.under - 1) * r.x_step + n : 0);
    r.sums = kernel_memory((rows ? (rows - 1) * r.sums_step + n : 0) * sizeof *r.sums);
    k->sum_rows(&r);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < r.sums_step && (i + 1 < rows || j < n); j++) {
            int sum = j < n ? -r.bias : 0; /* Elements between the rows are not written. */
            for (size_t u = 0; u < r.under && j < n; u++) {
                const uint8_t byte = x[i * r.row_step + u * r.x_step + j];
                sum += is_signed ? (int8_t)byte : byte;
            }
            KERNEL_FAIL_UNLESS(r.sums[i * r.sums_step + j] == (int16_t)sum,
                               "sum_rows, n %zu, %zu rows of %zu: sum %zu of row %zu is %d, expected %d", n,
                               rows, r.under, j, i, r.sums[i * r.sums_step + j], (int16_t)sum);
        }
    kernel_done();
}

static int quantized(const dq_average_means *m, float v)
{
    const double least = m->is_signed ? INT8_MIN : 0, most = m->is_signed ? INT8_MAX : UINT8_MAX;
    const double q = isnan(v) ? least : rint((double)v) + m->zero;
    return (uint8_t)(int)(q < least ? least : q > most ? most : q);
}

/* Multiples of 1/4 make ties, and others results of all sizes. */
static float some_multiplier(void)
{
    const uint32_t which = kernel_random(20);
    if (which == 0)
        return NAN;
    if (which < 8)
        return (float)kernel_random(8) / 4;
    return ldexpf(1 + (float)kernel_random(1 << 23) / (1 << 23), (int)kernel_random(28) - 14);
}

static void check_means(const dq_average_pool_x8 *k, size_t n, bool is_signed)
{
    dq_average_means m = {.n = n, .is_signed = is_signed, .kernel = 1 + kernel_random(5)};
    m.dilation = 1 + kernel_random(3);
    m.margin = kernel_random(2) ? ldexpf(1, -(int)kernel_random(12)) : 0;
    m.zero = (int)kernel_random(256) + (is_signed ? INT8_MIN : 0);
    const size_t count = n ? n + (m.kernel - 1) * m.dilation : 0;
    int16_t *sums = kernel_bytes(count * sizeof *sums);
    float *multiplier = kernel_memory(n * sizeof *multiplier);
    for (size_t i = 0; i < count; i++)
        if (kernel_random(4)) /* of usual sizes */
            sums[i] = (int16_t)((int)kernel_random(512) - 256);
    for (size_t i = 0; i < n; i++)
        multiplier[i] = some_multiplier();
    m.sums = sums;
    m.multiplier = multiplier;
    m.out = kernel_memory(n);
    m.near_ties = kernel_random(3) ? kernel_memory(n / 8) : NULL;
    k->means(&m);
    for (size_t i = 0; i < n; i++) {
        int sum = 0;
        for (size_t t = 0; t < m.kernel; t++)
            sum += sums[i + t * m.dilation];
        const float v = (float)(int16_t)sum * multiplier[i];
        const int low = quantized(&m, v - m.margin), high = quantized(&m, v + m.margin);
        KERNEL_FAIL_UNLESS(m.out[i] == low, "means, element %zu of %zu is %u, expected %d", i, n, m.out[i],
                           low);
        KERNEL_FAIL_UNLESS(!m.near_ties || (m.near_ties[i / 64] >> i % 64 & 1) == (low != high),
                           "means, element %zu of %zu: the bit of `near_ties` is wrong", i, n);
    }
    kernel_done();
}

void check_average_pool_x8(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i / 2, &n); i++) {
        check_sum_rows(k->average_pool_x8, n, i % 2);
        check_means(k->average_pool_x8, n % 8 * DQ_AVERAGE_STEP, i % 2);
    }
}
