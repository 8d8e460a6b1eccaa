/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { POINTS = DQ_FWINOGRAD_POINTS, STEP = DQ_FWINOGRAD_STEP, TAPS = 9, SIDE = 4 };

static void want(const char *what, float got, float expected, size_t p, size_t i)
{
    KERNEL_FAIL_UNLESS(isnan(expected) ? isnan(got) : memcmp(&got, &expected, sizeof got) == 0,
                       "%s, point %zu of %zu: %.9g, expected %.9g", what, p, i, (double)got,
                       (double)expected);
}

/* A row of a matrix times a column of up to four values. */
typedef float row_fn(int row, const float *x);

static float b_row(int row, const float *x)
{
    return row == 0 ? x[0] - x[2] : row == 1 ? x[1] + x[2] : row == 2 ? x[2] - x[1] : x[1] - x[3];
}

static float g_row(int row, const float *x)
{
    float ends = x[0] + x[2];
    return row == 0 ? x[0] : row == 1 ? (ends + x[1]) / 2 : row == 2 ? (ends - x[1]) / 2 : x[2];
}

static float a_row(int row, const float *x)
{
    return row == 0 ? x[0] + x[1] + x[2] : x[1] - x[2] - x[3];
}

/* The matrix of `rows` rows times x, an n by n matrix, times the matrix transposed. */
static void sandwich(row_fn *row, int rows, int n, const float *x, float *out)
{
    float down[SIDE][SIDE], column[SIDE];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < n; j++) {
            for (int k = 0; k < n; k++)
                column[k] = x[k * n + j];
            down[i][j] = row(i, column);
        }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < rows; j++)
            out[i * rows + j] = row(j, down[i]);
}

/* Of all sizes, or such that everything stays finite. */
static float *numbers(size_t n, bool finite)
{
    float *x = kernel_floats(n);
    for (size_t i = 0; finite && i < n; i++)
        x[i] = ldexpf((float)kernel_random(1 << 24), -20) - 8;
    return x;
}

static void check_input(const dq_winograd_f32 *f, size_t channels, bool finite)
{
    const float *d[POINTS];
    float x[POINTS], expected[POINTS];
    size_t point = channels + kernel_random(9);
    float *v = kernel_memory(((POINTS - 1) * point + channels) * sizeof *v);
    for (size_t p = 0; p < POINTS; p++)
        d[p] = numbers(channels, finite);
    f->input(d, channels, v, point);
    for (size_t c = 0; c < channels; c++) {
        for (size_t p = 0; p < POINTS; p++)
            x[p] = d[p][c];
        sandwich(b_row, SIDE, SIDE, x, expected);
        for (size_t p = 0; p < POINTS; p++)
            want("pixels", v[p * point + c], expected[p], p, c);
    }
}

static void check_weights(const dq_winograd_f32 *f, size_t channels, bool finite)
{
    size_t size = channels * STEP, point = size + kernel_random(9);
    float x[TAPS], expected[POINTS], *g = numbers(size * TAPS, finite);
    float *u = kernel_memory(((POINTS - 1) * point + size) * sizeof *u);
    f->weights(g, channels, u, point);
    for (size_t i = 0; i < size; i++) {
        for (size_t t = 0; t < TAPS; t++)
            x[t] = g[(i / STEP * TAPS + t) * STEP + i % STEP];
        sandwich(g_row, SIDE, 3, x, expected);
        for (size_t p = 0; p < POINTS; p++)
            want("weights", u[p * point + i], expected[p], p, i);
    }
}

static void check_output(const dq_winograd_f32 *f, size_t channels, bool finite)
{
    size_t point = channels + kernel_random(9);
    float low = kernel_random(2) ? 0 : -INFINITY, high = kernel_random(2) ? 6 : INFINITY;
    float *m = numbers((POINTS - 1) * point + channels, finite), *bias = numbers(channels, finite), *y[4];
    float x[POINTS], expected[4];
    bool all = true;
    for (size_t p = 0; p < 4; p++)
        y[p] = kernel_memory(channels * sizeof *y[p]);
    if (finite && kernel_random(2))
        m[kernel_random(POINTS) * point + kernel_random((uint32_t)channels)] =
            kernel_random(2) ? NAN : INFINITY;
    bool got = f->output(m, point, channels, bias, low, high, y);
    for (size_t j = 0; j < channels; j++) {
        for (size_t p = 0; p < POINTS; p++)
            x[p] = m[p * point + j];
        sandwich(a_row, 2, SIDE, x, expected);
        for (size_t p = 0; p < 4; p++) {
            expected[p] += bias[j];
            all = all && isfinite(expected[p]);
            expected[p] = expected[p] < low ? low : expected[p];
            want("outputs", y[p][j], expected[p] > high ? high : expected[p], p, j);
        }
    }
    KERNEL_FAIL_UNLESS(got == all, "%zu channels are %sfinite", channels, all ? "" : "not ");
}

/* A kernel's row of 3 taps, or of 2. */
static void check_line(const dq_winograd_f32 *f, size_t panels, size_t taps, bool finite)
{
    const size_t tiles = panels * DQ_GEMM_F32_NR, panel = DQ_GEMM_F32_NR * (1 + kernel_random(3)),
                 row = tiles + 3;
    float *x = numbers(taps * row + tiles, finite), *v[4], of[SIDE];
    for (size_t p = 0; p < SIDE; p++)
        v[p] = kernel_memory(((panels - 1) * panel + DQ_GEMM_F32_NR) * sizeof *v[p]);
    if (taps == 2)
        v[2] = NULL;
    f->line(x, row, panels, taps, v, panel);
    for (size_t i = 0; i < tiles; i++) {
        for (size_t e = 0; e <= taps; e++)
            of[e] = x[e * row + i];
        for (int p = 0; p < SIDE; p++) {
            const float expected = taps == 3 ? b_row(p, of)
                                   : p == 0  ? of[0] - of[1]
                                   : p == 1  ? of[1]
                                             : of[1] - of[2];
            if (v[p])
                want("a line", v[p][i / DQ_GEMM_F32_NR * panel + i % DQ_GEMM_F32_NR], expected, (size_t)p, i);
        }
    }
}

static void check_line_output(const dq_winograd_f32 *f, size_t n, bool finite)
{
    const size_t point = n + kernel_random(9);
    const float low = kernel_random(2) ? 0 : -INFINITY, high = kernel_random(2) ? 6 : INFINITY;
    float *m = numbers((SIDE - 1) * point + n, finite), bias = *numbers(1, true), of[SIDE];
    float *y = kernel_memory(2 * n * sizeof *y);
    bool all = true;
    if (finite && kernel_random(2))
        m[kernel_random(SIDE) * point + kernel_random((uint32_t)n)] = kernel_random(2) ? NAN : INFINITY;
    const bool got = f->line_output(m, point, n, bias, low, high, y);
    for (size_t i = 0; i < n; i++) {
        for (size_t p = 0; p < SIDE; p++)
            of[p] = m[p * point + i];
        for (int k = 0; k < 2; k++) {
            float expected = a_row(k, of) + bias;
            all = all && isfinite(expected);
            expected = expected < low ? low : expected;
            want("outputs of a line", y[(size_t)k * n + i], expected > high ? high : expected, (size_t)k, i);
        }
    }
    KERNEL_FAIL_UNLESS(got == all, "%zu outputs of a line are %sfinite", n, all ? "" : "not ");
}

void check_winograd_f32(const dq_kernels *k)
{
    for (int round = 0; round < 60; round++) {
        check_input(k->winograd_f32, STEP * (1 + kernel_random(4)), round % 2);
        check_weights(k->winograd_f32, 1 + kernel_random(5), round % 2);
        check_output(k->winograd_f32, STEP * (1 + kernel_random(4)), round % 2);
        check_line(k->winograd_f32, 1 + kernel_random(4), 2 + kernel_random(2), round % 2);
        check_line_output(k->winograd_f32, DQ_GEMM_F32_NR * (1 + kernel_random(4)), round % 2);
        kernel_done();
    }
}
