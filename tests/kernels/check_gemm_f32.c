/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

static bool same_or_nan(float a, float b)
{
    return isnan(b) ? isnan(a) : memcmp(&a, &b, sizeof a) == 0;
}

/* Operands and sums to begin with: in every fourth round any numbers; else sums stay finite. In two of four a
 * product is about half of the last bit that a sum has (of normal or of denormal floats), with bits so far
 * below that double does not hold them beside the sum's. In one of eight sums are small whole numbers, often
 * zero. */
typedef enum role { OPERAND, SUM } role;

static float *numbers(int round, role what, size_t n)
{
    float *x = kernel_floats(n);
    for (size_t i = 0; round % 4 && i < n; i++) {
        float fraction = ldexpf((float)kernel_random(1 << 24), -24);
        float near = 1 + (float)((int)kernel_random(3) - 1) * 0x1p-16f;
        if (round % 8 == 5)
            x[i] = (float)((int)kernel_random(3) - 1);
        else if (round % 4 == 1)
            x[i] = fraction - 0.5f;
        else if (round % 4 == 2)
            x[i] = what == SUM ? 1 + fraction : near * 0x1p-12f;
        else
            x[i] = what == SUM ? (1 + fraction) * 0x1p-128f : near * 0x1p-75f;
    }
    return x;
}

static const dq_hswish_f32 gates[] = {{1, 3, 0, 6, 6, 1, -0.0f},
                                      {1, 3, 0, 6, -6, 1, -0.0f},
                                      {1.0f / 6, 0.5f, 0, 1, 1, 1, -0.0f},
                                      {0.2f, 0.5f, 0, 1, 1, 0.7f, 0.3f}};

/* Often none. */
static const dq_hswish_f32 *some_gate(void)
{
    uint32_t i = kernel_random(6);
    return i < sizeof gates / sizeof *gates ? &gates[i] : NULL;
}

static float gated(const dq_hswish_f32 *g, float x)
{
    if (!g)
        return x;
    float t = fmaf(x, g->scale, g->shift);
    t = t < g->low ? g->low : t;
    t = t > g->high ? g->high : t;
    x = x * t;
    x = x / g->divisor;
    x = x * g->factor;
    return x + g->term;
}

static float finished(const dq_gemm_block_f32 *g, size_t i, size_t j, float x)
{
    if (g->alpha != 1)
        x = g->alpha * x;
    if (g->bias)
        x += g->bias[i];
    if (g->z)
        x += g->z[i * g->z_row + j];
    x = x < g->low ? g->low : x;
    return gated(g->gate, x > g->high ? g->high : x);
}

static void check_block(const dq_kernels *k, const dq_gemm_block_f32 *g, const float *was, size_t size)
{
    k->gemm_block_f32(g);
    for (size_t at = 0; at < size; at++) {
        size_t i = at / g->c_row, j = at % g->c_row;
        float expected = was[at];
        if (j < g->cols) {
            expected = g->more ? was[at] : 0;
            for (size_t p = 0; p < g->k; p++)
                expected = fmaf(g->a[i * g->a_row + p],
                                g->b[j / DQ_GEMM_F32_NR * g->b_panel + p * g->b_step + j % DQ_GEMM_F32_NR],
                                expected);
            if (g->last)
                expected = finished(g, i, j, expected);
        }
        KERNEL_FAIL_UNLESS(same_or_nan(g->c[at], expected),
                           "%zu rows, %zu columns, %zu steps%s%s, row %zu, column %zu: %.9g, expected %.9g",
                           g->rows, g->cols, g->k, g->more ? ", more" : "", g->last ? ", last" : "", i, j,
                           (double)g->c[at], (double)expected);
    }
}

/* Panels, or a plain matrix, with and without what comes last. */
void check_gemm_block_f32(const dq_kernels *k)
{
    for (int round = 0; round < 1600; round++) {
        dq_gemm_block_f32 g = {.rows = 1 + kernel_random(round % 3 ? 30 : 1),
                               .cols = 1 + kernel_random(round % 5 ? 40 : 100),
                               .k = kernel_random(round % 4 ? 24 : 140),
                               .more = kernel_random(2),
                               .last = kernel_random(2),
                               .exceeds_caches = kernel_random(2),
                               .alpha = kernel_random(2) ? 1 : 0.3f,
                               .low = kernel_random(2) ? 0 : -INFINITY,
                               .high = kernel_random(2) ? 1 : INFINITY,
                               .gate = some_gate()};
        size_t panels = (g.cols + DQ_GEMM_F32_NR - 1) / DQ_GEMM_F32_NR;
        bool plain = kernel_random(2);
        size_t b_size = panels * DQ_GEMM_F32_NR * g.k;
        g.a_row = g.k + kernel_random(3);
        g.b_panel = plain ? DQ_GEMM_F32_NR : DQ_GEMM_F32_NR * g.k;
        g.b_step = plain ? panels * DQ_GEMM_F32_NR : DQ_GEMM_F32_NR;
        if (plain && g.rows == 1) { /* nothing behind the last column */
            g.b_step = g.cols;
            b_size = g.cols * g.k;
        }
        g.c_row = g.z_row = g.cols + kernel_random(3);
        size_t size = (g.rows - 1) * g.c_row + g.cols;
        g.a = numbers(round, OPERAND, g.k ? (g.rows - 1) * g.a_row + g.k : 0);
        g.b = numbers(round, OPERAND, b_size);
        g.bias = kernel_random(2) ? numbers(round, OPERAND, g.rows) : NULL;
        g.z = kernel_random(2) ? numbers(round, OPERAND, size) : NULL;
        g.c = numbers(round, SUM, size);
        float *was = kernel_memory(size * sizeof *was);
        memcpy(was, g.c, size * sizeof *was);
        check_block(k, &g, was, size);
        kernel_done();
    }
}

void check_gemv_f32(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t rows = 1 + kernel_random(40), steps = kernel_random(50), a_row = steps + kernel_random(3);
        const float *a = numbers(round, OPERAND, steps ? (rows - 1) * a_row + steps : 0),
                    *x = numbers(round, OPERAND, steps);
        float *y = kernel_memory(rows * sizeof *y);
        k->gemv_f32(a, a_row, rows, steps, x, y);
        for (size_t i = 0; i < rows; i++) {
            float expected = 0;
            for (size_t p = 0; p < steps; p++)
                expected = fmaf(a[i * a_row + p], x[p], expected);
            KERNEL_FAIL_UNLESS(same_or_nan(y[i], expected), "row %zu of %zu, %zu steps: %.9g, expected %.9g",
                               i, rows, steps, (double)y[i], (double)expected);
        }
        kernel_done();
    }
}

/* Windows in a row with padding at either end, over two rows of an image, at every second place, anywhere. */
void check_im2col_gather_f32(const dq_kernels *k)
{
    for (int round = 0; round < 400; round++) {
        size_t channels = 1 + kernel_random(5), plane = 16 + kernel_random(60),
               step = DQ_GEMM_F32_NR * (1 + kernel_random(3));
        int32_t at[DQ_GEMM_F32_NR], first = (int32_t)kernel_random((uint32_t)plane - 15);
        int32_t low = (int32_t)kernel_random(20), high = (int32_t)kernel_random(20);
        for (int32_t j = 0; j < DQ_GEMM_F32_NR; j++) {
            int32_t resolve = round % 4 == 0   ? first + j
                              : round % 4 == 1 ? (first + j + (j > 8 ? low - high : 0))
                              : round % 4 == 2 ? first + 2 * j
                                               : (int32_t)kernel_random((uint32_t)plane);
            at[j] = resolve < 0 || resolve >= (int32_t)plane || (round % 8 < 4 && (j < low || j > high))
                        ? -1
                        : resolve;
        }
        const float *x = numbers(round, OPERAND, channels * plane);
        float *to = kernel_memory(((channels - 1) * step + DQ_GEMM_F32_NR) * sizeof *to);
        k->im2col_gather_f32(x, at, channels, plane, step, to);
        for (size_t c = 0; c < channels; c++)
            for (size_t j = 0; j < step && (c + 1 < channels || j < DQ_GEMM_F32_NR); j++) {
                float expected = j < DQ_GEMM_F32_NR && at[j] >= 0 ? x[c * plane + (size_t)at[j]] : 0;
                KERNEL_FAIL_UNLESS(same_or_nan(to[c * step + j], expected),
                                   "round %d, channel %zu, lane %zu: %.9g, expected %.9g", round, c, j,
                                   (double)to[c * step + j], (double)expected);
            }
        kernel_done();
    }
}

void check_conv_direct_f32(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t offsets[30], most = 0;
        dq_conv_f32_rows f = {.offsets = offsets,
                              .taps = 1 + kernel_random(30),
                              .rows = 1 + kernel_random(12),
                              .n = 1 + kernel_random(70),
                              .more = kernel_random(2),
                              .last = kernel_random(2),
                              .bias = kernel_random(2) ? -0.0f : 0.3f,
                              .low = kernel_random(2) ? 0 : -INFINITY,
                              .high = kernel_random(2) ? 1 : INFINITY,
                              .gate = some_gate()};
        for (size_t t = 0; t < f.taps; t++)
            offsets[t] = kernel_random(60);
        f.x_row = f.n + kernel_random(9);
        f.across = f.taps % 3 == 0 && kernel_random(2) ? 3 : 0;
        for (size_t t = 3; t < f.taps && f.across; t++)
            offsets[t] = offsets[t - 3] + f.x_row;
        for (size_t t = 0; t < f.taps; t++)
            most = offsets[t] > most ? offsets[t] : most;
        f.y_row = f.n + kernel_random(3);
        const size_t size = (f.rows - 1) * f.y_row + f.n;
        f.x = numbers(round, OPERAND, most + (f.rows - 1) * f.x_row + f.n + DQ_CONV_F32_SLACK);
        f.w = numbers(round, OPERAND, f.taps);
        f.y = numbers(round, OPERAND, size);
        float *was = kernel_memory(size * sizeof *was);
        memcpy(was, f.y, size * sizeof *was);
        k->conv_direct_f32(&f);
        for (size_t i = 0; i < size; i++) {
            const size_t row = i / f.y_row, col = i % f.y_row;
            float expected = f.more || col >= f.n ? was[i] : 0;
            for (size_t t = 0; t < f.taps && col < f.n; t++)
                expected = fmaf(f.w[t], f.x[offsets[t] + row * f.x_row + col], expected);
            if (f.last && col < f.n) {
                expected += f.bias;
                expected = expected < f.low ? f.low : expected;
                expected = gated(f.gate, expected > f.high ? f.high : expected);
            }
            KERNEL_FAIL_UNLESS(same_or_nan(f.y[i], expected), "place %zu of %zu%s%s: %.9g, expected %.9g", i,
                               size, f.more ? ", more" : "", f.last ? ", last" : "", (double)f.y[i],
                               (double)expected);
        }
        kernel_done();
    }
}

void check_dwconv_nchwc_f32(const dq_kernels *k)
{
    enum { CHANNELS = DQ_CONV_F32_CHANNELS, PLACES = DQ_CONV_F32_PLACES, TAPS = 30, PAGES = 4 };
    for (int round = 0; round < 200; round++) {
        uint32_t offsets[TAPS * PAGES * PLACES];
        const size_t places = 1 + kernel_random(40), pitch = CHANNELS + kernel_random(20);
        dq_dwconv_nchwc_f32 f = {.offsets = offsets,
                                 .taps = 1 + kernel_random(TAPS),
                                 .n = (1 + kernel_random(PAGES)) * PLACES,
                                 .pitch = CHANNELS + kernel_random(20),
                                 .low = kernel_random(2) ? 0 : -INFINITY,
                                 .high = kernel_random(2) ? 1 : INFINITY};
        for (size_t i = 0; i < f.taps * f.n; i++)
            offsets[i] = (uint32_t)(kernel_random((uint32_t)places) * pitch);
        const size_t size = (f.n - 1) * f.pitch + CHANNELS;
        f.x = numbers(round, OPERAND, (places - 1) * pitch + CHANNELS);
        f.w = numbers(round, OPERAND, f.taps * CHANNELS);
        f.bias = numbers(round, OPERAND, CHANNELS);
        f.y = numbers(round, OPERAND, size);
        float *was = kernel_memory(size * sizeof *was);
        memcpy(was, f.y, size * sizeof *was);
        k->dwconv_nchwc_f32(&f);
        for (size_t i = 0; i < size; i++) {
            const size_t resolve = i / f.pitch, c = i % f.pitch;
            float expected = c < CHANNELS ? 0 : was[i];
            for (size_t t = 0; t < f.taps && c < CHANNELS; t++)
                expected = fmaf(f.w[t * CHANNELS + c], f.x[offsets[t * f.n + resolve] + c], expected);
            if (c < CHANNELS) {
                expected += f.bias[c];
                expected = expected < f.low ? f.low : expected;
                expected = expected > f.high ? f.high : expected;
            }
            KERNEL_FAIL_UNLESS(same_or_nan(f.y[i], expected), "place %zu, channel %zu: %.9g, expected %.9g",
                               resolve, c, (double)f.y[i], (double)expected);
        }
        kernel_done();
    }
}

void check_copy_strided_f32(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++)
        for (size_t step = 1; step < 4; step++) {
            size_t rows = 1 + i % 3, x_row = n * step + i % 2, y_row = n + i % 5;
            float *x = kernel_floats(n ? (rows - 1) * x_row + (n - 1) * step + 1 : 0);
            float *y = kernel_memory(((rows - 1) * y_row + n) * sizeof *y);
            k->copy_strided_f32(x, x_row, step, rows, n, y, y_row);
            for (size_t r = 0; r < rows; r++)
                for (size_t at = 0; at < n; at++)
                    KERNEL_FAIL_UNLESS(same_or_nan(y[r * y_row + at], x[r * x_row + at * step]),
                                       "place %zu of %zu, step %zu, row %zu", at, n, step, r);
            kernel_done();
        }
}
