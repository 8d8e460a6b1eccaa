/* SPDX-License-Identifier: Apache-2.0 */
/* Measures of products, in the first-level cache. */
#include "bench_measures.h"

#include "base/cpu.h"

#include <string.h>

enum { DEPTH = 256 };

/* `rows` of them with a panel, kept from call to call as weights are: `steps` deep. */
static void multiply(call *c, const dq_gemm_s8 *kernel, size_t rows, size_t steps, uint8_t use)
{
    static const dq_gemm_s8 *packed;
    static size_t packed_steps;
    static const ptrdiff_t zero_offset[1];
    static int32_t sums[DQ_GEMM_S8_NR_MAX];
    uint8_t *packed_a = bench_third + WORKSPACE / 2; /* far more than any kernel keeps */
    const uint8_t *at[DQ_GEMM_S8_MR_MAX];
    dq_gemm_s8_b b = {.data = bench_third,
                      .cols = kernel->nr,
                      .runs = 1,
                      .run = steps,
                      .inner = steps,
                      .col_stride = steps,
                      .run_stride = steps,
                      .outer_stride = steps,
                      .inner_stride = 1,
                      .use = use};
    const dq_gemm_s8_a a = {.rows = at, .offsets = zero_offset, .runs = 1, .run = steps, .packed = packed_a};
    for (size_t i = 0; i < rows; i++)
        at[i] = bench_source + i * steps;
    if (packed != kernel || packed_steps != steps) {
        (void)kernel->pack(&b, 0, bench_target, sums);
        packed_a[0] = 0;
        packed = kernel;
        packed_steps = steps;
    }
    kernel->tile(&a, rows, bench_target, sums, (int32_t *)(void *)(bench_target + WORKSPACE / 2), kernel->nr);
    c->work = (bench_work){.products = (double)rows * kernel->nr * (double)steps, .bytes = true};
}

static void run_gemm_s8(call *c)
{
    multiply(c, c->k->gemm_s8, c->k->gemm_s8->mr, DEPTH, DQ_GEMM_S8_ONCE);
}

/* One row, over weights that fill much of the first-level cache. */
static void run_gemm_s8_few(call *c)
{
    const dq_gemm_s8 *few = c->k->gemm_s8->few;
    multiply(c, few ? few : c->k->gemm_s8, 1, 2 * DEPTH, DQ_GEMM_S8_FEW);
}

static void make_rows(call *c, dq_dwconv_rows_s8_fn *rows)
{
    enum { TAPS = 6, OUTPUTS = 56 };
    static const ptrdiff_t offsets[TAPS] = {0, 120, 240, 360, 480, 600};
    static const int16_t w[2 * TAPS] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
    rows(X(int16_t), 0, 1, offsets, w, TAPS, 3, OUTPUTS, Y(int32_t));
    c->work = (bench_work){.products = 2.0 * TAPS * OUTPUTS, .bytes = true};
}

static void run_dwconv_rows_s8(call *c)
{
    make_rows(c, c->k->dwconv_rows_s8);
}

static void run_dwconv_rows_s16(call *c)
{
    make_rows(c, c->k->dwconv_rows_s16);
}

enum { SIDE_3X3 = 56, STEP_3X3 = 58 };
static const int16_t weights_3x3[12] = {10, -25, 30, 0, -40, 120, -60, 0, 17, -28, 39, 0};

static void run_dwconv_3x3_s8(call *c)
{
    c->k->dwconv_3x3_s8->rows(X(uint8_t), STEP_3X3, SIDE_3X3, weights_3x3, 3, SIDE_3X3, Y(int32_t));
    c->work = (bench_work){.products = 9.0 * SIDE_3X3 * SIDE_3X3, .bytes = true};
}

static void run_dwconv_requantize_s8(call *c)
{
    enum { PITCH = STEP_3X3 };
    static size_t at[12];
    static const float no_ties = 0.00123456789f, one = 1;
    const double same = (double)no_ties;
    static uint64_t packed[DEPTH], resolved[DEPTH];
    static const dq_dwconv_requantize_s8 *is_packed;
    const dq_requantize_to to = {
        .scale = &same, .factors = {.a = 1, .b = &no_ties, .y = &one}, .zero_point = 128, .hi = 255};
    const dq_dwconv_requantize_s8 *kernel = c->k->dwconv_requantize_s8;
    for (size_t i = 0; at[11] == 0 && i < 12; i++)
        at[i] = dq_conv_s8_at(i / 4, i % 4);
    if (kernel != is_packed && kernel->pack && kernel->pack(weights_3x3, at, 12, 3, &to, packed) &&
        kernel->resolve(packed, PITCH, resolved))
        is_packed = kernel;
    if (kernel->pack && kernel == is_packed)
        kernel->put(X(uint8_t), PITCH, 1, SIDE_3X3, resolved, SIDE_3X3, Y(uint8_t));
    c->work = (bench_work){.products = kernel->pack ? 9.0 * SIDE_3X3 * SIDE_3X3 : 0, .bytes = true};
}

static void run_gemm_s16(call *c)
{
    enum { PAIRS = DEPTH / 2, STEP = 2 * DQ_GEMM_S16_NR };
    static uint32_t offsets[PAIRS];
    const int16_t *const b[] = {Z(int16_t), Z(int16_t) + PAIRS * STEP, Z(int16_t) + 2 * PAIRS * STEP};
    for (size_t p = 0; offsets[1] == 0 && p < PAIRS; p++)
        offsets[p] = (uint32_t)(p * STEP);
    c->k->gemm_s16(X(int16_t), PAIRS, b, offsets, DQ_GEMM_S16_BLOCKS, Y(int32_t));
    c->work = (bench_work){.products = (double)DEPTH * DQ_GEMM_S16_ROWS * DQ_GEMM_S16_COLS, .bytes = true};
}

static void run_gemm_bytesplit_s16s8(call *c)
{
    enum { QUADS = DEPTH / 4, ROWS = DQ_GEMM_BYTESPLIT_PANELS * DQ_GEMM_BYTESPLIT_ROWS };
    const dq_gemm_bytesplit_s16s8 *kernel = c->k->gemm_bytesplit_s16s8;
    int32_t *sums = Y(int32_t) + 2 * DQ_GEMM_BYTESPLIT_SUMS;
    if (kernel->begin)
        kernel->begin();
    for (int i = 0; i < 64; i++)
        kernel->tile(X(int8_t), sums, ROWS, QUADS, bench_third, Y(int32_t),
                     Y(int32_t) + DQ_GEMM_BYTESPLIT_SUMS);
    if (kernel->done)
        kernel->done();
    c->work = (bench_work){.products = 64.0 * DEPTH * DQ_GEMM_BYTESPLIT_SUMS, .bytes = true};
}

static void run_gemv_s16s8(call *c)
{
    enum { STEP = DEPTH * DQ_GEMM_S16_NR };
    const int8_t *const b[] = {Z(int8_t), Z(int8_t) + STEP, Z(int8_t) + 2 * STEP};
    c->k->gemv_s16s8(X(int16_t), DEPTH / 2, b, Y(int32_t));
    c->work = (bench_work){.products = (double)DEPTH * DQ_GEMM_S16_COLS, .bytes = true};
}

static void run_requantize_s64(call *c)
{
    static const float factor = 0.001f, one = 1;
    static const double nothing;
    const dq_q16_sums sums = {.rows = 1,
                              .cols = c->n,
                              .stride = c->n,
                              .sums = X(int32_t),
                              .high = Z(int32_t),
                              .narrow = true,
                              .offset = &nothing,
                              .shift = &nothing,
                              .scale = bench_scales,
                              .error = 0x1p-32,
                              .factors = {.a = 1, .b = &factor, .y = &one},
                              .hi = 65535};
    WORK(4, 2);
    c->k->requantize_s64(&sums, Y(uint16_t));
}

static void run_winograd_s8(call *c)
{
    enum { ROWS = 48, CHANNELS = 64 };
    c->k->winograd_s8->product(X(int16_t), ROWS, CHANNELS, Z(int16_t), Y(int32_t));
    c->work = (bench_work){.products = (double)ROWS * CHANNELS * DQ_WINOGRAD_COLS, .bytes = true};
}

/* `rows` of them with two panels. */
static void multiply_block(call *c, size_t rows)
{
    enum { STEPS = 128, COLS = 2 * DQ_GEMM_F32_NR };
    const dq_gemm_block_f32 block = {.rows = rows,
                                     .cols = COLS,
                                     .k = STEPS,
                                     .a = X(float),
                                     .b = Z(float),
                                     .a_row = STEPS,
                                     .b_step = DQ_GEMM_F32_NR,
                                     .b_panel = STEPS * DQ_GEMM_F32_NR,
                                     .c = Y(float),
                                     .c_row = COLS};
    c->k->gemm_block_f32(&block);
    c->work = rows > 1 ? (bench_work){.products = (double)rows * STEPS * COLS}
                       : (bench_work){.read = STEPS * COLS * sizeof(float)};
}

static void run_gemm_block_f32(call *c)
{
    multiply_block(c, 24);
}

/* The panels fill half of the first-level cache. */
static void run_gemm_block_f32_row(call *c)
{
    multiply_block(c, 1);
}

static void run_gemv_f32(call *c)
{
    enum { ROWS = 64, STEPS = 64 };
    c->k->gemv_f32(X(float), STEPS, ROWS, STEPS, Z(float), Y(float));
    c->work = (bench_work){.products = (double)ROWS * STEPS};
}

/* A tile's way in. */
static void run_winograd_f32(call *c)
{
    enum { CHANNELS = 64 };
    const float *d[DQ_FWINOGRAD_POINTS];
    for (size_t p = 0; p < DQ_FWINOGRAD_POINTS; p++)
        d[p] = X(float) + p * CHANNELS;
    c->k->winograd_f32->input(d, CHANNELS, Y(float), CHANNELS + DQ_FWINOGRAD_STEP);
    c->work.read = c->work.written = CHANNELS * DQ_FWINOGRAD_POINTS * sizeof(float);
}

/* 3x3. */
static void run_conv_direct_f32(call *c)
{
    enum { TAPS = 9, PLANE = 66, ROWS = 16, COLS = 64 };
    static const size_t offsets[TAPS] = {
        0, 1, 2, PLANE, PLANE + 1, PLANE + 2, 2 * PLANE, 2 * PLANE + 1, 2 * PLANE + 2};
    const dq_conv_f32_rows f = {.x = X(float),
                                .w = Z(float),
                                .offsets = offsets,
                                .taps = TAPS,
                                .across = 3,
                                .rows = ROWS,
                                .n = COLS,
                                .x_row = PLANE,
                                .y_row = COLS,
                                .y = Y(float)};
    c->k->conv_direct_f32(&f);
    c->work = (bench_work){.products = TAPS * ROWS * COLS};
}

/* 3x3, planes of 7x7. */
static void run_dwconv_nchwc_f32(call *c)
{
    enum { TAPS = 9, PLACES = 56 };
    static const uint32_t offsets[TAPS * PLACES];
    const dq_dwconv_nchwc_f32 f = {.x = X(float),
                                   .w = Z(float),
                                   .bias = Z(float),
                                   .offsets = offsets,
                                   .taps = TAPS,
                                   .n = PLACES,
                                   .pitch = DQ_CONV_F32_CHANNELS,
                                   .y = Y(float)};
    c->k->dwconv_nchwc_f32(&f);
    c->work = (bench_work){.products = TAPS * PLACES * DQ_CONV_F32_CHANNELS};
}

/* Every second one, as strides of two want them. */
MEASURE(copy_strided_f32, 4, 2, X(float), 0, 2, 1, c->n / 2, Y(float), 0)

/* Sums of 64 steps for a row of 64 pixels. */
static void run_conv_nc4hw4_s8(call *c)
{
    enum { STEPS = 64, PIXELS = 64 };
    static const dq_conv_nc4hw4_s8 *packed;
    static const int32_t init[DQ_NC4HW4_OUTS];
    static ptrdiff_t offsets[STEPS];
    const dq_conv_nc4hw4_s8 *kernel = c->k->conv_nc4hw4_s8;
    void *panel = bench_target + WORKSPACE / 2;
    if (packed != kernel) { /* the panel is kept from call to call, as weights are */
        for (size_t s = 0; s < STEPS; s++)
            offsets[s] = (ptrdiff_t)(s * PIXELS * DQ_NC4HW4_STEP);
        (void)kernel->pack(Z(int8_t), STEPS, panel);
        packed = kernel;
    }
    kernel->sums(bench_source, offsets, STEPS, panel, init, PIXELS, Y(int32_t), PIXELS);
    c->work =
        (bench_work){.products = (double)STEPS * DQ_NC4HW4_STEP * DQ_NC4HW4_OUTS * PIXELS, .bytes = true};
}

/* Windows in a row. */
static void run_im2col_gather_f32(call *c)
{
    enum { CHANNELS = 64, PLANE = 20 };
    static const int32_t at[DQ_GEMM_F32_NR] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    c->k->im2col_gather_f32(X(float), at, CHANNELS, PLANE, DQ_GEMM_F32_NR, Y(float));
    c->work.read = c->work.written = CHANNELS * sizeof at;
}

/* Blocks of 32 codes of 4 bits. */
enum { NBITS_BLOCKS = 16, NBITS_WORDS = 4, NBITS_CODES = 8 };
static dq_nbits some_weights(void)
{
    static uint32_t lengths[NBITS_BLOCKS];
    for (size_t i = 0; i < NBITS_BLOCKS; i++)
        lengths[i] = NBITS_WORDS;
    return (dq_nbits){.bits = 4,
                      .blocks = NBITS_BLOCKS,
                      .lengths = lengths,
                      .words = X(uint32_t),
                      .scales = Z(float),
                      .middle = 8,
                      .distance = dq_cpu_prefetch_distance()};
}

static void run_nbits_s32(call *c)
{
    static const float factors[NBITS_BLOCKS];
    const dq_nbits b = some_weights();
    static const int32_t sums[NBITS_BLOCKS];
    const dq_nbits_row x = {Z(int8_t), factors, sums};
    c->k->nbits_s32(&b, &x, Y(float));
    c->work = (bench_work){.products = (double)NBITS_BLOCKS * NBITS_WORDS * NBITS_CODES * DQ_NBITS_COLS};
}

static void run_nbits_s8(call *c)
{
    static const float parts[NBITS_BLOCKS * DQ_NBITS_ROWS];
    const dq_nbits b = some_weights();
    static const int32_t starts[NBITS_BLOCKS * DQ_NBITS_ROWS];
    const dq_nbits_rounded x = {DQ_NBITS_ROWS, Z(int8_t), parts, parts, starts};
    c->k->nbits_s8(&b, &x, Y(float));
    c->work = (bench_work){.products = (double)DQ_NBITS_ROWS * NBITS_BLOCKS * NBITS_WORDS * NBITS_CODES *
                                       DQ_NBITS_COLS};
}

static void run_nbits_round_s8(call *c)
{
    enum { BLOCKS = 64 };
    for (size_t i = 0; i < BLOCKS; i++) {
        const dq_nbits_block block = {.x = X(float) + i * DQ_NBITS_PIECE,
                                      .words = DQ_NBITS_PIECE_WORDS(4),
                                      .rows = 1,
                                      .bits = 4,
                                      .digits = Y(int8_t) + i * DQ_NBITS_PIECE,
                                      .factors = Y(float) + DQ_NBITS_PIECE * BLOCKS + i,
                                      .sums = Y(float) + (DQ_NBITS_PIECE + 1) * BLOCKS + i};
        c->k->nbits_round_s8(&block);
    }
    c->work = (bench_work){.read = 4.0 * BLOCKS * DQ_NBITS_PIECE, .written = BLOCKS * (DQ_NBITS_PIECE + 8.0)};
}

static void run_nbits_f32(call *c)
{
    const dq_nbits b = some_weights();
    double weights = NBITS_WORDS * NBITS_CODES * DQ_NBITS_COLS;
    c->k->nbits_f32(&b, 0, 0, NBITS_WORDS, Y(float), NBITS_WORDS * NBITS_CODES * 16);
    c->work = (bench_work){.read = weights / 2, .written = 4 * weights};
}

const measure bench_products[] = {
    PRODUCT(gemm_s8),
    {"gemm_s8", run_gemm_s8_few, false, "one row"},
    PRODUCT(dwconv_rows_s8),
    PRODUCT(dwconv_3x3_s8),
    PRODUCT(dwconv_requantize_s8),
    PRODUCT(nbits_s32),
    PRODUCT(nbits_s8),
    PRODUCT(nbits_round_s8),
    PRODUCT(nbits_f32),
    PRODUCT(gemm_s16),
    PRODUCT(gemv_s16s8),
    PRODUCT(dwconv_rows_s16),
    PRODUCT(gemm_bytesplit_s16s8),
    ROW(requantize_s64),
    PRODUCT(winograd_s8),
    PRODUCT(gemm_block_f32),
    {"gemm_block_f32", run_gemm_block_f32_row, false, "one row"},
    PRODUCT(gemv_f32),
    PRODUCT(im2col_gather_f32),
    PRODUCT(conv_direct_f32),
    PRODUCT(dwconv_nchwc_f32),
    PRODUCT(conv_nc4hw4_s8),
    ROW(copy_strided_f32),
    PRODUCT(winograd_f32),
    {0},
};
