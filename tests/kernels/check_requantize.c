/* int32 sums to 8 bits. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

static double some_scale(void)
{
    static const double odd[] = {
        0, -0.0, (double)INFINITY, -(double)INFINITY, (double)NAN, 1e300, -1e-300, 0.5, -0.25, 1};
    if (kernel_random(3) == 0)
        return odd[kernel_random(sizeof odd / sizeof odd[0])];
    return ldexp(1 + kernel_random(1 << 30), -30 - (int)kernel_random(34));
}

/* A scale with which `acc` comes to a tie, or next to one by a few units in the last place of a double. */
static double near_tie(int32_t acc)
{
    double scale = ((int)kernel_random(600) - 300 + 0.5) / (acc ? acc : 1);
    for (uint32_t i = kernel_random(4); i; i--)
        scale = nextafter(scale, kernel_random(2) ? (double)INFINITY : -(double)INFINITY);
    return scale;
}

static int code_of(int32_t acc, double scale, int32_t zero, int32_t lo, int32_t hi)
{
    double v = rint(acc * scale) + zero;
    return (int)(v >= hi ? hi : v > lo ? v : lo);
}

/* Scales of every power of two: products from below the smallest float to beyond the largest one. `e` is
 * their exponent, SWEEP_END the end. */
enum { SWEEP_BEGIN = -180, SWEEP_END = 131 };

static double sweep_scale(int e)
{
    double scale = ldexp(kernel_random(2) ? 1 : 1 + kernel_random(1 << 30) * 0x1p-30, e);
    return kernel_random(2) ? scale : -scale;
}

static int32_t sweep_sum(void)
{
    static const int32_t ends[] = {0, 1, -1, 3, INT32_MAX, INT32_MIN};
    return kernel_random(2) ? ends[kernel_random(6)]
                            : (int32_t)(kernel_random(UINT32_MAX) >> kernel_random(31));
}

static void sweep_rows(const dq_kernels *k, size_t step)
{
    enum { N = 100 };
    int32_t *acc = kernel_memory(N * sizeof *acc);
    double *scale = kernel_memory(N * sizeof *scale);
    uint8_t *out = kernel_memory(N);
    for (int e = SWEEP_BEGIN; e < SWEEP_END; e += step ? N / 2 : 1) {
        const int32_t lo = kernel_random(2) ? -128 : 0, hi = lo + 255,
                      zero = lo + (int32_t)kernel_random(256);
        for (int j = 0; j < N; j++) {
            scale[j] = sweep_scale(step ? e + j : e);
            acc[j] = sweep_sum();
        }
        k->requantize(acc, N, scale, step, zero, lo, hi, out);
        for (size_t j = 0; j < N; j++) {
            const int wanted = code_of(acc[j], scale[j * step], zero, lo, hi);
            KERNEL_FAIL_UNLESS(out[j] == (uint8_t)wanted, "%d * %g + %d is %u, wanted %d", acc[j],
                               scale[j * step], zero, out[j], wanted);
        }
    }
    kernel_done();
}

void check_requantize(const dq_kernels *k)
{
    sweep_rows(k, 0);
    sweep_rows(k, 1);
    size_t n;
    for (size_t i = 0; kernel_size(i / 2, &n); i++) {
        size_t step = i % 2;
        int32_t lo = kernel_random(2) ? 0 : -128, hi = lo + 255, zero = lo + (int32_t)kernel_random(256);
        int32_t *acc = kernel_bytes(n * sizeof *acc);
        for (size_t j = 0; j < n; j++)
            if (kernel_random(2)) /* small ones, so that not all saturate and there are ties */
                acc[j] = (int32_t)kernel_random(1000) - 500;
        double *scale = kernel_memory((step ? n : 1) * sizeof *scale);
        for (size_t j = 0; j < (step ? n : 1); j++)
            scale[j] = n && kernel_random(3) == 0 ? near_tie(acc[j]) : some_scale();
        for (size_t j = 1; j < n && !step; j++)
            acc[j] = kernel_random(3) ? acc[j] : acc[0];
        uint8_t *out = kernel_bytes(n);
        k->requantize(acc, n, scale, step, zero, lo, hi, out);
        for (size_t j = 0; j < n; j++) {
            double v = rint(acc[j] * scale[j * step]) + zero;
            double wanted = v >= hi ? hi : v > lo ? v : lo;
            KERNEL_FAIL_UNLESS(out[j] == (uint8_t)(int)wanted, "n %zu: %d * %g + %d is %u, wanted %g", n,
                               acc[j], scale[j * step], zero, out[j], wanted);
        }
        kernel_done();
    }
}

static void sweep_tiles(const dq_kernels *k, bool by_row)
{
    enum { ROWS = 17, COLS = 80 };
    int32_t *acc = kernel_memory(ROWS * COLS * sizeof *acc);
    double *scale = kernel_memory(COLS * sizeof *scale);
    uint8_t *out = kernel_memory(ROWS * COLS);
    for (int e = SWEEP_BEGIN; e < SWEEP_END; e += by_row ? 1 : COLS) {
        for (int j = 0; j < COLS; j++)
            scale[j] = by_row && j > 0 ? scale[0] : sweep_scale(by_row ? e : e + j);
        for (size_t i = 0; i < ROWS * COLS; i++)
            acc[i] = sweep_sum();
        for (uint32_t way = 0; way < 4; way++) {
            const bool transposed = way % 2;
            const int32_t lo = way / 2 ? -128 : 0, hi = lo + 255, zero = lo + (int32_t)kernel_random(256);
            const dq_requantize_to to = {scale, zero, lo, hi, out, transposed ? ROWS : COLS, transposed};
            k->requantize_tile(acc, COLS, ROWS, COLS, &to);
            for (size_t i = 0; i < ROWS; i++)
                for (size_t j = 0; j < COLS; j++) {
                    const uint8_t got = out[transposed ? j * ROWS + i : i * COLS + j];
                    const int wanted = code_of(acc[i * COLS + j], scale[j], zero, lo, hi);
                    KERNEL_FAIL_UNLESS(got == (uint8_t)wanted, "%d * %g + %d is %u, wanted %d",
                                       acc[i * COLS + j], scale[j], zero, got, wanted);
                }
        }
    }
    kernel_done();
}

void check_requantize_tile(const dq_kernels *k)
{
    sweep_tiles(k, false);
    sweep_tiles(k, true);
    for (int round = 0; round < 300; round++) {
        size_t rows = kernel_random(70), cols = kernel_random(round % 2 ? 40 : 150),
               wide = (cols + 15) / 16 * 16;
        bool transposed = kernel_random(2);
        size_t acc_stride = wide + kernel_random(9),
               out_stride = (transposed ? rows : cols) + kernel_random(9);
        int32_t lo = kernel_random(2) ? 0 : -128, hi = lo + 255, zero = lo + (int32_t)kernel_random(256);
        int32_t *acc = kernel_bytes(rows ? ((rows - 1) * acc_stride + wide) * sizeof *acc : 0);
        for (size_t j = 0; rows && j < (rows - 1) * acc_stride + wide; j++)
            if (kernel_random(2))
                acc[j] = (int32_t)kernel_random(1000) - 500;
        double *scale = kernel_memory(cols * sizeof *scale);
        for (size_t j = 0; j < cols; j++)
            scale[j] = round % 3 == 0 ? some_scale()
                       : round % 3 == 1 && rows
                           ? near_tie(acc[kernel_random((uint32_t)rows) * acc_stride + j])
                           : ldexp(1 + kernel_random(1 << 20), -20 - (int)kernel_random(6));
        size_t lines = transposed ? cols : rows, line = transposed ? rows : cols;
        size_t size = lines && line ? (lines - 1) * out_stride + line : 0;
        uint8_t *out = kernel_bytes(size), *was = kernel_memory(size);
        if (size)
            memcpy(was, out, size);
        dq_requantize_to to = {scale, zero, lo, hi, out, out_stride, transposed};
        k->requantize_tile(acc, acc_stride, rows, cols, &to);
        for (size_t at = 0; at < size; at++) {
            size_t i = transposed ? at % out_stride : at / out_stride;
            size_t j = transposed ? at / out_stride : at % out_stride;
            double v = i < rows && j < cols ? rint(acc[i * acc_stride + j] * scale[j]) + zero : 0;
            double wanted = v >= hi ? hi : v > lo ? v : lo;
            uint8_t byte = i < rows && j < cols ? (uint8_t)(int)wanted : was[at];
            KERNEL_FAIL_UNLESS(out[at] == byte, "%zu x %zu, row %zu, column %zu: %u, wanted %u", rows, cols,
                               i, j, out[at], byte);
        }
        kernel_done();
    }
}
