/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun.DequantizeMatMul: float activations, quantized weights of either sign, transposed or not. */
#include "harness.h"
#include "support/reference_matmul.h"

#include <math.h>
#include <string.h>

typedef struct form {
    dq_dtype dtype;
    bool trans_b, zeros, bias;
    int64_t block; /* 0: none, -1: one scale for all */
} form;

enum { DEEP = 70, WIDE = 67, MAX_ROWS = 12, MAX_BLOCKS = 5 };

typedef struct values {
    double a[MAX_ROWS * DEEP], quantized[DEEP * WIDE], weights[DEEP * WIDE], want[MAX_ROWS * WIDE],
        bias[WIDE];
    double scales[WIDE * MAX_BLOCKS], zeros[WIDE * MAX_BLOCKS];
    size_t block, blocks;
} values;

/* Sets row k, column j of the weights, and the scale and zero point of its block. */
static void set_weight(const form *p, size_t j, size_t k, values *x)
{
    const dq_dtype_row *row = dq_dtype_get(p->dtype);
    const size_t g = k / x->block, at = p->block < 0 ? 0 : p->trans_b ? j * x->blocks + g : g * WIDE + j;
    const int64_t q = row->min + (int64_t)(j * 7 + k * 5) % (row->max - row->min + 1);
    x->quantized[p->trans_b ? j * DEEP + k : k * WIDE + j] = (double)q;
    x->scales[at] = p->block < 0 ? 0.5 : ldexp(1, (int)(j + g) % 4);
    x->zeros[at] = (double)(row->min + (int64_t)(p->block < 0 ? 3 : (j + 2 * g) % 4));
    x->weights[k * WIDE + j] = ((double)q - (p->zeros ? x->zeros[at] : 0)) * x->scales[at];
}

static void run_form(const form *p, size_t rows)
{
    static values x;
    memset(&x, 0, sizeof x);
    x.block = p->block > 0 ? (size_t)p->block : DEEP;
    x.blocks = (DEEP + x.block - 1) / x.block;
    for (size_t i = 0; i < rows * DEEP; i++)
        x.a[i] = (double)(i * 31 % 41) - 20;
    for (size_t j = 0; j < WIDE; j++) {
        x.bias[j] = (double)j - 30;
        for (size_t k = 0; k < DEEP; k++)
            set_weight(p, j, k, &x);
    }
    const ref_matmul shape = ref_matmul_2d((int64_t)rows, DEEP, WIDE);
    for (size_t i = 0; i < rows * WIDE; i++)
        x.want[i] = ref_matmul_f64(&shape, x.a, x.weights, i) + (p->bias ? x.bias[i % WIDE] : 0);
    const int64_t by_row[] = {WIDE, p->block ? (int64_t)x.blocks : DEEP}, by_column[] = {by_row[1], WIDE};
    const int64_t b_dims[] = {p->trans_b ? WIDE : DEEP, p->trans_b ? DEEP : WIDE};
    const int64_t *dims = p->trans_b || p->block == 0 ? by_row : by_column;
    const size_t rank = p->block < 0 ? 0 : p->block == 0 ? 1 : 2;
    ops_case c;
    ops_begin(&c, "dqrun", "DequantizeMatMul", 1);
    ops_int(&c, "block_size", p->block > 0 ? p->block : 0);
    ops_int(&c, "transB", p->trans_b);
    ops_in(&c, DQ_FLOAT, OPS_DIMS((int64_t)rows, DEEP), x.a);
    ops_in(&c, p->dtype, 2, b_dims, x.quantized);
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
START_TEST(every_type_and_form)
{
    static const dq_dtype types[] = {DQ_UINT8, DQ_INT8, DQ_UINT4, DQ_INT4, DQ_UINT2, DQ_INT2};
    static const int64_t blocks[] = {-1, 0, 16, 24};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (int way = 0; way < 8; way++) {
                const form p = {types[t], way & 1, way & 2, way & 4, blocks[b]};
                run_form(&p, 1 + (size_t)(way + (int)t) % 3);
                run_form(&p, MAX_ROWS);
            }
}
END_TEST

static void refuse(size_t rank, int64_t scales, int64_t biases, const char *message)
{
    const int64_t dims[] = {4, 3, 1};
    ops_case c;
    ops_begin(&c, "dqrun", "DequantizeMatMul", 1);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(2, 4), NULL);
    ops_in(&c, DQ_INT8, rank, dims, NULL);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(scales), NULL);
    ops_skip(&c);
    ops_in(&c, DQ_FLOAT, OPS_DIMS(biases), NULL);
    ops_must_refuse(&c, DQ_BAD_MODEL, message);
    ops_end(&c);
}

START_TEST(refusals)
{
    refuse(3, 3, 3, "input 1 is no matrix that can be cut into blocks");
    refuse(2, 4, 3, "input 2 has 4 elements, expected 3 (one, or one a block)");
    refuse(2, 3, 4, "input 4 has 4 elements, expected 3 (one a column)");
}
END_TEST

int main(void)
{
    test_program tests = test_program_begin("dequantize_matmul", NULL, NULL);
    add_test(&tests, every_type_and_form);
    add_test(&tests, refusals);
    return test_program_run(&tests);
}
