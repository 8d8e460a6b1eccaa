/* SPDX-License-Identifier: Apache-2.0 */
/* Columns against their contract, one column after the other. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

static int64_t key_of(const void *x, size_t width, size_t i, uint64_t sign_xor)
{
    if (width == 1)
        return (uint8_t)(((const uint8_t *)x)[i] ^ sign_xor);
    if (width == 4)
        return ((const int32_t *)x)[i] ^ (int32_t)sign_xor;
    return ((const int64_t *)x)[i] ^ (int64_t)sign_xor;
}

static void store(void *y, size_t width, size_t i, int64_t v)
{
    if (width == 1)
        ((uint8_t *)y)[i] = (uint8_t)v;
    else if (width == 4)
        ((int32_t *)y)[i] = (int32_t)v;
    else
        ((int64_t *)y)[i] = v;
}

/* `wide`: bytes of a result. */
static void check_integers(const char *what, dq_join_fn *join, size_t width, size_t wide, bool add,
                           uint64_t sign_xor, size_t n)
{
    const size_t count = kernel_random(7), step = n + kernel_random(3);
    const void *x = kernel_bytes((n + 6 * step) * width);
    char *y = kernel_bytes(n * wide), *z = kernel_memory(n * wide);
    memcpy(z, y, n * wide);
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < count; t++) {
            const int64_t v = key_of(x, width, t * step + i, sign_xor), a = key_of(z, wide, i, 0);
            store(z, wide, i, add ? (int64_t)((uint64_t)a + (uint64_t)v) : v > a ? v : a);
        }
    join(x, step, count, n, sign_xor, y);
    KERNEL_FAIL_UNLESS(memcmp(y, z, n * wide) == 0, "%s of %zu columns, %zu rows", what, n, count);
    kernel_done();
}

static double next_double(int kind, double a, double x)
{
    return kind == 0 ? a * x : kind == 1 ? a + fabs(x) : a + x * x;
}

static void check_doubles(const dq_reduce_axis_mixed *k, size_t n)
{
    dq_join_fn *const joins[] = {k->mul_f32, k->abs_f32, k->squares_f32};
    for (int kind = 0; kind < 3; kind++) {
        const size_t count = kernel_random(7), step = n + kernel_random(3);
        const float *x = kernel_floats(n + 6 * step);
        double *y = kernel_memory(n * sizeof *y);
        for (size_t i = 0; i < n; i++)
            y[i] = 1e-3 * (double)i;
        joins[kind](x, step, count, n, 0, y);
        for (size_t i = 0; i < n; i++) {
            double expected = 1e-3 * (double)i;
            for (size_t t = 0; t < count; t++)
                expected = next_double(kind, expected, (double)x[t * step + i]);
            KERNEL_FAIL_UNLESS(isnan(expected) ? isnan(y[i]) : y[i] == expected,
                               "kind %d, n %zu: %.17g, expected %.17g", kind, n, y[i], expected);
        }
        kernel_done();
    }
}

static void check_cumulate(const dq_reduce_axis_mixed *k, size_t n)
{
    const size_t count = kernel_random(5), step = n + kernel_random(3);
    const bool exclusive = kernel_random(2), back = kernel_random(2);
    const size_t first = back && count ? (count - 1) * step : 0;
    const float *x = kernel_floats(n + 4 * step);
    float *y = kernel_memory((n + 4 * step) * sizeof *y);
    double *sums = kernel_memory(n * sizeof *sums);
    k->cumulate_f32(x + first, back ? -(ptrdiff_t)step : (ptrdiff_t)step, count, n, exclusive, y + first,
                    sums);
    for (size_t i = 0; i < n; i++) {
        double sum = 0;
        for (size_t t = 0; t < count; t++) {
            const size_t at = (back ? count - 1 - t : t) * step + i;
            const double next = sum + (double)x[at];
            const float expected = (float)(exclusive ? sum : next);
            KERNEL_FAIL_UNLESS(isnan(expected) ? isnan(y[at]) : y[at] == expected,
                               "n %zu: sum %zu of column %zu", n, t, i);
            sum = next;
        }
        KERNEL_FAIL_UNLESS(isnan(sum) ? isnan(sums[i]) : sums[i] == sum, "n %zu: the sum of column %zu", n,
                           i);
    }
    kernel_done();
}

/* Few values, so that there are equals; rows in either order. */
static void check_arg_integers(const char *what, dq_arg_fn *arg, size_t width, uint64_t sign_xor, size_t n)
{
    const size_t count = 1 + kernel_random(20), step = n + kernel_random(3);
    const bool back = kernel_random(2);
    char *x = kernel_memory((n + (count - 1) * step) * width);
    int32_t *best = kernel_memory(n * sizeof *best), *where = kernel_memory(n * sizeof *where);
    for (size_t i = 0; i < n + (count - 1) * step; i++)
        store(x, width, i, (int64_t)((kernel_random(5) - 2) * 0x3f3f3f3fu));
    arg(x + (back ? (count - 1) * step * width : 0), back ? -(ptrdiff_t)step : (ptrdiff_t)step, count, n,
        sign_xor, best, where);
    for (size_t i = 0; i < n; i++) {
        size_t found = 0;
        int64_t most = INT64_MIN;
        for (size_t t = 0; t < count; t++) {
            const int64_t v = key_of(x, width, (back ? count - 1 - t : t) * step + i, sign_xor);
            found = v > most ? t : found;
            most = v > most ? v : most;
        }
        KERNEL_FAIL_UNLESS(where[i] == (int32_t)found && best[i] == (int32_t)most,
                           "%s of %zu columns, %zu rows: row %d, expected %zu", what, n, count, where[i],
                           found);
    }
    kernel_done();
}

static void check_arg_floats(const dq_reduce_axis_mixed *k, bool numbers, size_t n)
{
    const size_t count = 1 + kernel_random(20), step = n + kernel_random(3);
    const bool least = kernel_random(2);
    float *x = kernel_floats(n + (count - 1) * step), *best = kernel_memory(n * sizeof *best);
    int32_t *where = kernel_memory(n * sizeof *where);
    for (size_t i = 0; i < n + (count - 1) * step && numbers; i++) /* infinities and both zeros among them */
        x[i] = i % 19 == 3 ? -INFINITY : i % 23 == 5 ? -0.0f : (float)(int)(kernel_random(5) - 2);
    k->arg_f32(x, (ptrdiff_t)step, count, n, least ? 0x80000000u : 0, best, where);
    for (size_t i = 0; i < n; i++) {
        size_t found = 0;
        bool odd = false;
        float most = -INFINITY;
        for (size_t t = 0; t < count; t++) {
            const float v = least ? -x[t * step + i] : x[t * step + i];
            odd |= isnan(v);
            found = v > most ? t : found;
            most = v > most ? v : most;
        }
        bool fits = odd ? isnan(best[i]) : where[i] == (int32_t)found && best[i] == most;
        KERNEL_FAIL_UNLESS(fits || (!numbers && isnan(best[i])),
                           "%zu columns, %zu rows: row %d, expected %zu", n, count, where[i], found);
    }
    kernel_done();
}

void check_reduce_axis_mixed(const dq_kernels *kernels)
{
    static const uint64_t sign_xors[] = {0, 0x8080808080808080, UINT64_MAX, 0x7f7f7f7f7f7f7f7f};
    const dq_reduce_axis_mixed *k = kernels->reduce_axis_mixed;
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        for (size_t f = 0; f < sizeof sign_xors / sizeof *sign_xors; f++) {
            check_integers("max_8", k->max_8, 1, 1, false, sign_xors[f], n);
            check_integers("max_32", k->max_32, 4, 4, false, sign_xors[f], n);
            check_integers("max_64", k->max_64, 8, 8, false, sign_xors[f], n);
            check_arg_integers("arg_8", k->arg_8, 1, sign_xors[f] & UINT8_MAX, n);
            check_arg_integers("arg_32", k->arg_32, 4, sign_xors[f], n);
        }
        check_integers("add_32", k->add_32, 4, 8, true, 0, n);
        check_integers("add_64", k->add_64, 8, 8, true, 0, n);
        check_doubles(k, n);
        check_cumulate(k, n);
        check_arg_floats(k, false, n);
        check_arg_floats(k, true, n);
    }
}
