/* SPDX-License-Identifier: Apache-2.0 */
/* Integer products of 16-bit operands. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { ROWS = DQ_GEMM_S16_ROWS, COLS = DQ_GEMM_S16_COLS, NR = DQ_GEMM_S16_NR };

/* The ends of the range now and then, where sums of many are largest. */
static int16_t *some_qvalues(size_t n, int lo, int hi)
{
    int16_t *x = kernel_memory(n * sizeof *x);
    uint32_t kind = kernel_random(4);
    for (size_t i = 0; i < n; i++)
        x[i] = (int16_t)(kind == 0 ? lo : kind == 1 ? hi : lo + (int)kernel_random((uint32_t)(hi - lo + 1)));
    return x;
}

/* Octets overlap here and there, as those of a convolution do. */
void check_gemm_s16(const dq_kernels *k)
{
    enum { PLACES = 300 };
    for (int round = 0; round < 300; round++) {
        size_t pairs = kernel_random(3) ? kernel_random(20) : kernel_random(256),
               blocks = 1 + kernel_random(3);
        int16_t *a = some_qvalues(pairs * 2 * ROWS, -32768, 32767);
        int16_t *x = some_qvalues(PLACES + 3 * COLS, -32768, 32767);
        uint32_t *offsets = kernel_memory(pairs * sizeof *offsets);
        int32_t *c = kernel_memory(ROWS * COLS * sizeof *c);
        const int16_t *b[DQ_GEMM_S16_BLOCKS];
        for (size_t p = 0; p < pairs; p++)
            offsets[p] = kernel_random(PLACES);
        for (size_t o = 0; o < DQ_GEMM_S16_BLOCKS; o++)
            b[o] = x + kernel_random(2 * COLS);
        k->gemm_s16(a, pairs, b, offsets, blocks, c);
        for (size_t i = 0; i < ROWS * blocks * NR; i++) {
            size_t row = i % ROWS, col = i / ROWS;
            int64_t sum = 0;
            for (size_t p = 0; p < 2 * pairs; p++)
                sum +=
                    a[(p / 2 * ROWS + row) * 2 + p % 2] * b[col / NR][offsets[p / 2] + col % NR * 2 + p % 2];
            KERNEL_FAIL_UNLESS(c[row * COLS + col] == (int32_t)(uint32_t)sum,
                               "%zu pairs, row %zu, column %zu: %d, expected %lld", pairs, row, col,
                               c[row * COLS + col], (long long)(int32_t)(uint32_t)sum);
        }
        kernel_done();
    }
}

void check_gemv_s16s8(const dq_kernels *k)
{
    for (int round = 0; round < 300; round++) {
        size_t pairs = kernel_random(3) ? kernel_random(20) : kernel_random(256), each = pairs * 2 * NR;
        int16_t *x = some_qvalues(pairs * 2, -32768, 32767), *qvalues = some_qvalues(each, -128, 127);
        int8_t *z = kernel_memory(DQ_GEMM_S16_BLOCKS * each);
        const int8_t *b[DQ_GEMM_S16_BLOCKS];
        int32_t *c = kernel_memory(COLS * sizeof *c);
        for (size_t i = 0; i < DQ_GEMM_S16_BLOCKS * each; i++)
            z[i] = (int8_t)(i < each ? qvalues[i] : (int)kernel_random(256) - 128);
        for (size_t o = 0; o < DQ_GEMM_S16_BLOCKS; o++)
            b[o] = z + kernel_random(DQ_GEMM_S16_BLOCKS) * each;
        k->gemv_s16s8(x, pairs, b, c);
        for (size_t i = 0; i < COLS; i++) {
            int64_t sum = 0;
            for (size_t p = 0; p < 2 * pairs; p++)
                sum += x[p] * b[i / NR][p / 2 * 2 * NR + i % NR * 2 + p % 2];
            KERNEL_FAIL_UNLESS(c[i] == (int32_t)(uint32_t)sum, "%zu pairs, column %zu: %d, expected %lld",
                               pairs, i, c[i], (long long)(int32_t)(uint32_t)sum);
        }
        kernel_done();
    }
}

static int32_t sum_of_quads(const int8_t *w, size_t blocks, size_t row, const uint8_t *x,
                            const uint32_t *offsets, size_t quads, bool is_signed)
{
    int32_t sum = 0;
    for (size_t k = 0; k < quads * 4; k++) {
        uint8_t code = x[offsets[k / 4] + k % 4];
        sum += w[(row / 16 * blocks + k / 64) * DQ_GEMM_BYTESPLIT_WEIGHTS + row % 16 * 64 + k % 64] *
               (is_signed ? (int8_t)code : code);
    }
    return sum;
}

/* Columns packed from channels as they are in memory, times one panel of weights. */
static void check_split(const dq_gemm_bytesplit_s16s8 *kernel)
{
    enum { PANEL = DQ_GEMM_BYTESPLIT_ROWS, GEMM_COLS = DQ_GEMM_BYTESPLIT_COLS };
    const size_t channels = 1 + kernel_random(90), quads = (channels + 3) / 4, blocks = (quads + 15) / 16;
    const size_t n = 1 + kernel_random(GEMM_COLS), step = n + kernel_random(40);
    const uint16_t sign_xor = kernel_random(2) ? 0x8000 : 0;
    uint16_t *x = kernel_bytes(((channels - 1) * step + n) * sizeof *x);
    int8_t *w = kernel_memory(blocks * DQ_GEMM_BYTESPLIT_WEIGHTS);
    uint8_t *gathered = kernel_memory(blocks * DQ_GEMM_BYTESPLIT_CODES);
    int32_t *sums = kernel_memory(PANEL * sizeof *sums);
    int32_t *lower = kernel_memory(DQ_GEMM_BYTESPLIT_SUMS * sizeof *lower);
    int32_t *higher = kernel_memory(DQ_GEMM_BYTESPLIT_SUMS * sizeof *higher);
    memset(w, 0, blocks * DQ_GEMM_BYTESPLIT_WEIGHTS);
    for (size_t i = 0; i < PANEL; i++)
        for (size_t c = sums[i] = 0; c < channels; c++) {
            const int code = (int)kernel_random(256) - 128;
            w[c / 64 * DQ_GEMM_BYTESPLIT_WEIGHTS + i * 64 + c % 64] = (int8_t)code;
            sums[i] += code;
        }
    kernel->split(x, step, channels, n, sign_xor, gathered);
    if (kernel->begin)
        kernel->begin();
    kernel->tile(w, sums, PANEL, quads, gathered, lower, higher);
    if (kernel->done)
        kernel->done();
    for (size_t i = 0; i < PANEL * n; i++) {
        const size_t row = i / n, j = i % n, at = row * GEMM_COLS + j;
        int32_t low = 0, high = 0;
        for (size_t c = 0; c < channels; c++) {
            const int32_t weight = w[c / 64 * DQ_GEMM_BYTESPLIT_WEIGHTS + row * 64 + c % 64];
            const uint16_t qvalue = x[c * step + j] ^ sign_xor;
            low += weight * (qvalue & 255);
            high += weight * (int8_t)(qvalue >> 8);
        }
        KERNEL_FAIL_UNLESS(lower[at] == low && higher[at] == high,
                           "%zu channels, %zu columns, row %zu, column %zu: %d and %d, expected %d and %d",
                           channels, n, row, j, lower[at], higher[at], low, high);
    }
    kernel_done();
}

void check_gemm_bytesplit_s16s8(const dq_kernels *k)
{
    enum { PLACES = 300, GEMM_COLS = DQ_GEMM_BYTESPLIT_COLS };
    const dq_gemm_bytesplit_s16s8 *kernel = k->gemm_bytesplit_s16s8;
    for (int round = 0; round < 100; round++) {
        size_t quads = 1 + kernel_random(kernel_random(3) ? 20 : 100), blocks = (quads + 15) / 16;
        size_t panels = 1 + kernel_random(2), whole = panels * DQ_GEMM_BYTESPLIT_ROWS;
        size_t rows = whole - kernel_random(DQ_GEMM_BYTESPLIT_ROWS);
        size_t upper = kernel_random(PLACES), size = 2 * PLACES + 4 * GEMM_COLS;
        int8_t *w = kernel_memory(panels * blocks * DQ_GEMM_BYTESPLIT_WEIGHTS);
        uint8_t *x = kernel_memory(size), *gathered = kernel_memory(blocks * DQ_GEMM_BYTESPLIT_CODES);
        uint32_t *offsets = kernel_memory(quads * sizeof *offsets), extremes = kernel_random(3);
        int32_t *sums = kernel_memory(whole * sizeof *sums);
        int32_t *lower = kernel_memory(DQ_GEMM_BYTESPLIT_SUMS * sizeof *lower);
        int32_t *higher = kernel_memory(DQ_GEMM_BYTESPLIT_SUMS * sizeof *higher);
        const uint8_t *at[] = {x + kernel_random(GEMM_COLS), x + kernel_random(2 * GEMM_COLS)};
        memset(w, 0, panels * blocks * DQ_GEMM_BYTESPLIT_WEIGHTS);
        for (size_t i = 0; i < size; i++)
            x[i] = extremes == 1 ? 255 : extremes ? 128 : (uint8_t)kernel_random(256);
        for (size_t q = 0; q < quads; q++)
            offsets[q] = kernel_random(PLACES);
        for (size_t i = 0; i < rows; i++)
            for (size_t j = sums[i] = 0; j < 4 * quads; j++) {
                int code = extremes ? -128 : (int)kernel_random(256) - 128;
                w[(i / 16 * blocks + j / 64) * DQ_GEMM_BYTESPLIT_WEIGHTS + i % 16 * 64 + j % 64] =
                    (int8_t)code;
                sums[i] += code;
            }
        kernel->gather(at, offsets, quads, upper, gathered);
        if (kernel->begin)
            kernel->begin();
        kernel->tile(w, sums, rows, quads, gathered, lower, higher);
        if (kernel->done)
            kernel->done();
        for (size_t i = 0; i < rows * GEMM_COLS; i++) {
            const uint8_t *from = at[i % GEMM_COLS / 8] + i % 8 * 4;
            int32_t low = sum_of_quads(w, blocks, i / GEMM_COLS, from, offsets, quads, false);
            int32_t high = sum_of_quads(w, blocks, i / GEMM_COLS, from + upper, offsets, quads, true);
            KERNEL_FAIL_UNLESS(lower[i] == low && higher[i] == high,
                               "%zu quads, row %zu, column %zu: %d and %d, expected %d and %d", quads,
                               i / GEMM_COLS, i % GEMM_COLS, lower[i], higher[i], low, high);
        }
        kernel_done();
        check_split(kernel);
    }
}

/* Terms of so many multipliers, next to ties of `wanted` here and there; operators find them in the same way.
 */
static void some_terms(dq_q16_sums *s, size_t count, const int32_t *expected)
{
    const dq_factors f = kernel_requantize_to(expected, count).factors;
    double *offset = kernel_memory(count * sizeof *offset), *scale = kernel_memory(count * sizeof *scale),
           *shift = kernel_memory(count * sizeof *shift);
    float *c = kernel_memory(count * sizeof *c);
    const bool has_c = kernel_random(2), tiny = kernel_random(2);
    for (size_t t = 0; t < count; t++) {
        double y = (double)f.y[t], added;
        offset[t] = kernel_random(2) ? 0 : (double)kernel_random(100000) - 50000;
        if (has_c)
            c[t] =
                ldexpf((float)kernel_random(1 << 24) - 0x1p23f, (tiny ? -60 : -30) + (int)kernel_random(20));
        added = (double)c[t] / y;
        scale[t] = f.a * (double)f.b[t] / y;
        shift[t] = offset[t] * scale[t] + added;
        const double error = (fabs(offset[t] * scale[t]) + fabs(added) + 0x1p17) * 0x1p-49;
        if (!isfinite(scale[t]) || !isfinite(error))
            s->error = (double)INFINITY;
        else if (s->error < error)
            s->error = error;
    }
    s->factors = f;
    s->offset = offset;
    s->scale = scale;
    s->shift = shift;
    s->c = has_c ? c : NULL;
    s->c_step = 1;
}

static void check_value(const dq_q16_sums *s, size_t i, size_t j, uint16_t got)
{
    const size_t at = i * s->stride + j, t = i * s->row_step + j * s->col_step;
    const dq_factors *f = &s->factors;
    double total = s->sums[at] + (s->high ? 256.0 * s->high[at] : 0) + s->offset[t];
    total += s->extra ? s->extra[i * s->extra_stride + j] : 0;
    const float c = s->c ? s->c[t] : 0;
    int32_t v = kernel_quotient((int64_t)total, f->a, f->b[t], c, f->y[t]);
    v = v == INT32_MIN ? v : v + s->zero_point;
    v = v < s->lo ? s->lo : v > s->hi ? s->hi : v;
    KERNEL_FAIL_UNLESS(got == (uint16_t)v, "(%.0f * %a * %a + %a) / %a + %d, error %g: %u, expected %d",
                       total, f->a, (double)f->b[t], (double)c, (double)f->y[t], s->zero_point, s->error, got,
                       v);
}

static void check_wide(const dq_kernels *k, size_t n, size_t round)
{
    static const int32_t bounds[][2] = {{0, 255}, {-128, 127}, {0, 65535}, {-32768, 32767}};
    size_t rows = 1 + kernel_random(4), stride = n + kernel_random(9), size = (rows - 1) * stride + n;
    bool by_column = round % 2;
    const int32_t *bound = bounds[kernel_random(4)];
    dq_q16_sums s = {.rows = rows, .cols = n, .stride = stride, .lo = bound[0], .hi = bound[1]};
    s.extra_stride = kernel_random(3) ? n + kernel_random(9) : 0;
    s.out_stride = n + kernel_random(9);
    s.zero_point = bound[0] + (int32_t)kernel_random((uint32_t)(bound[1] - bound[0] + 1));
    s.row_step = by_column ? 0 : kernel_random(2);
    s.col_step = by_column;
    int32_t *sums = kernel_memory(size * sizeof *sums), *high = kernel_memory(size * sizeof *high);
    size_t extras = (rows - 1) * s.extra_stride + n, outs = (rows - 1) * s.out_stride + n;
    size_t terms = (rows - 1) * s.row_step + (n ? n - 1 : 0) * s.col_step + 1;
    double *extra = kernel_memory(extras * sizeof *extra);
    int32_t *expected = kernel_memory(terms * sizeof *expected);
    for (size_t t = 0; t < terms; t++)
        expected[t] = kernel_sum();
    some_terms(&s, terms, expected);
    for (size_t i = 0; i < size; i++) {
        const size_t t = i / stride * s.row_step + i % stride * s.col_step;
        const double tie = expected[t < terms ? t : 0] - s.offset[t < terms ? t : 0];
        sums[i] = kernel_random(2) && fabs(tie) < INT32_MAX ? (int32_t)tie : kernel_sum();
        high[i] = (int32_t)(kernel_random(9) ? kernel_random(1000) : kernel_random(UINT32_MAX));
    }
    for (size_t i = 0; i < extras; i++)
        extra[i] = ((double)kernel_random(200000) - 100000) * (kernel_random(9) ? 1 : 1e9);
    s.sums = sums;
    s.high = round % 8 < 2 ? high : NULL;
    s.narrow = s.high && kernel_random(2);
    for (size_t i = 0; i < size && s.narrow; i++) {
        high[i] %= INT32_MAX / 512;
        sums[i] /= 2;
    }
    s.extra = round % 8 < 4 && round % 4 > 1 ? extra : NULL;
    uint16_t *out = kernel_bytes(outs * sizeof *out), *before = kernel_memory(outs * sizeof *out);
    memcpy(before, out, outs * sizeof *out);
    k->requantize_s64(&s, out);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < s.out_stride && i * s.out_stride + j < outs; j++)
            if (j < n)
                check_value(&s, i, j, out[i * s.out_stride + j]);
            else
                KERNEL_FAIL_UNLESS(out[i * s.out_stride + j] == before[i * s.out_stride + j],
                                   "row %zu: wrote behind %zu columns", i, n);
    kernel_done();
}

void check_requantize_s64(const dq_kernels *k)
{
    enum { MANY = 40, ROUNDS = 4000 };
    size_t n;
    for (size_t round = 0; kernel_size(round / 16, &n); round++)
        check_wide(k, n, round);
    for (size_t round = 0; round < ROUNDS; round++)
        check_wide(k, MANY, round);
}
