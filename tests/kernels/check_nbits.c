/* SPDX-License-Identifier: Apache-2.0 */
/* Products with weights of few bits. */
#include "base/codec.h"
#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_NBITS_COLS, PANEL = 16 };

static bool same_or_nan(float a, float b)
{
    return isnan(b) ? isnan(a) : memcmp(&a, &b, sizeof a) == 0;
}

/* Of finite size where `plain`, else anything. */
static float *some_floats(size_t n, bool plain)
{
    float *x = kernel_floats(n);
    for (size_t i = 0; plain && i < n; i++)
        x[i] = ldexpf((float)kernel_random(1 << 24), -24) - 0.5f;
    return x;
}

/* Finite float16 values, subnormal ones among them. */
static const uint16_t *some_halves(size_t n)
{
    uint16_t *x = kernel_memory(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        x[i] = (uint16_t)kernel_random(1u << 16);
        x[i] = (x[i] & 0x7c00) == 0x7c00 ? x[i] & 0x83ff : x[i];
    }
    return x;
}

static dq_nbits random_strip(int round, size_t *words)
{
    dq_nbits b = {.bits = 2u << kernel_random(3), .blocks = round ? 1 + kernel_random(5) : 0, .middle = 2.5f};
    bool plain = round % 4 != 0;
    uint32_t *lengths = kernel_memory(b.blocks * sizeof *lengths);
    *words = 0;
    for (size_t g = 0; g < b.blocks; g++)
        *words += lengths[g] = kernel_random(12);
    b.lengths = lengths;
    b.words = kernel_bytes(*words * COLS * sizeof *b.words);
    if (kernel_random(2))
        b.scales = some_floats(b.blocks * COLS, plain);
    else
        b.scales_f16 = some_halves(b.blocks * COLS);
    float *zeros = some_floats(b.blocks * COLS, plain);
    b.fractions = kernel_random(2);
    for (size_t i = 0; i < b.blocks * COLS; i++)
        zeros[i] = b.fractions && plain ? zeros[i] * 40
                   : b.fractions        ? zeros[i]
                                        : (float)kernel_random(1u << b.bits);
    b.zeros = kernel_random(2) ? zeros : NULL;
    b.middle = b.fractions        ? 2.5f
               : kernel_random(2) ? 1
                                  : (float)(1 << (b.bits - 1)); /* also as most have it */
    return b;
}

static uint32_t code_at(const dq_nbits *b, size_t word, size_t t, size_t column)
{
    return b->words[word * COLS + column] >> t * b->bits & ((1u << b->bits) - 1);
}

static float scale_of(const dq_nbits *b, size_t block, size_t column)
{
    const size_t i = block * COLS + column;
    return b->scales ? b->scales[i] : dq_f16_to_f32(b->scales_f16[i]);
}

static float zero_of(const dq_nbits *b, size_t block, size_t column)
{
    return b->zeros ? b->zeros[block * COLS + column] : b->middle;
}

/* For code t of word n of a piece, the integer of a rounded row. */
static int32_t integer_of(const int8_t *digits, unsigned bits, size_t n, size_t t)
{
    size_t parts = bits == 8 ? 2 : 8 / bits;
    size_t at = (n * parts + t % parts) * 4 + t / parts * (bits == 8 ? 2 : 1);
    int16_t wide;
    memcpy(&wide, digits + at, bits == 8 ? sizeof wide : 0);
    return bits == 8 ? wide : digits[at];
}

static void put_integer(int8_t *digits, unsigned bits, size_t n, size_t t, int32_t x)
{
    size_t parts = bits == 8 ? 2 : 8 / bits, lines = bits == 8 ? 2 : DQ_NBITS_DIGITS;
    int32_t base = bits == 8 ? 2048 : 256;
    for (size_t e = 0; e < lines; e++) {
        size_t at = ((n * parts + t % parts) * lines + e) * 4 + t / parts * (bits == 8 ? 2 : 1);
        int32_t digit = ((x + base / 2) & (base - 1)) - base / 2;
        if (e == lines - 1)
            digit = x;
        int16_t wide = (int16_t)digit;
        if (bits == 8)
            memcpy(digits + at, &wide, sizeof wide);
        else
            digits[at] = (int8_t)digit;
        x = (x - digit) / base;
    }
}

/* A row of integers `at` which the kernel's digits stand for. */
static float expected_of(const dq_nbits *b, const dq_nbits_row *x, const int32_t *at, size_t column)
{
    size_t most = DQ_NBITS_PIECE * b->bits / 32, word = 0, p = 0, fields = 32 / b->bits;
    float y = 0;
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; p++) {
            float f = fabsf(x->factors[p]), zero = zero_of(b, g, column), top = (float)((1 << b->bits) - 1);
            float whole = isnan(zero) ? 0 : rintf(fminf(fmaxf(zero, 0), top));
            float scale = scale_of(b, g, column);
            int64_t sum = 0, total = 0;
            n = left < most ? left : most;
            for (size_t k = 0; k < n * fields; k++, at++) {
                sum += ((int64_t)code_at(b, word + k / fields, k % fields, column) - (int64_t)whole) * *at;
                total += *at;
            }
            y = fmaf(scale, f * (float)sum, y);
            if (b->fractions)
                y = fmaf(scale, (zero - whole) * -(f * (float)total), y);
            if (x->factors[p] < 0)
                continue;
            left -= n;
            word += n;
        }
    return y;
}

/* Sums of pieces of integers as large as may be, or of any size, which go to digits. */
static void fill_row(const dq_nbits *b, const float *factors, bool largest, int32_t *integers, int8_t *digits,
                     int32_t *sums)
{
    size_t most = DQ_NBITS_PIECE * b->bits / 32, fields = 32 / b->bits;
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; sums++, factors++) {
            n = left < most ? left : most;
            *sums = 0;
            for (size_t k = 0; k < n * fields; k++) {
                int32_t x = (int32_t)kernel_random(2 * DQ_NBITS_MAX + 1) - DQ_NBITS_MAX;
                *integers++ = x = largest ? x < 0 && kernel_random(9) == 0 ? DQ_NBITS_MAX : -DQ_NBITS_MAX : x;
                *sums += x;
                put_integer(digits, b->bits, k / fields, k % fields, x);
            }
            digits += n * fields * (b->bits == 8 ? 4 : DQ_NBITS_DIGITS);
            left -= *factors < 0 ? 0 : n;
        }
}

void check_nbits_s32(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t words;
        dq_nbits b = random_strip(round, &words);
        size_t qvalues = words * (32 / b.bits);
        bool plain = round % 4 != 0, largest = round % 8 == 1;
        if (largest) {
            memset((void *)(uintptr_t)b.words, round % 16 == 1 ? 0xff : 0, words * COLS * sizeof *b.words);
            b.middle = round % 16 == 1 ? 0 : (float)((1 << b.bits) - 1);
        }
        float *factors = some_floats(2 * words, plain);
        for (size_t i = 1; i < 2 * words; i += 2) /* no piece has more than two parts here */
            factors[i] = fabsf(factors[i]);
        int32_t *integers = kernel_memory(2 * qvalues * sizeof *integers);
        int32_t *sums = kernel_memory(2 * words * sizeof *sums);
        int8_t *digits = kernel_bytes(2 * qvalues * 4);
        fill_row(&b, factors, largest, integers, digits, sums);
        dq_nbits_row x = {digits, factors, sums};
        float *y = kernel_memory(COLS * sizeof *y);
        k->nbits_s32(&b, &x, y);
        for (size_t j = 0; j < COLS; j++) {
            float expected = expected_of(&b, &x, integers, j);
            KERNEL_FAIL_UNLESS(same_or_nan(y[j], expected),
                               "%u bits, %zu blocks, column %zu: %.9g, expected %.9g", b.bits, b.blocks, j,
                               (double)y[j], (double)expected);
        }
        kernel_done();
    }
}

void check_nbits_f32(const dq_kernels *k)
{
    for (int round = 1; round < 100; round++) {
        size_t words, fields;
        dq_nbits b = random_strip(round, &words);
        if (b.bits == 4 && kernel_random(2))
            b.table = some_floats(16, round % 4 != 0);
        fields = 32 / b.bits;
        size_t block = kernel_random((uint32_t)b.blocks), first = words / 3;
        size_t count = words - first, panel = (count * fields + kernel_random(3)) * PANEL;
        float *out = kernel_memory(COLS / PANEL * panel * sizeof *out);
        k->nbits_f32(&b, block, first, count, out, panel);
        for (size_t i = 0; i < count * fields * COLS; i++) {
            size_t column = i % COLS, step = i / COLS;
            uint32_t code = code_at(&b, first + step / fields, step % fields, column);
            float value = b.table ? b.table[code] : (float)code;
            float expected = (value - zero_of(&b, block, column)) * scale_of(&b, block, column);
            float found = out[column / PANEL * panel + step * PANEL + column % PANEL];
            KERNEL_FAIL_UNLESS(same_or_nan(found, expected),
                               "%u bits, step %zu, column %zu: %.9g, expected %.9g", b.bits, step, column,
                               (double)found, (double)expected);
        }
        kernel_done();
    }
}

static float expected_rounded(const dq_nbits *b, const dq_nbits_rounded *x, size_t row, size_t column)
{
    size_t most = DQ_NBITS_PIECE * b->bits / 32, word = 0, p = 0, fields = 32 / b->bits;
    float y = 0;
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; left -= n, p += x->rows) {
            int64_t sum = 0;
            for (n = 0; n < left && n < most; n++, word++)
                for (size_t t = 0; t < fields; t++)
                    sum += (int64_t)code_at(b, word, t, column) *
                           integer_of(x->digits + (p + row) * DQ_NBITS_ROUNDED_BYTES(b->bits), b->bits, n, t);
            float value = fmaf(-zero_of(b, g, column), x->sums[p + row], (float)sum) * x->factors[p + row];
            y = fmaf(scale_of(b, g, column), value, y);
        }
    return y;
}

void check_nbits_s8(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t words;
        dq_nbits b = random_strip(round, &words);
        while (b.bits == 2)
            b = random_strip(round, &words);
        const size_t rows = round % 3 == 1 ? 1 : 4 * (1 + kernel_random(DQ_NBITS_ROWS / 4));
        const size_t most = DQ_NBITS_PIECE_WORDS(b.bits), each = DQ_NBITS_ROUNDED_BYTES(b.bits);
        size_t pieces = 0;
        for (size_t g = 0; g < b.blocks; g++)
            pieces += (b.lengths[g] + most - 1) / most;
        const size_t bytes = pieces * each * rows;
        int8_t *digits = kernel_bytes(bytes), *behind = digits;
        bool largest = round % 8 < 2;
        if (largest)
            memset((void *)(uintptr_t)b.words, 0xff, words * COLS * sizeof *b.words);
        for (size_t i = 0; i < bytes; i += b.bits == 8 ? 2 : 1) {
            if (largest)
                digits[i] = -128;
            if (b.bits == 8) { /* of 16 bits */
                int16_t wide = digits[i];
                memcpy(digits + i, &wide, sizeof wide);
            }
        }
        for (size_t g = 0; g < b.blocks; g++)
            for (size_t left = b.lengths[g], n; left; left -= n) {
                n = left < most ? left : most;
                for (size_t i = 0; i < rows; i++, behind += each)
                    memset(behind + each / most * n, 0, each - each / most * n);
            }
        bool plain = round % 4 != 0;
        float *factors = some_floats(pieces * rows, plain),
              *sums = kernel_memory(pieces * rows * sizeof *sums);
        int32_t *starts = kernel_memory(pieces * rows * sizeof *starts);
        for (size_t i = 0; i < pieces * rows; i++) {
            sums[i] = 0;
            for (size_t t = 0; t < DQ_NBITS_PIECE; t++)
                sums[i] += (float)integer_of(digits + i * each, b.bits, t * b.bits / 32, t % (32 / b.bits));
            starts[i] = -(int32_t)b.middle * (int32_t)sums[i];
        }
        const bool has_one_zero = !b.zeros && !b.fractions;
        dq_nbits_rounded x = {rows, digits, factors, sums, has_one_zero ? starts : NULL};
        float *y = kernel_memory(rows * COLS * sizeof *y);
        k->nbits_s8(&b, &x, y);
        for (size_t i = 0; i < rows * COLS; i++) {
            float expected = expected_rounded(&b, &x, i / COLS, i % COLS);
            KERNEL_FAIL_UNLESS(same_or_nan(y[i], expected),
                               "%u bits, %zu blocks, row %zu, column %zu: %.9g, expected %.9g", b.bits,
                               b.blocks, i / COLS, i % COLS, (double)y[i], (double)expected);
        }
        kernel_done();
    }
}

/* Values of usual sizes, some that differ much, and in some rounds an infinity, a NaN or values so small that
 * their factor is not exact. */
static float *some_block(int round, size_t n)
{
    float *x = some_floats(n, true);
    static const float special[] = {INFINITY, -INFINITY, NAN, 0};
    for (size_t i = 0; round % 5 == 1 && i < n; i++)
        x[i] *= i % 3 ? 1e-4f : 0x1p-140f;
    for (size_t i = 0; round % 5 == 2 && i < n; i++)
        x[i] = (float)((int)kernel_random(255) - 127) * (round % 2 ? 0.5f : 0x1p-149f);
    for (size_t i = 0; round % 5 == 3 && i < n; i++)
        x[i] = 0;
    if (round % 5 == 4)
        x[kernel_random((uint32_t)n)] = special[kernel_random(4)];
    return x;
}

void check_nbits_round_s8(const dq_kernels *k)
{
    for (int round = 0; round < 2000; round++) {
        const unsigned bits = round % 2 ? 8 : 4;
        const size_t most = DQ_NBITS_PIECE_WORDS(bits), each = DQ_NBITS_ROUNDED_BYTES(bits);
        const size_t words = 1 + kernel_random(4 * (uint32_t)most), pieces = (words + most - 1) / most;
        const size_t rows = round % 3 == 1 ? 1 : 4, lines = (pieces - 1) * rows + 1;
        const float *x = some_block(round / 2, words * 32 / bits);
        dq_nbits_block blocks[2];
        bool good[2];
        for (int i = 0; i < 2; i++) {
            blocks[i] = (dq_nbits_block){.x = x, .words = words, .rows = rows, .bits = bits};
            blocks[i].digits = kernel_memory(lines * each);
            blocks[i].factors = kernel_memory(lines * sizeof(float));
            blocks[i].sums = kernel_memory(lines * sizeof(float));
            good[i] = i == 0 ? dq_nbits_round_s8_c(&blocks[i]) : k->nbits_round_s8(&blocks[i]);
        }
        KERNEL_FAIL_UNLESS(good[0] == good[1], "%u bits, %zu words: %d, expected %d", bits, words, good[1],
                           good[0]);
        for (size_t p = 0; good[0] && p < lines; p += rows) {
            KERNEL_FAIL_UNLESS(memcmp(blocks[0].digits + p * each, blocks[1].digits + p * each, each) == 0,
                               "%u bits, %zu words: digits of piece %zu", bits, words, p / rows);
            KERNEL_FAIL_UNLESS(blocks[0].factors[p] == blocks[1].factors[p] &&
                                   blocks[0].sums[p] == blocks[1].sums[p],
                               "%u bits, %zu words, piece %zu: factor %.9g, sum %.9g, expected %.9g, %.9g",
                               bits, words, p / rows, (double)blocks[1].factors[p], (double)blocks[1].sums[p],
                               (double)blocks[0].factors[p], (double)blocks[0].sums[p]);
        }
        kernel_done();
    }
}
