/* Integer products of 16-bit operands. */
#include "kernel_check.h"

#include <math.h>

enum { ROWS = DQ_WGEMM_ROWS, COLS = DQ_WGEMM_COLS };

/* The ends of the range now and then, where sums of many are largest. */
static int16_t *some_codes(size_t n, int lo, int hi)
{
    int16_t *x = kernel_memory(n * sizeof *x);
    uint32_t kind = kernel_random(4);
    for (size_t i = 0; i < n; i++)
        x[i] = (int16_t)(kind == 0 ? lo : kind == 1 ? hi : lo + (int)kernel_random((uint32_t)(hi - lo + 1)));
    return x;
}

void check_wgemm(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t pairs = kernel_random(3) ? kernel_random(20) : kernel_random(1200);
        bool left = kernel_random(2);
        int16_t *a = some_codes(pairs * 2 * ROWS, left ? -128 : -32768, left ? 127 : 32767);
        int16_t *b = some_codes(pairs * 2 * COLS, left ? -32768 : -128, left ? 32767 : 127);
        double *c = kernel_memory(ROWS * COLS * sizeof *c), was[ROWS * COLS];
        for (size_t i = 0; i < ROWS * COLS; i++)
            c[i] = was[i] = (double)kernel_random(1000) * 1e9 - 1e11;
        k->wgemm(a, b, pairs, c);
        for (size_t i = 0; i < ROWS * COLS; i++) {
            int64_t sum = 0;
            for (size_t p = 0; p < 2 * pairs; p++)
                sum += a[(p / 2 * ROWS + i / COLS) * 2 + p % 2] * b[(p / 2 * COLS + i % COLS) * 2 + p % 2];
            KERNEL_FAIL_UNLESS(c[i] == was[i] + (double)sum, "%zu pairs, element %zu: %.17g, wanted %.17g",
                               pairs, i, c[i], was[i] + (double)sum);
        }
        kernel_done();
    }
}

void check_requantize_f64(const dq_kernels *k)
{
    static const int32_t bounds[][2] = {{0, 255}, {-128, 127}, {0, 65535}, {-32768, 32767}};
    size_t n;
    for (size_t i = 0; kernel_size(i / 2, &n); i++) {
        size_t step = i % 2, each = step ? n : 1;
        const int32_t *bound = bounds[kernel_random(4)];
        int32_t zero = bound[0] + (int32_t)kernel_random((uint32_t)(bound[1] - bound[0] + 1));
        double *acc = kernel_memory(n * sizeof *acc), *offset = kernel_memory(each * sizeof *offset);
        double *scale = kernel_memory(each * sizeof *scale);
        int32_t *out = kernel_bytes(n * sizeof *out);
        for (size_t j = 0; j < n; j++)
            acc[j] = kernel_random(20) ? (double)kernel_random(200000) - 100000 : (double)NAN;
        for (size_t j = 0; j < each; j++) {
            offset[j] = (double)kernel_random(1000) / 4;
            scale[j] = kernel_random(2) ? 0.5 : kernel_random(8) ? ldexp(kernel_random(999), -10) : 1e300;
        }
        k->requantize_f64(acc, n, offset, scale, step, zero, bound[0], bound[1], out);
        for (size_t j = 0; j < n; j++) {
            volatile double sum = acc[j] + offset[j * step], product = sum * scale[j * step];
            double v = rint(product) + zero;
            double wanted = v >= bound[1] ? bound[1] : v > bound[0] ? v : bound[0];
            KERNEL_FAIL_UNLESS(out[j] == (int32_t)wanted, "n %zu, element %zu: %d, wanted %g", n, j, out[j],
                               wanted);
        }
        kernel_done();
    }
}
