/* Products with weights of few bits. */
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
    b.scales = some_floats(b.blocks * COLS, plain);
    b.zeros = kernel_random(2) ? some_floats(b.blocks * COLS, plain) : NULL;
    return b;
}

static uint32_t code_at(const dq_nbits *b, size_t word, size_t t, size_t column)
{
    return b->words[word * COLS + column] >> t * b->bits & ((1u << b->bits) - 1);
}

static float zero_of(const dq_nbits *b, size_t block, size_t column)
{
    return b->zeros ? b->zeros[block * COLS + column] : b->middle;
}

/* The contract's De of `count` words. */
static float expected_sum(const dq_nbits *b, const int8_t *digits, size_t e, size_t word, size_t count,
                          size_t column)
{
    size_t in_byte = 8 / b->bits, fields = 32 / b->bits;
    int64_t sum = 0;
    for (size_t n = 0; n < count; n++)
        for (size_t t = 0; t < fields; t++) {
            size_t at = ((n * in_byte + t % in_byte) * DQ_NBITS_DIGITS + e) * 4 + t / in_byte;
            sum += (int64_t)code_at(b, word + n, t, column) * digits[at];
        }
    return (float)sum;
}

static float expected(const dq_nbits *b, const dq_nbits_row *x, size_t column)
{
    size_t most = DQ_NBITS_PIECE * b->bits / 32, word = 0, p = 0;
    const int8_t *digits = x->digits;
    float y = 0;
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; p++) {
            float f = fabsf(x->factors[p]), t[DQ_NBITS_DIGITS];
            n = left < most ? left : most;
            for (size_t e = 0; e < DQ_NBITS_DIGITS; e++)
                t[e] = fmaf(-zero_of(b, g, column), x->sums[p * DQ_NBITS_DIGITS + e],
                            expected_sum(b, digits, e, word, n, column));
            float value = fmaf(t[2], 65536 * f, fmaf(t[1], 256 * f, t[0] * f));
            y = fmaf(b->scales[g * COLS + column], value, y);
            digits += n * (8 / b->bits) * 4 * DQ_NBITS_DIGITS;
            if (x->factors[p] < 0)
                continue;
            left -= n;
            word += n;
        }
    return y;
}

void check_nbits(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t words;
        dq_nbits b = random_strip(round, &words);
        size_t codes = words * (32 / b.bits);
        int8_t *digits = kernel_bytes(2 * codes * DQ_NBITS_DIGITS);
        if (round % 8 == 1) /* the largest sums */
            memset(digits, -128, 2 * codes * DQ_NBITS_DIGITS);
        bool plain = round % 4 != 0;
        float *factors = some_floats(2 * words, plain);
        for (size_t i = 1; i < 2 * words; i += 2) /* no piece has more than two parts here */
            factors[i] = fabsf(factors[i]);
        float *sums = some_floats(2 * words * DQ_NBITS_DIGITS, plain);
        dq_nbits_row x = {digits, factors, sums};
        float *y = kernel_memory(COLS * sizeof *y);
        k->nbits(&b, &x, y);
        for (size_t j = 0; j < COLS; j++) {
            float wanted = expected(&b, &x, j);
            KERNEL_FAIL_UNLESS(same_or_nan(y[j], wanted),
                               "%u bits, %zu blocks, column %zu: %.9g, wanted %.9g", b.bits, b.blocks, j,
                               (double)y[j], (double)wanted);
        }
        kernel_done();
    }
}

void check_nbits_floats(const dq_kernels *k)
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
        k->nbits_floats(&b, block, first, count, out, panel);
        for (size_t i = 0; i < count * fields * COLS; i++) {
            size_t column = i % COLS, step = i / COLS;
            uint32_t code = code_at(&b, first + step / fields, step % fields, column);
            float value = b.table ? b.table[code] : (float)code;
            float wanted = (value - zero_of(&b, block, column)) * b.scales[block * COLS + column];
            float found = out[column / PANEL * panel + step * PANEL + column % PANEL];
            KERNEL_FAIL_UNLESS(same_or_nan(found, wanted), "%u bits, step %zu, column %zu: %.9g, wanted %.9g",
                               b.bits, step, column, (double)found, (double)wanted);
        }
        kernel_done();
    }
}

static float expected_rounded(const dq_nbits *b, const dq_nbits_rounded *x, size_t row, size_t column)
{
    size_t most = DQ_NBITS_PIECE / 8, word = 0, p = 0;
    float y = 0;
    for (size_t g = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; left -= n, p += x->rows) {
            int64_t sum = 0;
            for (n = 0; n < left && n < most; n++, word++)
                for (size_t t = 0; t < 8; t++) {
                    size_t at = ((word * 2 + t % 2) * x->rows + row) * 4 + t / 2;
                    sum += (int64_t)code_at(b, word, t, column) * x->digits[at];
                }
            float value = fmaf(-zero_of(b, g, column), x->sums[p + row], (float)sum) * x->factors[p + row];
            y = fmaf(b->scales[g * COLS + column], value, y);
        }
    return y;
}

void check_nbits_rounded(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t words;
        dq_nbits b = random_strip(round, &words);
        b.bits = 4;
        const size_t rows = round % 2 ? 1 : DQ_NBITS_ROWS, codes = words * 8;
        int8_t *digits = kernel_bytes(codes * rows);
        if (round % 8 < 2) { /* the largest sums */
            memset(digits, -128, codes * rows);
            memset((void *)(uintptr_t)b.words, 0xff, words * COLS * sizeof *b.words);
        }
        bool plain = round % 4 != 0;
        float *factors = some_floats(words * rows, plain), *sums = some_floats(words * rows, plain);
        dq_nbits_rounded x = {rows, digits, factors, sums};
        float *y = kernel_memory(rows * COLS * sizeof *y);
        k->nbits_rounded(&b, &x, y);
        for (size_t i = 0; i < rows * COLS; i++) {
            float wanted = expected_rounded(&b, &x, i / COLS, i % COLS);
            KERNEL_FAIL_UNLESS(same_or_nan(y[i], wanted),
                               "%zu blocks, row %zu, column %zu: %.9g, wanted %.9g", b.blocks, i / COLS,
                               i % COLS, (double)y[i], (double)wanted);
        }
        kernel_done();
    }
}
