/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5 };

static void want(const char *what, double got, double expected, size_t i, size_t n)
{
    KERNEL_FAIL_UNLESS(isnan(expected) ? isnan(got) : memcmp(&got, &expected, sizeof got) == 0,
                       "%s, element %zu of %zu: %.9g, expected %.9g", what, i, n, got, expected);
}

/* Of the values met so far, and the next. */
static float larger(float u, float v)
{
    return isnan(u) || u > v ? u : v;
}

static void check_rows_of(const dq_pool_f32 *k, size_t n)
{
    size_t at[ROWS], under = 1 + kernel_random(ROWS), lines = 1 + kernel_random(4),
                     step = n + kernel_random(3);
    size_t row_stride = n + kernel_random(3), total = (lines - 1) * row_stride + n;
    const bool in_turn = kernel_random(2); /* each line's rows are those of the line before but one */
    float *x = kernel_floats((under + lines - 2) * step + n), *line = kernel_memory(total * sizeof *line);
    double *sums = kernel_memory(total * sizeof *sums);
    for (size_t r = 0; r < under; r++)
        at[r] = (in_turn ? r : kernel_random((uint32_t)under)) * step;
    dq_pool_lines p = {x, at, under, step, n, lines, row_stride};
    k->max_rows(&p, line);
    k->sum_rows(&p, sums);
    for (size_t i = 0; i < lines * n; i++) {
        const float *from = x + i / n * step + i % n;
        float most = from[at[0]];
        double sum = 0;
        for (size_t r = 0; r < under; r++) {
            most = r ? larger(most, from[at[r]]) : most;
            sum += (double)from[at[r]];
        }
        want("max_rows", (double)line[i / n * row_stride + i % n], (double)most, i, n);
        want("sum_rows", sums[i / n * row_stride + i % n], sum, i, n);
    }
    k->square_rows(&p, sums);
    for (size_t i = 0; i < lines * n; i++) {
        const float *from = x + i / n * step + i % n;
        double sum = 0;
        for (size_t r = 0; r < under; r++)
            sum += (double)from[at[r]] * (double)from[at[r]];
        want("square_rows", sums[i / n * row_stride + i % n], sum, i, n);
    }
    p.under = 0;
    k->sum_rows(&p, sums);
    for (size_t i = 0; i < lines * n; i++)
        want("sum_rows of none", sums[i / n * row_stride + i % n], 0, i, n);
    kernel_done();
}

static void check_windows(const dq_pool_f32 *k, size_t n)
{
    dq_line_windows w = {.count = n,
                         .stride = 1 + kernel_random(3),
                         .taps = 1 + kernel_random(4),
                         .dilation = 1 + kernel_random(2),
                         .lines = 1 + kernel_random(3),
                         .root = kernel_random(2)};
    w.row_stride = (n - 1) * w.stride + (w.taps - 1) * w.dilation + 1 + kernel_random(3);
    size_t length = w.lines * w.row_stride + DQ_POOL_SLACK, results = w.lines * n;
    float *lines = kernel_floats(length), *y = kernel_memory(results * sizeof *y);
    double *sums = kernel_memory(length * sizeof *sums), *shares = kernel_memory(n * sizeof *shares);
    for (size_t i = 0; i < length; i++)
        sums[i] = (double)lines[i];
    for (size_t i = 0; i < n; i++)
        shares[i] = 1 + kernel_random(9);
    k->max_windows(lines, &w, y);
    for (size_t i = 0; i < results; i++) {
        const float *line = lines + i / n * w.row_stride + i % n * w.stride;
        float most = line[0];
        for (size_t t = 1; t < w.taps; t++)
            most = larger(most, line[t * w.dilation]);
        want("max_windows", (double)y[i], (double)most, i, n);
    }
    k->mean_windows(sums, &w, 3, shares, y);
    for (size_t i = 0; i < results; i++) {
        const double *line = sums + i / n * w.row_stride + i % n * w.stride;
        double sum = line[0];
        for (size_t t = 1; t < w.taps; t++)
            sum += line[t * w.dilation];
        sum *= 3 * shares[i % n];
        want("mean_windows", (double)y[i], (double)(float)(w.root ? sqrt(sum) : sum), i, n);
    }
    kernel_done();
}

void check_pool_f32(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++)
        for (int round = 0; round < 8; round++) {
            check_rows_of(k->pool_f32, n);
            if (n) /* a line has windows */
                check_windows(k->pool_f32, n);
        }
}
