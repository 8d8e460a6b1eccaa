/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of rows: on memory in the first-level cache, and on memory that fits no cache. */
#include "bench_measures.h"

#include <string.h>

static float scale = 0.02f;
static float lowest, highest;
MEASURE(minmax_f32, 4, 0, X(float), c->n, &lowest, &highest)
MEASURE(upsample2x_x, 1, 4, bench_source, c->n, 1, 1, bench_target)
static float factor = 0.001f, one = 1;
static dq_requantize_to to = {
    .scale = bench_scales, .factors = {.a = 1, .b = &factor, .y = &one}, .zero_point = 10, .hi = 255};
MEASURE(requantize_s32, 4, 1, X(int32_t), c->n, &to, 0, 0, Y(uint8_t))
MEASURE(subtract_scaled_s32, 8, 4, Y(int32_t), c->n, 3, X(int32_t))
MEASURE(quantize_f32_u8, 4, 1, X(float), c->n, &scale, Z(uint8_t), 0, Y(uint8_t))
MEASURE(quantize_f32_s8, 4, 1, X(float), c->n, &scale, Z(int8_t), 0, Y(int8_t))
MEASURE(quantize_f32_u16, 4, 2, X(float), c->n, &scale, Z(uint16_t), 0, Y(uint16_t))
MEASURE(quantize_f32_s16, 4, 2, X(float), c->n, &scale, Z(int16_t), 0, Y(int16_t))
MEASURE(dequantize_u8_f32, 1, 4, X(uint8_t), c->n, &scale, Z(uint8_t), 0, Y(float))
MEASURE(dequantize_s8_f32, 1, 4, X(int8_t), c->n, &scale, Z(int8_t), 0, Y(float))
MEASURE(dequantize_u16_f32, 2, 4, X(uint16_t), c->n, &scale, Z(uint16_t), 0, Y(float))
MEASURE(dequantize_s16_f32, 2, 4, X(int16_t), c->n, &scale, Z(int16_t), 0, Y(float))
MEASURE(dequantize_s32_f32, 4, 4, X(int32_t), c->n, &scale, Z(int32_t), 0, Y(float))
MEASURE(convert_f16_f32, 2, 4, X(uint16_t), c->n, Y(float))
MEASURE(convert_f32_f16, 4, 2, X(float), c->n, Y(uint16_t))
MEASURE(qlinear_add_u8, 2, 1, X(uint8_t), 0.5f, Z(uint8_t), 0.7f, 1, 3.0f, c->n, Y(uint8_t))
MEASURE(qlinear_add_s8, 2, 1, X(int8_t), 0.5f, Z(int8_t), 0.7f, 1, 3.0f, c->n, Y(int8_t))
MEASURE(qlinear_mul_u8, 2, 1, X(uint8_t), 9, Z(uint8_t), 7, 1, 0.01f, 3.0f, c->n, Y(uint8_t))
MEASURE(qlinear_mul_s8, 2, 1, X(int8_t), 9, Z(int8_t), 7, 1, 0.01f, 3.0f, c->n, Y(int8_t))
MEASURE(lookup_x8, 1, 1, X(uint8_t), c->n, bench_third, Y(uint8_t))
MEASURE(dequantize_acc_f32, 4, 4, Y(float), c->n, 0.5f, 1.0f, NULL, -100.0f, 100.0f)
MEASURE(dequantize_columns_f32, 8, 4, X(int32_t), c->n, Z(float), NULL, Y(float))
MEASURE(dwconv_pairs_s8, 1, 4, X(uint8_t), 1, 1, c->n, Y(int16_t))

static void run_max_windows_x8(call *c)
{
    enum { WIDE = 64 };
    const dq_max_windows w = {.x = bench_source,
                              .x_step = WIDE,
                              .under = 3,
                              .row_step = 2 * WIDE,
                              .rows = c->n / WIDE / 2 - 1,
                              .n = WIDE,
                              .line = bench_third,
                              .kernel = 3,
                              .stride = 2,
                              .dilation = 1,
                              .width = WIDE / 2,
                              .out = bench_target};
    c->work = (bench_work){.read = (double)c->n, .written = (double)c->n / 4};
    c->k->max_windows_x8(&w);
}

static void run_average_sum_rows(call *c)
{
    enum { WIDE = 64 };
    const dq_average_sums r = {.x = bench_source,
                               .x_step = WIDE,
                               .under = 3,
                               .row_step = WIDE,
                               .rows = c->n / WIDE - 2,
                               .n = WIDE,
                               .sums = Y(int16_t),
                               .sums_step = WIDE};
    WORK(1, 2);
    c->k->average_pool_x8->sum_rows(&r);
}

static void run_average_means(call *c)
{
    const dq_average_means m = {.sums = X(int16_t),
                                .kernel = 3,
                                .dilation = 1,
                                .n = c->n - DQ_AVERAGE_STEP,
                                .multiplier = Z(float),
                                .margin = 0.001f,
                                .out = bench_target,
                                .near_ties = Y(uint64_t) + c->n};
    WORK(6, 1);
    c->k->average_pool_x8->means(&m);
}

MEASURE(dequantize_blocks_u8_f32, 1.125, 4, X(uint8_t), c->n / 32, 32, Z(float), NULL, Y(float))
MEASURE(dequantize_blocks_s8_f32, 1.125, 4, X(int8_t), c->n / 32, 32, Z(float), NULL, Y(float))

static void square(call *c, size_t element, size_t *side)
{
    *side = c->n == NEAR ? 32 : 2048;
    c->work.read = c->work.written = (double)(*side * *side * element);
}

static void run_transpose_x8(call *c)
{
    size_t side;
    square(c, 1, &side);
    c->k->transpose_x8(bench_source, side, side, side, 0, bench_target, side);
}

static void run_transpose_x16(call *c)
{
    size_t side;
    square(c, 2, &side);
    c->k->transpose_x16(X(uint16_t), side, side, side, Y(uint16_t), side);
}

static void run_transpose_x32(call *c)
{
    size_t side;
    square(c, 4, &side);
    c->k->transpose_x32(X(uint32_t), side, side, side, Y(uint32_t), side);
}

static void run_requantize_tile_s32(call *c)
{
    enum { COLS = DQ_REQUANTIZE_COLS };
    const dq_requantize_to transposed = {.scale = bench_scales,
                                         .factors = to.factors,
                                         .zero_point = 10,
                                         .hi = 255,
                                         .out = bench_target,
                                         .out_stride = c->n / COLS,
                                         .transposed = true};
    WORK(4, 1);
    c->k->requantize_tile_s32(X(int32_t), COLS, c->n / COLS, COLS, &transposed);
}

/* exp stands for the record. */
static void run_rows_f32(call *c)
{
    WORK(4, 4);
    c->k->rows_f32->exp(X(float), c->n, Y(float));
}

/* Maxima of three rows by three columns stand for the record. */
static void run_pool_f32(call *c)
{
    static const size_t at[] = {0, 1, 2};
    const dq_pool_lines p = {.x = X(float), .at = at, .under = 3, .n = c->n - 2, .lines = 1};
    const dq_line_windows w = {
        .count = c->n / 2 - DQ_POOL_SLACK, .stride = 2, .taps = 3, .dilation = 1, .lines = 1};
    WORK(4, 2);
    c->k->pool_f32->max_rows(&p, Y(float));
    c->k->pool_f32->max_windows(Z(float), &w, Y(float));
}

/* Of dq_reduce_axis_mixed: rows of 64 columns. */
enum { COLUMNS = 64 };
#define COLUMNS_OF(member, x)                                                                                \
    static void run_columns_##member(call *c)                                                                \
    {                                                                                                        \
        WORK(sizeof *(x), 0);                                                                                \
        memset(bench_target, 0, COLUMNS * sizeof(double));                                                   \
        c->k->reduce_axis_mixed->member(x, COLUMNS, c->n / COLUMNS, COLUMNS, 0, bench_target);               \
    }
COLUMNS_OF(max_8, X(uint8_t))
COLUMNS_OF(max_32, X(int32_t))
COLUMNS_OF(add_32, X(int32_t))
COLUMNS_OF(squares_f32, X(float))

static void run_columns_arg_f32(call *c)
{
    static int32_t where[COLUMNS];
    WORK(4, 0);
    c->k->reduce_axis_mixed->arg_f32(bench_source, COLUMNS, c->n / COLUMNS, COLUMNS, 0, bench_target, where);
}

static void run_columns_cumulate_f32(call *c)
{
    static double sums[COLUMNS];
    WORK(4, 4);
    memset(sums, 0, sizeof sums);
    c->k->reduce_axis_mixed->cumulate_f32(X(float), COLUMNS, c->n / COLUMNS, COLUMNS, false, Y(float), sums);
}

const measure bench_rows[] = {
    ROW(minmax_f32),
    ROW(requantize_s32),
    ROW(requantize_tile_s32),
    ROW(subtract_scaled_s32),
    ROW(quantize_f32_u8),
    ROW(quantize_f32_s8),
    ROW(quantize_f32_u16),
    ROW(quantize_f32_s16),
    ROW(dequantize_u8_f32),
    ROW(dequantize_s8_f32),
    ROW(dequantize_u16_f32),
    ROW(dequantize_s16_f32),
    ROW(dequantize_s32_f32),
    ROW(convert_f16_f32),
    ROW(convert_f32_f16),
    ROW(qlinear_add_u8),
    ROW(qlinear_add_s8),
    ROW(qlinear_mul_u8),
    ROW(qlinear_mul_s8),
    ROW(lookup_x8),
    ROW(dequantize_acc_f32),
    ROW(dequantize_columns_f32),
    ROW(dwconv_pairs_s8),
    ROW(max_windows_x8),
    {"average_pool_x8", run_average_sum_rows, true, "sum_rows"},
    {"average_pool_x8", run_average_means, true, "means"},
    ROW(transpose_x8),
    ROW(transpose_x16),
    ROW(transpose_x32),
    ROW(upsample2x_x),
    ROW(rows_f32),
    ROW(pool_f32),
    ROW(dequantize_blocks_u8_f32),
    ROW(dequantize_blocks_s8_f32),
    {"reduce_axis_mixed", run_columns_max_8, true, "max_8"},
    {"reduce_axis_mixed", run_columns_max_32, true, "max_32"},
    {"reduce_axis_mixed", run_columns_add_32, true, "add_32"},
    {"reduce_axis_mixed", run_columns_squares_f32, true, "squares_f32"},
    {"reduce_axis_mixed", run_columns_arg_f32, true, "arg_f32"},
    {"reduce_axis_mixed", run_columns_cumulate_f32, true, "cumulate_f32"},
    {0},
};
