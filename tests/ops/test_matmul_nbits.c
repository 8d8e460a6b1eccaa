/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits whose activations are rounded to 8 bits. tests/com_microsoft compares its other forms with
 * numpy. */
#include "harness.h"
#include "support/reference_matmul.h"

#include <math.h>
#include <string.h>

enum { ROWS = 6, COLS = 3, BLOCK = 32, BLOCKS = 3, PITCH = BLOCK * BLOCKS, K = PITCH - 2 };

typedef struct numbers {
    int bits;
    double a[ROWS * K], qvalues[COLS * PITCH], bytes[COLS * PITCH];
    double scales[COLS * BLOCKS], zeros[COLS][BLOCKS], zero_bytes[COLS * (BLOCKS + 1)];
} numbers;

/* Whole numbers and powers of two, so that all sums are exact: in each block of a row of a the largest is 127
 * times a power of two, and others lie between such multiples. */
static void make(numbers *x, int bits)
{
    const size_t each = 8 / (size_t)bits, zero_row = (BLOCKS + each - 1) / each;
    const int above = bits == 8 ? 150 : 0, qvalues = bits == 8 ? 61 : 16;
    memset(x, 0, sizeof *x);
    x->bits = bits;
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < K; k++) {
            double unit = (double)(1 << (i + k / BLOCK) % 3);
            x->a[i * K + k] = k % BLOCK == 5 ? -127 * unit : (double)((i * 31 + k * 17) % 201) / 4 - 25;
        }
    for (size_t j = 0; j < COLS; j++)
        for (size_t k = 0; k < PITCH; k++)
            x->qvalues[j * PITCH + k] = above + (int)(j * 7 + k * 5 + k / 9) % qvalues;
    for (size_t i = 0; i < (size_t)COLS * PITCH; i++)
        x->bytes[i / each] += x->qvalues[i] * (i % each ? 16 : 1);
    for (size_t j = 0; j < COLS; j++)
        for (size_t g = 0; g < BLOCKS; g++) {
            x->scales[j * BLOCKS + g] = ldexp(1, (int)(j + g) % 4);
            x->zeros[j][g] = above + (int)(j * 3 + g * 5) % qvalues;
            x->zero_bytes[j * zero_row + g / each] += x->zeros[j][g] * (g % each ? 16 : 1);
        }
}

/* The product of all rows, with a as it is or rounded to 8 bits in each block. */
static void expect(const numbers *x, bool rounded, double want[ROWS * COLS])
{
    const ref_matmul shape = ref_matmul_2d(ROWS, K, COLS);
    double a[ROWS * K], b[K * COLS];
    for (size_t i = 0; i < (size_t)ROWS * K; i++) {
        const double unit = (double)(1 << (i / K + i % K / BLOCK) % 3);
        a[i] = rounded ? nearbyint(x->a[i] / unit) * unit : x->a[i];
    }
    for (size_t k = 0; k < K; k++)
        for (size_t j = 0; j < COLS; j++)
            b[k * COLS + j] =
                x->scales[j * BLOCKS + k / BLOCK] * (x->qvalues[j * PITCH + k] - x->zeros[j][k / BLOCK]);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        want[i] = ref_matmul_f64(&shape, a, b, i);
}

static void run(numbers *x, size_t rows, int level, bool honor, double *want)
{
    ops_case c;
    ops_begin(&c, "com.microsoft", "MatMulNBits", 1);
    ops_int(&c, "K", K);
    ops_int(&c, "N", COLS);
    ops_int(&c, "bits", x->bits);
    ops_int(&c, "block_size", BLOCK);
    ops_int(&c, "accuracy_level", level);
    c.honor_accuracy_level = honor;
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)rows, K), x->a);
    ops_in(&c, DQ_UINT8, OPS_DIMS(COLS, BLOCKS, BLOCK * x->bits / 8), x->bytes);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(COLS * BLOCKS), x->scales);
    ops_in(&c, DQ_UINT8, OPS_DIMS(COLS * ((BLOCKS * x->bits + 7) / 8)), x->zero_bytes);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS((int64_t)rows, COLS), want);
    ops_end(&c);
}

START_TEST(rounds_only_when_both_agree)
{
    numbers x;
    for (size_t rows = 1; rows <= ROWS; rows++)
        for (int way = 0; way < 8; way++) {
            int level = way & 1 ? 4 : 1;
            make(&x, way & 4 ? 8 : 4);
            const bool honor = way & 2, rounded = level == 4 && honor;
            double want[ROWS * COLS], other[ROWS * COLS];
            expect(&x, rounded, want);
            expect(&x, !rounded, other);
            ck_assert_mem_ne(want, other, rows * COLS * sizeof *want);
            run(&x, rows, level, honor, want);
        }
}
END_TEST

/* Scales that float16 holds are packed as float16: its subnormal values and its range limit the exponents. */
START_TEST(scales_of_any_exponent)
{
    static const int exponents[] = {-25, -24, -15, 12, 13};
    for (int way = 0; way < 4; way++)
        for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
            const bool rounded = way & 2;
            double want[ROWS * COLS];
            numbers x;
            make(&x, way & 1 ? 8 : 4);
            for (size_t i = 0; i < (size_t)COLS * BLOCKS; i++)
                x.scales[i] = ldexp(x.scales[i], exponents[e]);
            expect(&x, rounded, want);
            run(&x, 1, 4, rounded, want);
            run(&x, ROWS, 4, rounded, want);
        }
}
END_TEST

/* A row with an infinity or NaN keeps float precision; the other rows are rounded to 8 bits. */
START_TEST(rows_with_infinities)
{
    numbers x;
    double want[ROWS * COLS];
    make(&x, 4);
    expect(&x, true, want);
    x.a[2 * K + 40] = -(double)INFINITY;
    x.a[5 * K + 7] = (double)NAN;
    for (size_t j = 0; j < COLS; j++) {
        double factor = x.qvalues[j * PITCH + 40] - x.zeros[j][1];
        want[2 * COLS + j] = factor == 0 ? (double)NAN : -(double)INFINITY * factor;
        want[5 * COLS + j] = (double)NAN;
    }
    run(&x, ROWS, 4, true, want);
}
END_TEST

/* Also a block of nothing but zeros, and one so small that its factor is 0. */
START_TEST(blocks_of_zeros)
{
    numbers x;
    double want[COLS] = {0};
    make(&x, 4);
    for (size_t k = 0; k < K; k++)
        x.a[k] = k < BLOCK ? 0 : k < (size_t)2 * BLOCK ? ldexp(1, -149) : x.a[k];
    for (size_t j = 0; j < COLS; j++)
        for (size_t k = 2 * BLOCK; k < K; k++)
            want[j] += x.scales[j * BLOCKS + 2] * (x.qvalues[j * PITCH + k] - x.zeros[j][2]) *
                       nearbyint(x.a[k] / 4) * 4;
    run(&x, 1, 4, true, want);
}
END_TEST

/* Columns of several strips, which no block of a product of many rows may cut: column j's weights are all
 * j % 16 - 8. */
START_TEST(columns_of_many_strips)
{
    enum { MANY = 9, MAX = 272, DEEP = 320 };
    static const int64_t widths[] = {80, 144, 160, MAX};
    static double a[MANY * DEEP], bytes[MAX * DEEP / 2], scales[MAX * DEEP / BLOCK], want[MANY * MAX];
    for (size_t i = 0; i < (size_t)MANY * DEEP; i++)
        a[i] = 1;
    for (size_t i = 0; i < (size_t)MAX * DEEP / BLOCK; i++)
        scales[i] = 1;
    for (size_t i = 0; i < (size_t)MAX * DEEP / 2; i++)
        bytes[i] = (double)(i / (DEEP / 2) % 16 * 17);
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const int64_t n = widths[w];
        for (int64_t i = 0; i < MANY * n; i++)
            want[i] = (double)(DEEP * (i % n % 16 - 8));
        ops_case c;
        ops_begin(&c, "com.microsoft", "MatMulNBits", 1);
        ops_int(&c, "K", DEEP);
        ops_int(&c, "N", n);
        ops_int(&c, "bits", 4);
        ops_int(&c, "block_size", BLOCK);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(MANY, DEEP), a);
        ops_in(&c, DQ_UINT8, OPS_DIMS(n, DEEP / BLOCK, BLOCK / 2), bytes);
        ops_in(&c, DQ_FLOAT, OPS_DIMS(n * DEEP / BLOCK), scales);
        ops_must_run(&c);
        ops_want(&c, 0, DQ_FLOAT, OPS_DIMS(MANY, n), want);
        ops_end(&c);
    }
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("matmul_nbits", NULL, NULL);
    add_test(&tests, rounds_only_when_both_agree);
    add_test(&tests, scales_of_any_exponent);
    add_test(&tests, rows_with_infinities);
    add_test(&tests, blocks_of_zeros);
    add_test(&tests, columns_of_many_strips);
    return test_program_run(&tests);
}
