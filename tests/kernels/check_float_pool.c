#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5 };

static void want(const char *what, double got, double wanted, size_t i, size_t n)
{
    KERNEL_FAIL_UNLESS(isnan(wanted) ? isnan(got) : memcmp(&got, &wanted, sizeof got) == 0,
                       "%s, element %zu of %zu: %.9g, wanted %.9g", what, i, n, got, wanted);
}

/* Of the values met so far, and the next. */
static float larger(float u, float v)
{
    return isnan(u) || u > v ? u : v;
}

static void check_rows_of(const dq_float_pool *k, size_t n)
{
    size_t at[ROWS], rows = 1 + kernel_random(ROWS), apart = n + kernel_random(3);
    float *x = kernel_floats((rows - 1) * apart + n), *line = kernel_memory(n * sizeof *line);
    double *sums = kernel_memory(n * sizeof *sums);
    for (size_t r = 0; r < rows; r++)
        at[r] = kernel_random((uint32_t)rows) * apart;
    k->max_rows(x, at, rows, n, line);
    k->sum_rows(x, at, rows, n, sums);
    for (size_t i = 0; i < n; i++) {
        float most = x[at[0] + i];
        double sum = 0;
        for (size_t r = 0; r < rows; r++) {
            most = r ? larger(most, x[at[r] + i]) : most;
            sum += (double)x[at[r] + i];
        }
        want("max_rows", (double)line[i], (double)most, i, n);
        want("sum_rows", sums[i], sum, i, n);
    }
    k->sum_rows(x, at, 0, n, sums);
    for (size_t i = 0; i < n; i++)
        want("sum_rows of none", sums[i], 0, i, n);
    kernel_done();
}

static void check_windows(const dq_float_pool *k, size_t n)
{
    const dq_line_windows w = {n, 1 + kernel_random(3), 1 + kernel_random(4), 1 + kernel_random(2)};
    size_t length = n ? (n - 1) * w.stride + (w.taps - 1) * w.dilation + 1 : 0;
    float *line = kernel_floats(length + DQ_POOL_SLACK), *y = kernel_memory(n * sizeof *y);
    double *sums = kernel_memory((length + DQ_POOL_SLACK) * sizeof *sums),
           *counts = kernel_memory(n * sizeof *counts);
    for (size_t i = 0; i < length; i++)
        sums[i] = (double)line[i];
    for (size_t i = 0; i < n; i++)
        counts[i] = 1 + kernel_random(9);
    k->max_windows(line, &w, y);
    for (size_t i = 0; i < n; i++) {
        float most = line[i * w.stride];
        for (size_t t = 1; t < w.taps; t++)
            most = larger(most, line[i * w.stride + t * w.dilation]);
        want("max_windows", (double)y[i], (double)most, i, n);
    }
    k->mean_windows(sums, &w, 3, counts, y);
    for (size_t i = 0; i < n; i++) {
        double sum = sums[i * w.stride];
        for (size_t t = 1; t < w.taps; t++)
            sum += sums[i * w.stride + t * w.dilation];
        want("mean_windows", (double)y[i], (double)(float)(sum * (3 * counts[i])), i, n);
    }
    kernel_done();
}

void check_float_pool(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++)
        for (int round = 0; round < 8; round++) {
            check_rows_of(k->float_pool, n);
            if (n) /* a line has windows */
                check_windows(k->float_pool, n);
        }
}
