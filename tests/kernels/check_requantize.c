/* SPDX-License-Identifier: Apache-2.0 */
/* int32 sums to 8 bits. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

/* Sums of a column are now and then odd multiples of one that makes a tie. */
static int32_t sum_like(int32_t sum)
{
    const int64_t v = (int64_t)sum * (2 * (int32_t)kernel_random(6) - 5);
    return kernel_random(2) || v < INT32_MIN || v > INT32_MAX ? kernel_sum() : (int32_t)v;
}

static void check_code(uint8_t got, int32_t sum, const dq_requantize_to *to, size_t column)
{
    const dq_factors *f = &to->factors;
    const int32_t expected = kernel_code(sum, to, column);
    const bool biased = to->bias.shift != NULL;
    KERNEL_FAIL_UNLESS(got == (uint8_t)expected, "((%d - %d) * %a * %a + %a) / %a + %d is %u, expected %d",
                       sum, biased ? to->bias.start[column] : 0, f->a, (double)f->b[column * f->b_step],
                       biased ? (double)to->bias.bias[column] : 0, (double)f->y[column * f->y_step],
                       to->zero_point, got, expected);
}

static void check_row(const dq_kernels *k, size_t n, size_t step)
{
    const size_t first = kernel_random(5), columns = first + (step ? n : 1);
    int32_t *acc = kernel_bytes(n * sizeof *acc), *sums = kernel_memory(columns * sizeof *sums);
    uint8_t *out = kernel_bytes(n);
    for (size_t j = 0; j < columns; j++)
        sums[j] = kernel_sum();
    for (size_t j = 0; j < n; j++)
        acc[j] = sum_like(sums[first + j * step]);
    const dq_requantize_to to = kernel_requantize_to(sums, columns);
    k->requantize_s32(acc, n, &to, first, step, out);
    for (size_t j = 0; j < n; j++)
        check_code(out[j], acc[j], &to, first + j * step);
    kernel_done();
}

static void check_exact_products(void)
{
    static const struct {
        double a;
        float b, y;
        bool exact;
    } cases[] = {{1, 1, 256, true},
                 {0.5, 0x3fffffp-24f, 4, true},   /* 22 bits */
                 {1, 0x400001p-24f, 1, false},    /* 23 bits */
                 {1, 3, 98, false},               /* no double holds it */
                 {1, 7, 3.5f, true},              /* a quotient that double holds */
                 {0x1.000001p0, 3, 4, false},     /* too many bits */
                 {0x1.000001p0 * 3, 1, 3, false}, /* also in a */
                 {1, 1, 0, false},
                 {1, NAN, 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dq_factors f = {.a = cases[i].a, .b = &cases[i].b, .y = &cases[i].y};
        const double scale = f.a * (double)*f.b / (double)*f.y;
        KERNEL_FAIL_UNLESS(dq_exact_products(&scale, &f, 1) == cases[i].exact, "%a * %a / %a", f.a,
                           (double)*f.b, (double)*f.y);
    }
    const float b[] = {1, 1.0f / 3}, y = 2;
    const double scales[] = {0.5, (double)b[1] / 2};
    const dq_factors f = {.a = 1, .b = b, .y = &y, .b_step = 1};
    KERNEL_FAIL_UNLESS(dq_exact_products(scales, &f, 1) && !dq_exact_products(scales, &f, 2), "%zu columns",
                       sizeof b / sizeof b[0]);
}

void check_requantize_s32(const dq_kernels *k)
{
    check_exact_products();
    enum { MANY = 80, ROUNDS = 4000 };
    size_t n;
    for (size_t i = 0; kernel_size(i / 4, &n); i++)
        check_row(k, n, i % 2);
    for (size_t i = 0; i < ROUNDS; i++)
        check_row(k, MANY, i % 2);
}

void check_requantize_tile_s32(const dq_kernels *k)
{
    for (int round = 0; round < 1000; round++) {
        size_t rows = kernel_random(70), cols = kernel_random(round % 2 ? 40 : 150),
               wide = (cols + 15) / 16 * 16;
        bool transposed = kernel_random(2);
        size_t acc_stride = wide + kernel_random(9),
               out_stride = (transposed ? rows : cols) + kernel_random(9);
        size_t sums = rows ? (rows - 1) * acc_stride + wide : 0, lines = transposed ? cols : rows,
               line = transposed ? rows : cols, size = lines && line ? (lines - 1) * out_stride + line : 0;
        int32_t *acc = kernel_bytes(sums * sizeof *acc), *first = kernel_memory(cols * sizeof *first);
        for (size_t j = 0; j < cols; j++)
            first[j] = kernel_sum();
        for (size_t i = 0; i < sums; i++)
            acc[i] = i % acc_stride < cols ? sum_like(first[i % acc_stride]) : acc[i];
        uint8_t *out = kernel_bytes(size), *was = kernel_memory(size);
        if (size)
            memcpy(was, out, size);
        dq_requantize_to to = kernel_requantize_to(first, cols);
        to.out = out;
        to.out_stride = out_stride;
        to.transposed = transposed;
        k->requantize_tile_s32(acc, acc_stride, rows, cols, &to);
        for (size_t at = 0; at < size; at++) {
            size_t i = transposed ? at % out_stride : at / out_stride;
            size_t j = transposed ? at / out_stride : at % out_stride;
            if (i < rows && j < cols)
                check_code(out[at], acc[i * acc_stride + j], &to, j);
            else
                KERNEL_FAIL_UNLESS(out[at] == was[at], "%zu x %zu, row %zu, column %zu", rows, cols, i, j);
        }
        kernel_done();
    }
}
