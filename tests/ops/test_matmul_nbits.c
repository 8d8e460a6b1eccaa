/* SPDX-License-Identifier: Apache-2.0 */
/* MatMulNBits whose activations may be rounded to 8 bits; the rest is compared with numpy elsewhere. And
 * DequantizeMatMul, whose codes have either sign, and lie either way. */
#include "harness.h"

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

static double expected(const numbers *x, size_t i, size_t j, bool rounded)
{
    double sum = 0;
    for (size_t k = 0; k < K; k++) {
        size_t g = k / BLOCK;
        double unit = (double)(1 << (i + g) % 3), a = x->a[i * K + k];
        sum += x->scales[j * BLOCKS + g] * (x->qvalues[j * PITCH + k] - x->zeros[j][g]) *
               (rounded ? nearbyint(a / unit) * unit : a);
    }
    return sum;
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
            bool honor = way & 2, differ = false;
            double want[ROWS * COLS];
            for (size_t i = 0; i < rows * COLS; i++) {
                want[i] = expected(&x, i / COLS, i % COLS, level == 4 && honor);
                differ |= want[i] != expected(&x, i / COLS, i % COLS, !(level == 4 && honor));
            }
            ck_assert(differ);
            run(&x, rows, level, honor, want);
        }
}
END_TEST

/* A row that 8 bits cannot say has float precision, the others beside it are rounded. */
START_TEST(rows_with_infinities)
{
    numbers x;
    double want[ROWS * COLS];
    make(&x, 4);
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++)
        want[i] = expected(&x, i / COLS, i % COLS, true);
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

typedef struct plain {
    dq_dtype dtype;
    bool turned, zeros, bias;
    int64_t block; /* 0: none, -1: one scale for all */
} plain;

enum { DEEP = 70, WIDE = 67, MAX_ROWS = 12, MAX_BLOCKS = 5 };

typedef struct plain_numbers {
    double a[MAX_ROWS * DEEP], qvalues[DEEP * WIDE], want[MAX_ROWS * WIDE], bias[WIDE];
    double scales[WIDE * MAX_BLOCKS], zeros[WIDE * MAX_BLOCKS];
    size_t block, blocks;
} plain_numbers;

/* Adds what column j has of element k. */
static void fill_plain(const plain *p, size_t rows, size_t j, size_t k, plain_numbers *x)
{
    const dq_dtype_row *row = dq_dtype_get(p->dtype);
    const size_t g = k / x->block, at = p->block < 0 ? 0 : p->turned ? j * x->blocks + g : g * WIDE + j;
    const int64_t code = row->min + (int64_t)(j * 7 + k * 5) % (row->max - row->min + 1);
    x->qvalues[p->turned ? j * DEEP + k : k * WIDE + j] = (double)code;
    x->scales[at] = p->block < 0 ? 0.5 : ldexp(1, (int)(j + g) % 4);
    x->zeros[at] = (double)(row->min + (int64_t)(p->block < 0 ? 3 : (j + 2 * g) % 4));
    for (size_t i = 0; i < rows; i++)
        x->want[i * WIDE + j] +=
            x->a[i * DEEP + k] * ((double)code - (p->zeros ? x->zeros[at] : 0)) * x->scales[at];
}

static void run_plain(const plain *p, size_t rows)
{
    static plain_numbers x;
    memset(&x, 0, sizeof x);
    x.block = p->block > 0 ? (size_t)p->block : DEEP;
    x.blocks = (DEEP + x.block - 1) / x.block;
    for (size_t i = 0; i < rows * DEEP; i++)
        x.a[i] = (double)(i * 31 % 41) - 20;
    for (size_t j = 0; j < WIDE; j++) {
        x.bias[j] = (double)j - 30;
        for (size_t i = 0; i < rows; i++)
            x.want[i * WIDE + j] = p->bias ? x.bias[j] : 0;
        for (size_t k = 0; k < DEEP; k++)
            fill_plain(p, rows, j, k, &x);
    }
    const int64_t by_row[] = {WIDE, p->block ? (int64_t)x.blocks : DEEP}, by_column[] = {by_row[1], WIDE};
    const int64_t qvalues[] = {p->turned ? WIDE : DEEP, p->turned ? DEEP : WIDE};
    const int64_t *dims = p->turned || p->block == 0 ? by_row : by_column;
    const size_t rank = p->block < 0 ? 0 : p->block == 0 ? 1 : 2;
    ops_case c;
    ops_begin(&c, "dqrun", "DequantizeMatMul", 1);
    ops_int(&c, "block_size", p->block > 0 ? p->block : 0);
    ops_int(&c, "transB", p->turned);
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)rows, DEEP), x.a);
    ops_in(&c, p->dtype, 2, qvalues, x.qvalues);
    ops_in(&c, DQ_FLOAT, rank, dims, x.scales);
    if (p->zeros)
        ops_in(&c, p->dtype, rank, dims, x.zeros);
    else
        ops_skip(&c);
    if (p->bias)
        ops_in(&c, DQ_FLOAT, OPS_DIMS(WIDE), x.bias);
    ops_must_run(&c);
    ops_want(&c, 0, DQ_FLOAT, OPS_DIMS((int64_t)rows, WIDE), x.want);
    ops_end(&c);
}

/* Few rows and many, of every type, way and form. */
START_TEST(qvalues_as_they_lie)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8, DQ_UINT4, DQ_INT4, DQ_UINT2, DQ_INT2};
    static const int64_t blocks[] = {-1, 0, 16, 24};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (int way = 0; way < 8; way++) {
                const plain p = {types[t], way & 1, way & 2, way & 4, blocks[b]};
                run_plain(&p, 1 + (size_t)(way + (int)t) % 3);
                run_plain(&p, MAX_ROWS);
            }
}
END_TEST

static void refuse_plain(size_t rank, int64_t scales, int64_t biases, const char *sentence)
{
    const int64_t dims[] = {4, 3, 1};
    ops_case c;
    ops_begin(&c, "dqrun", "DequantizeMatMul", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 4), NULL);
    ops_in(&c, DQ_INT8, rank, dims, NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(scales), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(biases), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, sentence);
    ops_end(&c);
}

START_TEST(refuses)
{
    refuse_plain(3, 3, 3, "input 1 is no matrix that can be cut into blocks");
    refuse_plain(2, 4, 3, "input 2 has 4 elements, expected 3 (one, or one a block)");
    refuse_plain(2, 3, 4, "input 4 has 4 elements, expected 3 (one a column)");
}
END_TEST

int main(void)
{
    test_group t = ops_group("MatMulNBits");
    add_test(&t, rounds_only_when_both_agree);
    add_test(&t, rows_with_infinities);
    add_test(&t, blocks_of_zeros);
    add_test(&t, columns_of_many_strips);
    add_test(&t, qvalues_as_they_lie);
    add_test(&t, refuses);
    return run_suite(t.suite);
}
