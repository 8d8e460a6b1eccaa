/* One measure a slot: a call on memory in the first-level cache, and for rows one on memory that fits no
 * cache. */
#include "bench.h"

#include "base/cpu.h"
#include "base/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR = 2048, FAR = 16 << 20 /* elements */, ROOM = FAR * 4, DEPTH = 256 };

static uint8_t *source, *target, *third; /* ROOM bytes each */
static float scale = 0.02f;
static double scales[DQ_REQUANTIZE_COLS];

typedef struct call {
    const dq_kernels *k;
    const struct measure *measure;
    size_t n;
    bench_work work; /* set by a run */
} call;

typedef struct measure {
    const char *slot;
    void (*run)(call *c);
    bool row;         /* measured on far memory, too */
    const char *what; /* of several of a slot; or NULL */
} measure;

/* ---- Rows ---- */

#define X(type) ((const type *)(const void *)source)
#define Y(type) ((type *)(void *)target)
#define Z(type) ((const type *)(const void *)third)
#define WORK(read_bytes, written_bytes)                                                                      \
    c->work = (bench_work)                                                                                   \
    {                                                                                                        \
        .read = (double)(c->n) * (read_bytes), .written = (double)(c->n) * (written_bytes)                   \
    }

#define MEASURE(slot, read_bytes, written_bytes, ...)                                                        \
    static void run_##slot(call *c)                                                                          \
    {                                                                                                        \
        WORK(read_bytes, written_bytes);                                                                     \
        c->k->slot(__VA_ARGS__);                                                                             \
    }

static float lowest, highest;
MEASURE(minmax_f32, 4, 0, X(float), c->n, &lowest, &highest)
MEASURE(twice, 1, 4, source, c->n, 1, 1, target)
MEASURE(requantize, 4, 1, X(int32_t), c->n, scales, 0, 10, 0, 255, Y(uint8_t))
MEASURE(subtract_scaled, 8, 4, Y(int32_t), c->n, 3, X(int32_t))
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
MEASURE(lookup_x8, 1, 1, X(uint8_t), c->n, third, Y(uint8_t))
MEASURE(finish_s32_f32, 4, 4, Y(float), c->n, 0.5f, 1.0f, NULL, -100.0f, 100.0f)
MEASURE(qconv_pairs, 1, 4, X(uint8_t), 1, 1, c->n, Y(int16_t))

static void run_max_windows(call *c)
{
    enum { WIDE = 64 };
    const dq_max_windows w = {.x = source,
                              .x_step = WIDE,
                              .under = 3,
                              .row_step = 2 * WIDE,
                              .rows = c->n / WIDE / 2 - 1,
                              .n = WIDE,
                              .line = third,
                              .kernel = 3,
                              .stride = 2,
                              .dilation = 1,
                              .width = WIDE / 2,
                              .out = target};
    c->work = (bench_work){.read = (double)c->n, .written = (double)c->n / 4};
    c->k->max_windows(&w);
}

static float block_scales[FAR / 32];
MEASURE(dequantize_blocks_u8_f32, 1.125, 4, X(uint8_t), c->n / 32, 32, block_scales, NULL, Y(float))
MEASURE(dequantize_blocks_s8_f32, 1.125, 4, X(int8_t), c->n / 32, 32, block_scales, NULL, Y(float))

static void square(call *c, size_t element, size_t *side)
{
    *side = c->n == NEAR ? 32 : 2048;
    c->work.read = c->work.written = (double)(*side * *side * element);
}

static void run_transpose_x8(call *c)
{
    size_t side;
    square(c, 1, &side);
    c->k->transpose_x8(source, side, side, side, 0, target, side);
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

static void run_requantize_tile(call *c)
{
    enum { COLS = DQ_REQUANTIZE_COLS };
    const dq_requantize_to to = {.scale = scales,
                                 .zero_point = 10,
                                 .hi = 255,
                                 .out = target,
                                 .out_stride = c->n / COLS,
                                 .transposed = true};
    WORK(4, 1);
    c->k->requantize_tile(X(int32_t), COLS, c->n / COLS, COLS, &to);
}

/* exp stands for the record. */
static void run_float_rows(call *c)
{
    WORK(4, 4);
    c->k->float_rows->exp(X(float), c->n, Y(float));
}

/* Maxima of three rows by three columns stand for the record. */
static void run_float_pool(call *c)
{
    static const size_t at[] = {0, 1, 2};
    const dq_pool_lines p = {.x = X(float), .at = at, .under = 3, .n = c->n - 2, .lines = 1};
    const dq_line_windows w = {
        .count = c->n / 2 - DQ_POOL_SLACK, .stride = 2, .taps = 3, .dilation = 1, .lines = 1};
    WORK(4, 2);
    c->k->float_pool->max_rows(&p, Y(float));
    c->k->float_pool->max_windows(Z(float), &w, Y(float));
}

/* ---- Products ---- */

/* `rows` of them with a panel, kept from call to call as weights are: `steps` deep. */
static void multiply(call *c, const dq_qgemm *kernel, size_t rows, size_t steps, uint8_t use)
{
    static const dq_qgemm *packed;
    static size_t packed_steps;
    static const ptrdiff_t zero_offset[1];
    static int32_t sums[DQ_QGEMM_NR_MAX];
    uint8_t *turned = third + ROOM / 2; /* far more than any kernel keeps */
    const uint8_t *at[DQ_QGEMM_MR_MAX];
    dq_qgemm_b b = {.data = third,
                    .cols = kernel->nr,
                    .runs = 1,
                    .run = steps,
                    .inner = steps,
                    .col_stride = steps,
                    .run_stride = steps,
                    .outer_stride = steps,
                    .inner_stride = 1,
                    .use = use};
    const dq_qgemm_a a = {.rows = at, .offsets = zero_offset, .runs = 1, .run = steps, .turned = turned};
    for (size_t i = 0; i < rows; i++)
        at[i] = source + i * steps;
    if (packed != kernel || packed_steps != steps) {
        (void)kernel->pack(&b, 0, target, sums);
        turned[0] = 0;
        packed = kernel;
        packed_steps = steps;
    }
    kernel->tile(&a, rows, target, sums, (int32_t *)(void *)(target + ROOM / 2), kernel->nr);
    c->work = (bench_work){.products = (double)rows * kernel->nr * (double)steps, .bytes = true};
}

static void run_qgemm(call *c)
{
    multiply(c, c->k->qgemm, c->k->qgemm->mr, DEPTH, DQ_QGEMM_ONCE);
}

/* One row, over weights that fill much of the first-level cache. */
static void run_qgemm_few(call *c)
{
    const dq_qgemm *few = c->k->qgemm->few;
    multiply(c, few ? few : c->k->qgemm, 1, 2 * DEPTH, DQ_QGEMM_FEW);
}

static void make_rows(call *c, dq_qconv_rows_fn *rows)
{
    enum { TAPS = 6, OUTPUTS = 56 };
    static const ptrdiff_t offsets[TAPS] = {0, 120, 240, 360, 480, 600};
    static const int16_t w[2 * TAPS] = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};
    rows(X(int16_t), 0, 1, offsets, w, TAPS, 3, OUTPUTS, Y(int32_t));
    c->work = (bench_work){.products = 2.0 * TAPS * OUTPUTS, .bytes = true};
}

static void run_qconv_rows(call *c)
{
    make_rows(c, c->k->qconv_rows);
}

static void run_wconv_rows(call *c)
{
    make_rows(c, c->k->wconv_rows);
}

enum { SIDE_3X3 = 56, STEP_3X3 = 58 };
static const int16_t weights_3x3[12] = {10, -25, 30, 0, -40, 120, -60, 0, 17, -28, 39, 0};

static void run_qconv_3x3(call *c)
{
    c->k->qconv_3x3->rows(X(uint8_t), STEP_3X3, SIDE_3X3, weights_3x3, 3, SIDE_3X3, Y(int32_t));
    c->work = (bench_work){.products = 9.0 * SIDE_3X3 * SIDE_3X3, .bytes = true};
}

static void run_qconv_codes(call *c)
{
    enum { PITCH = STEP_3X3 };
    static size_t at[12];
    static const double no_ties = 0.00123456789;
    static uint64_t packed[DEPTH];
    static const dq_qconv_codes *is_packed;
    const dq_requantize_to to = {.scale = &no_ties, .zero_point = 128, .hi = 255};
    const dq_qconv_codes *kernel = c->k->qconv_codes;
    for (size_t i = 0; at[11] == 0 && i < 12; i++)
        at[i] = i / 4 * PITCH + i % 4;
    if (kernel != is_packed && kernel->pack && kernel->pack(weights_3x3, at, 12, 3, &to, packed))
        is_packed = kernel;
    if (kernel->pack && kernel == is_packed)
        kernel->put(X(uint8_t), PITCH, 1, SIDE_3X3, packed, SIDE_3X3, Y(uint8_t));
    c->work = (bench_work){.products = kernel->pack ? 9.0 * SIDE_3X3 * SIDE_3X3 : 0, .bytes = true};
}

static void run_wgemm(call *c)
{
    enum { PAIRS = DEPTH / 2, STEP = 2 * DQ_WGEMM_OCTET };
    static uint32_t offsets[PAIRS];
    const int16_t *const b[] = {Z(int16_t), Z(int16_t) + PAIRS * STEP, Z(int16_t) + 2 * PAIRS * STEP};
    for (size_t p = 0; offsets[1] == 0 && p < PAIRS; p++)
        offsets[p] = (uint32_t)(p * STEP);
    c->k->wgemm(X(int16_t), PAIRS, b, offsets, DQ_WGEMM_OCTETS, Y(int32_t));
    c->work = (bench_work){.products = (double)DEPTH * DQ_WGEMM_ROWS * DQ_WGEMM_COLS, .bytes = true};
}

static void run_wquads(call *c)
{
    enum { QUADS = DEPTH / 4, BLOCKS = QUADS / DQ_WQUADS_DEPTH };
    const dq_wquads *kernel = c->k->wquads;
    int32_t *sums = Y(int32_t) + 2 * DQ_WQUADS_SUMS;
    if (kernel->begin)
        kernel->begin();
    for (int i = 0; i < 64; i++)
        kernel->tile(X(int8_t), sums, DQ_WQUADS_PANELS, BLOCKS, third, Y(int32_t),
                     Y(int32_t) + DQ_WQUADS_SUMS);
    if (kernel->done)
        kernel->done();
    c->work = (bench_work){.products = 64.0 * DEPTH * DQ_WQUADS_SUMS, .bytes = true};
}

static void run_wrow(call *c)
{
    enum { STEP = DEPTH * DQ_WGEMM_OCTET };
    const int8_t *const b[] = {Z(int8_t), Z(int8_t) + STEP, Z(int8_t) + 2 * STEP};
    c->k->wrow(X(int16_t), DEPTH / 2, b, Y(int32_t));
    c->work = (bench_work){.products = (double)DEPTH * DQ_WGEMM_COLS, .bytes = true};
}

static void run_requantize_wide(call *c)
{
    const dq_wide_sums sums = {.rows = 1,
                               .cols = c->n,
                               .stride = c->n,
                               .sums = X(int32_t),
                               .high = Z(int32_t),
                               .narrow = true,
                               .offset = scales,
                               .scale = scales,
                               .hi = 65535};
    WORK(4, 2);
    c->k->requantize_wide(&sums, Y(uint16_t));
}

static void run_fgemm(call *c)
{
    enum { STEPS = 64 };
    c->k->fgemm(X(float), Z(float), STEPS, DQ_FGEMM_ROWS, Y(float));
    c->work = (bench_work){.products = (double)STEPS * DQ_FGEMM_ROWS * DQ_FGEMM_COLS};
}

static void run_winograd(call *c)
{
    enum { ROWS = 48, CHANNELS = 64 };
    c->k->winograd->product(X(int16_t), ROWS, CHANNELS, Z(int16_t), Y(int32_t));
    c->work = (bench_work){.products = (double)ROWS * CHANNELS * DQ_WINOGRAD_COLS, .bytes = true};
}

/* `rows` of them with two panels. */
static void multiply_block(call *c, size_t rows)
{
    enum { STEPS = 128, COLS = 2 * DQ_FPANEL };
    const dq_fblock block = {.rows = rows,
                             .cols = COLS,
                             .k = STEPS,
                             .a = X(float),
                             .b = Z(float),
                             .a_row = STEPS,
                             .b_step = DQ_FPANEL,
                             .b_panel = STEPS * DQ_FPANEL,
                             .c = Y(float),
                             .c_row = COLS};
    c->k->fblock(&block);
    c->work = rows > 1 ? (bench_work){.products = (double)rows * STEPS * COLS}
                       : (bench_work){.read = STEPS * COLS * sizeof(float)};
}

static void run_fblock(call *c)
{
    multiply_block(c, 24);
}

/* The panels fill half of the first-level cache. */
static void run_fblock_row(call *c)
{
    multiply_block(c, 1);
}

static void run_fgemv(call *c)
{
    enum { ROWS = 64, STEPS = 64 };
    c->k->fgemv(X(float), STEPS, ROWS, STEPS, Z(float), Y(float));
    c->work = (bench_work){.products = (double)ROWS * STEPS};
}

/* A tile's way in. */
static void run_fwinograd(call *c)
{
    enum { CHANNELS = 64 };
    const float *d[DQ_FWINOGRAD_POINTS];
    for (size_t p = 0; p < DQ_FWINOGRAD_POINTS; p++)
        d[p] = X(float) + p * CHANNELS;
    c->k->fwinograd->input(d, CHANNELS, Y(float), CHANNELS + DQ_FWINOGRAD_STEP);
    c->work.read = c->work.written = CHANNELS * DQ_FWINOGRAD_POINTS * sizeof(float);
}

/* 3x3. */
static void run_fconv_plane(call *c)
{
    enum { TAPS = 9, PLANE = 66, ROWS = 16, COLS = 64 };
    static const size_t offsets[TAPS] = {
        0, 1, 2, PLANE, PLANE + 1, PLANE + 2, 2 * PLANE, 2 * PLANE + 1, 2 * PLANE + 2};
    const dq_fconv f = {.x = X(float),
                        .w = Z(float),
                        .offsets = offsets,
                        .taps = TAPS,
                        .across = 3,
                        .rows = ROWS,
                        .n = COLS,
                        .x_row = PLANE,
                        .y_row = COLS,
                        .y = Y(float)};
    c->k->fconv_plane(&f);
    c->work = (bench_work){.products = TAPS * ROWS * COLS};
}

/* Every second one, as strides of two want them. */
MEASURE(fevery, 4, 2, X(float), 0, 2, 1, c->n / 2, Y(float), 0)

/* Sums of 64 steps for a row of 64 pixels. */
static void run_qlanes(call *c)
{
    enum { STEPS = 64, PIXELS = 64 };
    static const dq_qlanes *packed;
    static const int32_t init[DQ_QLANES_OUTS];
    static ptrdiff_t offsets[STEPS];
    const dq_qlanes *kernel = c->k->qlanes;
    void *panel = target + ROOM / 2;
    if (packed != kernel) { /* the panel is kept from call to call, as weights are */
        for (size_t s = 0; s < STEPS; s++)
            offsets[s] = (ptrdiff_t)(s * PIXELS * DQ_QLANES_STEP);
        (void)kernel->pack(Z(int8_t), STEPS, panel);
        packed = kernel;
    }
    kernel->sums(source, offsets, STEPS, panel, init, PIXELS, Y(int32_t), PIXELS);
    c->work =
        (bench_work){.products = (double)STEPS * DQ_QLANES_STEP * DQ_QLANES_OUTS * PIXELS, .bytes = true};
}

/* Windows in a row. */
static void run_fgather(call *c)
{
    enum { CHANNELS = 64, PLANE = 20 };
    static const int32_t at[DQ_FPANEL] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    c->k->fgather(X(float), at, CHANNELS, PLANE, DQ_FPANEL, Y(float));
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
                      .middle = 8};
}

static void run_nbits(call *c)
{
    static const float factors[NBITS_BLOCKS];
    const dq_nbits b = some_weights();
    static const int32_t sums[NBITS_BLOCKS];
    const dq_nbits_row x = {Z(int8_t), factors, sums};
    c->k->nbits(&b, &x, Y(float));
    c->work = (bench_work){.products = (double)NBITS_BLOCKS * NBITS_WORDS * NBITS_CODES * DQ_NBITS_COLS};
}

static void run_nbits_rounded(call *c)
{
    static const float parts[NBITS_BLOCKS * DQ_NBITS_ROWS];
    const dq_nbits b = some_weights();
    const dq_nbits_rounded x = {DQ_NBITS_ROWS, Z(int8_t), parts, parts};
    c->k->nbits_rounded(&b, &x, Y(float));
    c->work = (bench_work){.products = (double)DQ_NBITS_ROWS * NBITS_BLOCKS * NBITS_WORDS * NBITS_CODES *
                                       DQ_NBITS_COLS};
}

static void run_nbits_floats(call *c)
{
    const dq_nbits b = some_weights();
    double weights = NBITS_WORDS * NBITS_CODES * DQ_NBITS_COLS;
    c->k->nbits_floats(&b, 0, 0, NBITS_WORDS, Y(float), NBITS_WORDS * NBITS_CODES * 16);
    c->work = (bench_work){.read = weights / 2, .written = 4 * weights};
}

#define ROW(slot)                                                                                            \
    {                                                                                                        \
#slot, run_##slot, true, NULL                                                                        \
    }
#define PRODUCT(slot)                                                                                        \
    {                                                                                                        \
#slot, run_##slot, false, NULL                                                                       \
    }
static const measure measures[] = {
    ROW(minmax_f32),
    ROW(requantize),
    ROW(requantize_tile),
    ROW(subtract_scaled),
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
    ROW(finish_s32_f32),
    ROW(qconv_pairs),
    ROW(max_windows),
    ROW(transpose_x8),
    ROW(transpose_x16),
    ROW(transpose_x32),
    ROW(twice),
    ROW(float_rows),
    ROW(float_pool),
    PRODUCT(qgemm),
    {"qgemm", run_qgemm_few, false, "one row"},
    PRODUCT(qconv_rows),
    PRODUCT(qconv_3x3),
    PRODUCT(qconv_codes),
    PRODUCT(fgemm),
    PRODUCT(nbits),
    PRODUCT(nbits_rounded),
    PRODUCT(nbits_floats),
    PRODUCT(wgemm),
    PRODUCT(wrow),
    PRODUCT(wconv_rows),
    PRODUCT(wquads),
    ROW(requantize_wide),
    ROW(dequantize_blocks_u8_f32),
    ROW(dequantize_blocks_s8_f32),
    PRODUCT(winograd),
    PRODUCT(fblock),
    {"fblock", run_fblock_row, false, "one row"},
    PRODUCT(fgemv),
    PRODUCT(fgather),
    PRODUCT(fconv_plane),
    PRODUCT(qlanes),
    ROW(fevery),
    PRODUCT(fwinograd),
};

/* ---- The table ---- */

static double read_rate[2], write_rate[2]; /* near, far */

static void run_call(void *arg)
{
    call *c = arg;
    c->measure->run(c);
}

/* Small numbers of either sign as floats; as integers they are anything. */
static void fill(uint8_t *bytes)
{
    uint32_t state = 1;
    for (size_t i = 0; i < ROOM; i += 4) {
        state = state * 1664525u + 1013904223u;
        float x = ((float)(state >> 8) / (float)(1 << 23) - 1.0f) * 3.0f;
        memcpy(bytes + i, &x, 4);
    }
}

void bench_begin(void)
{
    source = dq_pages_alloc(ROOM);
    target = dq_pages_alloc(ROOM);
    third = dq_pages_alloc(ROOM);
    if (!source || !target || !third)
        exit(EXIT_FAILURE);
    fill(source);
    memset(target, 0, ROOM);
    fill(third);
    for (size_t i = 0; i < DQ_REQUANTIZE_COLS; i++)
        scales[i] = 0.001;
    for (size_t i = 0; i < FAR / 32; i++)
        block_scales[i] = 0.02f;
    for (int far = 0; far < 2; far++) {
        size_t bytes = far ? (size_t)FAR * 4 : 8192;
        read_rate[far] = bench_read_rate(bytes);
        write_rate[far] = bench_write_rate(bytes);
        printf("%s: reads %.1f, writes %.1f GB/s\n", far ? "memory" : "first-level cache",
               1e-9 * read_rate[far], 1e-9 * write_rate[far]);
    }
    printf("memory: four words read and one written %.1f, one read and four written %.1f GB/s\n",
           1e-9 * bench_copy_rate((size_t)FAR * 4, (size_t)FAR),
           1e-9 * bench_copy_rate((size_t)FAR, (size_t)FAR * 4));
    printf("%-11s %-32s %10s %9s %7s %9s %7s\n", "", "", "ns a call", "near", "of max", "far", "of max");
}

/* Prints the rate of `took` seconds and its part of what the machine allows. */
static void print_rate(const bench_work *w, double took, unsigned isa, int far)
{
    if (w->products > 0) {
        double most = w->bytes ? bench_byte_rate(isa) : bench_float_rate(isa), got = w->products / took;
        printf(" %5.1f GMAC", 1e-9 * got);
        printf(most > 0 ? "  %4.0f %%" : "       -", 100 * got / most);
        return;
    }
    double least = w->read / read_rate[far] + w->written / write_rate[far];
    printf(" %5.1f GB/s  %4.0f %%", 1e-9 * (w->read + w->written) / took, 100 * least / took);
}

bool bench_kernel(const char *isa_name, unsigned isa, const char *slot, const char *name, const dq_kernels *k)
{
    bool any = false;
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++) {
        const measure *m = &measures[i];
        if (strcmp(m->slot, slot) != 0)
            continue;
        call c = {.k = k, .measure = m, .n = NEAR};
        double took = bench_seconds(run_call, &c);
        int width = printf("%-11s %s%s%s", isa_name, name, m->what ? ", " : "", m->what ? m->what : "");
        printf("%*s %10.1f", width < 44 ? 44 - width : 0, "", 1e9 * took);
        print_rate(&c.work, took, isa, 0);
        if (m->row) {
            c.n = FAR;
            print_rate(&c.work, took = bench_seconds(run_call, &c), isa, 1);
        }
        printf("\n");
        any = true;
    }
    return any;
}
