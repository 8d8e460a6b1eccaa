/* SPDX-License-Identifier: Apache-2.0 */
/* Integer and float matrix products, Winograd's method, transposes. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

/* ---- gemm_s8 ------------------------------------------------------------------------------------------- */

typedef struct product {
    const dq_gemm_s8 *kernel;
    dq_gemm_s8_a a;
    dq_gemm_s8_b b;
    size_t rows;
    uint8_t *weights;
} product;

static int64_t a_element(const product *p, size_t i, size_t t, size_t k)
{
    uint8_t byte = p->a.rows[i][p->a.offsets[t] + (ptrdiff_t)k];
    return p->kernel->a_signed ? (int8_t)byte : byte;
}

static int64_t b_element(const product *p, size_t j, size_t t, size_t k)
{
    const dq_gemm_s8_b *b = &p->b;
    if (j >= b->cols)
        return 0;
    return (int8_t)(b->data[j * b->col_stride + t * b->run_stride + k / b->inner * b->outer_stride +
                            k % b->inner * b->inner_stride] ^
                    b->sign_xor);
}

/* Bytes at random, or all at an end of the range, where sums of few products overflow 16 bits; or int8
 * weights of which some only do: the ends in any order, ends among small ones, a bell as trained ones
 * have, a narrow one, and such as lie far from zero on either side, but for a few. */
enum { EVEN, LARGEST, MAX, LEAST, A_KINDS, ENDS = A_KINDS, SPARSE_ENDS, BELL, NARROW, HIGH, LOW, B_KINDS };

static uint8_t some_byte(uint32_t kind)
{
    static const uint8_t ends[] = {127, 128, 129, 126, 1, 255, 127, 128};
    switch (kind) {
    case LARGEST:
        return 255;
    case MAX:
        return 127;
    case LEAST:
        return 128;
    case ENDS:
        return ends[kernel_random(8)];
    case SPARSE_ENDS:
        return kernel_random(16) ? (uint8_t)(kernel_random(60) - 30) : ends[kernel_random(8)];
    case BELL:
        return (uint8_t)(kernel_random(85) + kernel_random(85) + kernel_random(85) - 126);
    case NARROW:
        return (uint8_t)(kernel_random(20) + kernel_random(20) - 19);
    case HIGH:
        return kernel_random(64) ? (uint8_t)(kernel_random(30) + 90) : ends[kernel_random(8)];
    case LOW:
        return kernel_random(64) ? (uint8_t)(kernel_random(30) - 120) : ends[kernel_random(8)];
    default:
        return (uint8_t)kernel_random(256);
    }
}

static void fill(uint8_t *bytes, size_t n, uint32_t kind)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = some_byte(kind);
}

/* Whole matrices of a kind, or a kind for each column. */
static void fill_weights(const dq_gemm_s8_b *b, uint8_t *weights)
{
    uint32_t kind = kernel_random(B_KINDS);
    bool mixed = kernel_random(4) == 0;
    for (size_t j = 0; j < b->cols; j++) {
        fill(weights + j * b->col_stride, b->col_stride, mixed ? kernel_random(B_KINDS) : kind);
        for (size_t i = 0; i < b->col_stride; i++)
            weights[j * b->col_stride + i] ^= b->sign_xor;
    }
}

static product random_product(const dq_gemm_s8 *kernel, uint32_t use)
{
    product p = {.kernel = kernel};
    size_t runs = kernel_random(5), run = kernel_random(3) ? kernel_random(20) : kernel_random(300);
    p.rows = 1 + kernel_random(kernel->mr);
    p.a.runs = p.b.runs = runs;
    p.a.run = p.b.run = run;
    ptrdiff_t *offsets = kernel_memory(runs * sizeof *offsets);
    size_t reach = 0;
    for (size_t t = 0; t < runs; t++) {
        offsets[t] = (ptrdiff_t)kernel_random(51);
        const size_t end = (size_t)offsets[t] + dq_gemm_s8_readable(run);
        reach = end > reach ? end : reach;
    }
    const uint8_t **rows = kernel_memory(p.rows * sizeof *rows);
    uint32_t kind = kernel_random(A_KINDS);
    for (size_t i = 0; i < p.rows; i++) {
        uint8_t *row = kernel_memory(reach);
        fill(row, reach, kind);
        rows[i] = row;
    }
    p.a.offsets = offsets;
    p.a.rows = rows;
    /* weights as a convolution has them: column, position within a run's inner part, run, outer part */
    size_t outer = 1 + kernel_random(3), inner = run % outer == 0 && run ? run / outer : run ? run : 1;
    outer = run ? run / inner : 1;
    p.b.cols = 1 + kernel_random(2 * kernel->nr);
    p.b.inner = inner;
    p.b.outer_stride = 1;
    p.b.run_stride = outer;
    p.b.inner_stride = outer * (runs ? runs : 1);
    p.b.col_stride = p.b.inner_stride * inner;
    p.b.sign_xor = kernel_random(2) ? 0x80 : 0;
    p.b.use = (uint8_t)use;
    if (kernel->packed_a_size) {
        p.a.packed =
            kernel_bytes(kernel->packed_a_size(&p.b, p.rows)); /* of which the first byte alone counts */
        *(char *)p.a.packed = 0;
    }
    p.weights = kernel_memory(p.b.cols * p.b.col_stride);
    fill_weights(&p.b, p.weights);
    p.b.data = p.weights;
    return p;
}

static int32_t sum_of(const product *p, size_t row, size_t column, int32_t init)
{
    uint32_t sum = (uint32_t)init;
    for (size_t t = 0; t < p->a.runs; t++)
        for (size_t k = 0; k < p->a.run; k++)
            sum += (uint32_t)(a_element(p, row, t, k) * b_element(p, column, t, k));
    return (int32_t)sum;
}

static void check_tile(const product *p, size_t first, const void *panel)
{
    const dq_gemm_s8 *kernel = p->kernel;
    size_t nr = kernel->nr, stride = nr + kernel_random(3) * 5;
    int32_t *init = kernel_bytes(nr * sizeof *init);
    const size_t size = (p->rows - 1) * stride + nr, bytes = size * sizeof *init;
    int32_t *c = kernel_bytes(bytes), *before = memcpy(kernel_bytes(bytes), c, bytes);
    dq_gemm_s8_a a = p->a;
    if (kernel_random(2)) {
        int32_t *sums = kernel_bytes(p->rows * sizeof *sums);
        kernel->sums(&a, p->rows, sums);
        a.sums = sums;
    }
    const size_t columns = dq_gemm_s8_columns(kernel, p->b.cols - first < nr ? p->b.cols - first : nr);
    kernel->tile(&a, p->rows, panel, init, c, stride);
    for (size_t at = 0; at < size; at++) {
        const size_t i = at / stride, j = at % stride;
        const int32_t expected = j < columns ? sum_of(p, i, first + j, init[j]) : before[at];
        KERNEL_FAIL_UNLESS(c[at] == expected, "row %zu of %zu, column %zu: %d, expected %d", i, p->rows, j,
                           c[at], expected);
    }
}

/* A copy of a panel's used bytes, as a file has them: nothing may be read past its end. */
static const void *without_rest(const product *p, const void *panel, size_t used)
{
    const dq_gemm_s8 *kernel = p->kernel;
    if (!kernel->used)
        return panel;
    const size_t found = kernel->used(p->b.runs, p->b.run, panel, used);
    KERNEL_FAIL_UNLESS(found == used, "a panel from a file uses %zu bytes, expected %zu", found, used);
    KERNEL_FAIL_UNLESS(kernel->used(p->b.runs, p->b.run, panel, used - 1) == 0,
                       "a panel of %zu bytes is accepted without its end", used);
    return memcpy(kernel_bytes(used), panel, used);
}

static void check_panel(const product *p, size_t first)
{
    const dq_gemm_s8 *kernel = p->kernel;
    size_t size = kernel->panel_size(p->b.runs, p->b.run);
    KERNEL_FAIL_UNLESS(size > 0 && size % 64 == 0, "a panel of %zu bytes", size);
    void *panel = kernel_bytes(size); /* aligned also where it ends at a page */
    int32_t *sums = kernel_bytes(kernel->nr * sizeof *sums);
    size_t used = kernel->pack(&p->b, first, panel, sums);
    KERNEL_FAIL_UNLESS(used <= size && used % 64 == 0, "used %zu bytes of a panel of %zu", used, size);
    for (size_t j = 0; j < kernel->nr; j++) {
        int64_t sum = 0;
        for (size_t t = 0; t < p->b.runs; t++)
            for (size_t k = 0; k < p->b.run; k++)
                sum += b_element(p, first + j, t, k);
        KERNEL_FAIL_UNLESS(sums[j] == sum, "sum of column %zu is %d, expected %d", j, sums[j], (int)sum);
    }
    check_tile(p, first, without_rest(p, panel, used));
}

static void check_sums(const product *p)
{
    int32_t *sums = kernel_bytes(p->rows * sizeof *sums);
    p->kernel->sums(&p->a, p->rows, sums);
    for (size_t i = 0; i < p->rows; i++) {
        int64_t sum = 0;
        for (size_t t = 0; t < p->a.runs; t++)
            for (size_t k = 0; k < p->a.run; k++)
                sum += a_element(p, i, t, k);
        KERNEL_FAIL_UNLESS(sums[i] == sum, "sum of row %zu is %d, expected %d", i, sums[i], (int)sum);
    }
}

/* Of `uses` uses from `first` on. */
static void check_kernel(const dq_gemm_s8 *kernel, uint32_t first_use, uint32_t uses)
{
    KERNEL_FAIL_UNLESS(kernel->mr >= 1 && kernel->mr <= DQ_GEMM_S8_MR_MAX, "mr is %u", kernel->mr);
    KERNEL_FAIL_UNLESS(kernel->nr >= 1 && kernel->nr <= DQ_GEMM_S8_NR_MAX, "nr is %u", kernel->nr);
    size_t huge = (size_t)1 << 40;
    KERNEL_FAIL_UNLESS(kernel->panel_size(huge, huge) == 0, "a size that does not fit");
    dq_gemm_s8_b many = {.runs = huge, .run = huge};
    KERNEL_FAIL_UNLESS(!kernel->packed_a_size || kernel->packed_a_size(&many, 1) == 0, "another");
    for (int round = 0; round < 300; round++) {
        product p = random_product(kernel, first_use + kernel_random(uses));
        for (size_t first = 0; first < p.b.cols; first += kernel->nr)
            check_panel(&p, first);
        if (kernel->done)
            kernel->done();
        check_sums(&p);
        kernel_done();
    }
}

void check_gemm_s8(const dq_kernels *k)
{
    const dq_gemm_s8 *few = k->gemm_s8->few, *other = k->gemm_s8->other_sign;
    check_kernel(k->gemm_s8, 0, few ? DQ_GEMM_S8_FEW : DQ_GEMM_S8_FEW + 1);
    if (other) {
        KERNEL_FAIL_UNLESS(other->a_signed != k->gemm_s8->a_signed && !other->few, "one of the same sign");
        check_kernel(other, 0, DQ_GEMM_S8_FEW);
    }
    if (!few)
        return;
    KERNEL_FAIL_UNLESS(few->a_signed == k->gemm_s8->a_signed && !few->few, "another for few rows");
    check_kernel(few, DQ_GEMM_S8_FEW, 1);
}

/* ---- Winograd ---------------------------------------------------------------------------------------- */

enum { POINTS = DQ_WINOGRAD_POINTS, COLS = DQ_WINOGRAD_COLS };

/* left m right' for 4x4 m, with `rows` rows of left and right. */
static void sandwich(const int left[][4], size_t rows, const int64_t m[POINTS], int64_t *out)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++) {
            out[i * rows + j] = 0;
            for (size_t k = 0; k < POINTS; k++)
                out[i * rows + j] += left[i][k / 4] * m[k] * left[j][k % 4];
        }
}

static void check_winograd_input(const dq_winograd_s8 *kernel)
{
    static const int b[4][4] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
    size_t tiles = kernel_random(6), channels = DQ_WINOGRAD_STEP * (1 + kernel_random(4));
    size_t pixel = channels + kernel_random(9), row = pixel * (2 * tiles + 2) + kernel_random(50);
    size_t point = tiles * channels + kernel_random(20), size = 3 * row + (2 * tiles + 1) * pixel + channels;
    uint8_t *x = kernel_memory(size);
    int16_t *v = kernel_bytes((15 * point + tiles * channels) * sizeof *v);
    fill(x, size, kernel_random(2));
    kernel->input(x, row, pixel, tiles, channels, v, point);
    for (size_t i = 0; i < tiles * channels; i++) {
        int64_t d[POINTS], expected[POINTS];
        for (size_t p = 0; p < POINTS; p++)
            d[p] = x[p / 4 * row + (i / channels * 2 + p % 4) * pixel + i % channels];
        sandwich(b, 4, d, expected);
        for (size_t p = 0; p < POINTS; p++)
            KERNEL_FAIL_UNLESS(v[p * point + i] == expected[p], "tile %zu, channel %zu, point %zu",
                               i / channels, i % channels, p);
    }
}

static void check_winograd_product(const dq_winograd_s8 *kernel)
{
    size_t rows = kernel_random(20), channels = DQ_WINOGRAD_STEP * (1 + kernel_random(20));
    int16_t *v = kernel_memory(rows * channels * sizeof *v), *u = kernel_memory(channels * COLS * sizeof *u);
    int32_t *m = kernel_bytes(rows * COLS * sizeof *m);
    bool most = kernel_random(2);
    for (size_t i = 0; i < rows * channels; i++)
        v[i] = (int16_t)(most ? 1020 : (int)kernel_random(2041) - 1020);
    for (size_t i = 0; i < channels * COLS; i++)
        u[i] = (int16_t)(most ? -1152 : (int)kernel_random(2305) - 1152);
    kernel->product(v, rows, channels, u, m);
    for (size_t i = 0; i < rows * COLS; i++) {
        uint32_t sum = 0;
        for (size_t c = 0; c < channels; c++)
            sum += (uint32_t)(v[i / COLS * channels + c] * u[(c / 2 * COLS + i % COLS) * 2 + c % 2]);
        KERNEL_FAIL_UNLESS(m[i] == (int32_t)sum, "row %zu of %zu, column %zu", i / COLS, rows, i % COLS);
    }
}

static void check_winograd_output(const dq_winograd_s8 *kernel)
{
    static const int a[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
    size_t width = kernel_random(9), rows = 1 + kernel_random(2), tiles = (width + 1) / 2;
    size_t point = tiles * COLS + kernel_random(20), size = 15 * point + tiles * COLS;
    int32_t *m = kernel_bytes(size * sizeof *m), *init = kernel_bytes(COLS * sizeof *init);
    int32_t *y = kernel_bytes(rows * width * COLS * sizeof *y);
    for (size_t i = 0; i < size; i++)
        m[i] = (int32_t)((uint32_t)m[i] & ~3u); /* so that the sums are whole, as they always are */
    kernel->output(m, point, init, width, rows, y);
    for (size_t i = 0; i < tiles * COLS; i++) {
        int64_t t[POINTS], sums[4];
        for (size_t p = 0; p < POINTS; p++)
            t[p] = m[p * point + i];
        sandwich(a, 2, t, sums);
        for (size_t k = 0; k < rows; k++)
            for (size_t x = i / COLS * 2; x < width && x < i / COLS * 2 + 2; x++) {
                int32_t quarter = (int32_t)(uint32_t)sums[2 * k + x % 2] / 4;
                uint32_t expected = (uint32_t)init[i % COLS] + (uint32_t)quarter;
                KERNEL_FAIL_UNLESS((uint32_t)y[(k * width + x) * COLS + i % COLS] == expected,
                                   "row %zu, output %zu, column %zu", k, x, i % COLS);
            }
    }
}

void check_winograd_s8(const dq_kernels *k)
{
    for (int round = 0; round < 100; round++) {
        check_winograd_input(k->winograd_s8);
        check_winograd_product(k->winograd_s8);
        check_winograd_output(k->winograd_s8);
        kernel_done();
    }
}

/* ---- Transposes -------------------------------------------------------------------------------------- */

/* Both transposes, by bytes of an element; memory between the rows of dst must stay. */
static void check_transpose(const dq_kernels *k, size_t element)
{
    for (int round = 0; round < 400; round++) {
        size_t rows = kernel_random(70), cols = kernel_random(70);
        size_t from = cols + kernel_random(20), to = rows + kernel_random(20);
        if (round % 8 == 0) /* a row into a row */
            rows = to = 1;
        if (round % 8 == 1) /* few rows, without gaps */
            rows = to = 1 + kernel_random(20);
        if (round % 8 == 2) /* pixels of some channels, */
            cols = from = 1 + kernel_random(5);
        if (round % 8 == 3) /* and planes that become such */
            rows = to = 1 + kernel_random(5);
        uint8_t sign_xor = element == 1 && kernel_random(2) ? 0x80 : 0;
        size_t src_size = rows && cols ? ((rows - 1) * from + cols) * element : 0;
        size_t dst_size = rows && cols ? ((cols - 1) * to + rows) * element : 0;
        uint8_t *src = kernel_bytes(src_size), *dst = kernel_bytes(dst_size), *was = kernel_memory(dst_size);
        if (dst_size)
            memcpy(was, dst, dst_size);
        if (element == 1)
            k->transpose_x8(src, from, rows, cols, sign_xor, dst, to);
        else if (element == 2)
            k->transpose_x16((const uint16_t *)(void *)src, from, rows, cols, (uint16_t *)(void *)dst, to);
        else
            k->transpose_x32((const uint32_t *)(void *)src, from, rows, cols, (uint32_t *)(void *)dst, to);
        for (size_t i = 0; i < dst_size; i++) {
            size_t c = i / element / to, r = i / element % to;
            uint8_t expected = r < rows ? src[(r * from + c) * element + i % element] ^ sign_xor : was[i];
            KERNEL_FAIL_UNLESS(dst[i] == expected, "%zu x %zu, row %zu, column %zu", rows, cols, r, c);
        }
        kernel_done();
    }
}

void check_transpose_x8(const dq_kernels *k)
{
    check_transpose(k, 1);
}

void check_transpose_x16(const dq_kernels *k)
{
    check_transpose(k, 2);
}

void check_transpose_x32(const dq_kernels *k)
{
    check_transpose(k, 4);
}
