/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of integer convolutions, and requantization. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

void check_dwconv_pairs_s8(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        size_t stride = 1 + kernel_random(3), distance = kernel_random(3) ? kernel_random(10) : 1;
        size_t reach = n ? (n - 1) * stride + distance + 1 : 0;
        uint8_t *x = kernel_bytes(reach + DQ_GEMM_S8_SLACK);
        int16_t *out = kernel_bytes(2 * n * sizeof *out);
        k->dwconv_pairs_s8(x, stride, distance, n, out);
        for (size_t j = 0; j < n; j++)
            KERNEL_FAIL_UNLESS(out[2 * j] == x[j * stride] && out[2 * j + 1] == x[j * stride + distance],
                               "n %zu, stride %zu, distance %zu, pair %zu", n, stride, distance, j);
        kernel_done();
    }
}

/* Elements of x are `row_stride` from output to output: pairs of their own, or neighbours. */
static void check_rows(dq_dwconv_rows_s16_fn *rows_of, size_t row_stride)
{
    size_t n;
    for (size_t i = 0; kernel_size(i / 3, &n); i++) {
        size_t taps = i % 3 ? kernel_random(30) : 6, rows = kernel_random(6), step = kernel_random(100);
        ptrdiff_t *offsets = kernel_memory(taps * sizeof *offsets);
        int16_t *w = kernel_memory(2 * taps * sizeof *w);
        for (size_t t = 0; t < taps; t++)
            offsets[t] = (ptrdiff_t)(i % 3 || t < 2 ? kernel_random(100) : (size_t)offsets[t - 2] + step);
        for (size_t t = 1; t < taps && i % 6 == 0; t += 2) /* the third elements of a 3 by 3 kernel */
            offsets[t] = offsets[t - 1] + 2;
        for (size_t t = 0; t < 2 * taps; t++)
            w[t] = (int16_t)((int)kernel_random(513) - 256);
        size_t size = 100 + (rows + 2) * step + row_stride * n + 1 + DQ_GEMM_S8_SLACK / sizeof(int16_t);
        int16_t *x = kernel_memory(size * sizeof *x);
        for (size_t j = 0; j < size; j++)
            x[j] = (int16_t)(kernel_random(4) ? (int)kernel_random(65536) - 32768 : -32768);
        int32_t *out = kernel_bytes(rows * n * sizeof *out), init = kernel_start();
        rows_of(x, step, rows, offsets, w, taps, init, n, out);
        for (size_t j = 0; j < rows * n; j++) {
            uint32_t sum = (uint32_t)init;
            for (size_t t = 0; t < taps; t++) {
                const int16_t *z = x + offsets[t] + j / n * step + row_stride * (j % n);
                sum += (uint32_t)(w[2 * t] * z[0] + w[2 * t + 1] * z[1]);
            }
            KERNEL_FAIL_UNLESS(out[j] == (int32_t)sum, "n %zu, taps %zu, row %zu, element %zu", n, taps,
                               j / n, j % n);
        }
        kernel_done();
    }
}

void check_dwconv_rows_s8(const dq_kernels *k)
{
    check_rows(k->dwconv_rows_s8, 2);
}

void check_dwconv_rows_s16(const dq_kernels *k)
{
    check_rows(k->dwconv_rows_s16, 1);
}

void check_dwconv_3x3_s8(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        size_t rows = kernel_random(6), step = n + 2 + kernel_random(4);
        uint8_t *x = kernel_bytes(rows ? (rows + 1) * step + n + 2 + DQ_GEMM_S8_SLACK : 0);
        int16_t w[12];
        for (size_t t = 0; t < 12; t++)
            w[t] = (int16_t)(t % 4 == 3 ? 0 : kernel_random(4) ? (int)kernel_random(513) - 256 : -256);
        int32_t *out = kernel_bytes(rows * n * sizeof *out), init = kernel_start();
        k->dwconv_3x3_s8->rows(x, step, rows, w, init, n, out);
        for (size_t j = 0; j < rows * n; j++) {
            uint32_t sum = (uint32_t)init;
            for (size_t t = 0; t < 9; t++)
                sum += (uint32_t)(w[t / 3 * 4 + t % 3] * x[(j / n + t / 3) * step + j % n + t % 3]);
            KERNEL_FAIL_UNLESS(out[j] == (int32_t)sum, "n %zu, row %zu, element %zu", n, j / n, j % n);
        }
        kernel_done();
    }
}

/* Weights of all sizes. */
static int16_t some_weight(uint32_t kind)
{
    switch (kind) {
    case 0:
        return (int16_t)((int)kernel_random(513) - 256);
    case 1:
        return (int16_t)((int)kernel_random(39) - 19);
    case 2:
        return (int16_t)((int)(kernel_random(85) + kernel_random(85) + kernel_random(85)) - 126);
    default:
        return (int16_t)(kernel_random(6) ? (int)kernel_random(60) - 30 : kernel_random(2) ? 127 : -128);
    }
}

/* A kernel of some rows of some columns, each of them made even by a weight of 0. */
typedef struct few_weights {
    size_t n, at[64], far[64]; /* as dq_conv_s8_at */
    int16_t w[64];
} few_weights;

static few_weights some_kernel(size_t pitch)
{
    const bool square = kernel_random(2) == 0; /* as most are */
    const uint32_t kind = kernel_random(4);
    size_t rows = square ? 3 : kernel_random(8), cols = square ? 3 : 1 + kernel_random(8);
    size_t down = 1 + kernel_random(8) / 7, across = 1 + kernel_random(8) / 7;
    few_weights k = {.n = rows * (cols + cols % 2)};
    for (size_t t = 0; t < k.n; t++) {
        size_t row = t / (cols + cols % 2), column = t % (cols + cols % 2);
        k.at[t] = row * down * pitch + column * across;
        k.far[t] = dq_conv_s8_at(row * down, column * across);
        k.w[t] = column < cols ? some_weight(kind) : 0;
    }
    return k;
}

static int32_t sum_at(const few_weights *f, const uint8_t *x, int32_t init)
{
    uint32_t sum = (uint32_t)init;
    for (size_t t = 0; t < f->n; t++)
        sum += f->w[t] ? (uint32_t)(f->w[t] * x[f->at[t]]) : 0;
    return (int32_t)sum;
}

/* Inputs are at ends of their range, too. */
static bool check_qvalues(const dq_kernels *k, size_t n, bool tie)
{
    enum { REACH = 16 };
    const size_t stride = 1 + kernel_random(2), pitch = stride * n + kernel_random(REACH),
                 down = stride * pitch, rows = kernel_random(6);
    const few_weights f = some_kernel(pitch);
    const size_t size = rows && n && f.n ? (rows - 1) * down + (n - 1) * stride + f.at[f.n - 1] + 1 : 0;
    uint8_t *x = kernel_bytes(size + DQ_GEMM_S8_SLACK), *qvalues = kernel_bytes(rows * n);
    const size_t packed_size = k->dwconv_requantize_s8->size(f.n);
    void *packed = kernel_memory(packed_size), *resolved = kernel_memory(packed_size);
    const uint32_t end = kernel_random(4);
    const int32_t init = (int32_t)kernel_random(100000) - 50000, lo = kernel_random(2) ? -128 : 0;
    for (size_t i = 0; end < 2 && i < size; i++)
        x[i] = kernel_random(8) ? (uint8_t)(255 * end) : x[i];
    float b = ldexpf(1 + (float)kernel_random(1 << 23) * 0x1p-23f, -6 - (int)kernel_random(8)), y = 1.3f;
    if (tie && rows && n) { /* of one of the sums */
        b = (float)(2 * kernel_random(300) + 1);
        y = 2 * fabsf((float)sum_at(&f, x + kernel_random((uint32_t)n) * stride, init));
    }
    const double scale = (double)b / (double)y;
    dq_requantize_to to = {.scale = &scale,
                           .factors = {.a = 1, .b = &b, .y = &y},
                           .zero_point = lo + (int32_t)kernel_random(256),
                           .lo = lo,
                           .hi = lo + 255};
    if (kernel_random(2))
        kernel_add_bias(&to, &init, 1);
    KERNEL_FAIL_UNLESS(packed_size % sizeof(uint64_t) == 0, "%zu bytes", packed_size);
    const size_t bytes = k->dwconv_requantize_s8->pack(f.w, f.far, f.n, init, &to, packed)
                             ? k->dwconv_requantize_s8->resolve(packed, pitch, NULL)
                             : 0;
    const bool taken = bytes > 0;
    KERNEL_FAIL_UNLESS(bytes <= packed_size && bytes % sizeof(uint64_t) == 0, "%zu bytes", bytes);
    KERNEL_FAIL_UNLESS(!taken || k->dwconv_requantize_s8->resolve(packed, pitch, resolved) == bytes,
                       "%zu bytes", bytes);
    if (taken)
        k->dwconv_requantize_s8->put(x, down, stride, rows, resolved, n, qvalues);
    for (size_t j = 0; taken && j < rows * n; j++) {
        int32_t sum = sum_at(&f, x + j / n * down + j % n * stride, init);
        KERNEL_FAIL_UNLESS(qvalues[j] == (uint8_t)kernel_code(sum, &to, 0),
                           "n %zu, stride %zu, %zu weights, row %zu, element %zu, sum %d, scale %.17g", n,
                           stride, f.n, j / n, j % n, sum, scale);
    }
    kernel_done();
    return taken;
}

void check_dwconv_requantize_s8(const dq_kernels *k)
{
    enum { LONG_ROW = 3000 };
    size_t n, taken = 0, all = 0;
    if (!k->dwconv_requantize_s8->pack)
        return;
    for (size_t i = 0; kernel_size(i / 32, &n); i++, all++)
        taken += check_qvalues(k, n, i % 2);
    for (size_t i = 0; i < 8; i++)
        check_qvalues(k, LONG_ROW, false);
    KERNEL_FAIL_UNLESS(taken > all / 3, "%zu of %zu kernels become codes at once", taken, all);
}

void check_subtract_scaled_s32(const dq_kernels *k)
{
    size_t n;
    for (size_t i = 0; kernel_size(i, &n); i++) {
        int32_t *c = kernel_bytes(n * sizeof *c), *was = kernel_memory(n * sizeof *was);
        int32_t *v = kernel_bytes(n * sizeof *v), *factor = kernel_bytes(sizeof *factor);
        if (n)
            memcpy(was, c, n * sizeof *c);
        k->subtract_scaled_s32(c, n, *factor, v);
        for (size_t j = 0; j < n; j++)
            KERNEL_FAIL_UNLESS((uint32_t)c[j] == (uint32_t)was[j] - (uint32_t)*factor * (uint32_t)v[j],
                               "n %zu, element %zu", n, j);
        kernel_done();
    }
}
