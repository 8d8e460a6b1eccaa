/* Products with weights of few bits. */
#include "kernel_check.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_NBITS_COLS };

static bool same_or_nan(float a, float b)
{
    return isnan(b) ? isnan(a) : memcmp(&a, &b, sizeof a) == 0;
}

/* A sum of finite numbers where `plain`, else of anything. */
static float *some_floats(size_t n, bool plain)
{
    float *x = kernel_floats(n);
    for (size_t i = 0; plain && i < n; i++)
        x[i] = ldexpf((float)kernel_random(1 << 24), -24) - 0.5f;
    return x;
}

static dq_nbits random_strip(int round, size_t *words)
{
    dq_nbits b = {.bits = 2u << kernel_random(3), .blocks = kernel_random(6), .middle = 2.5f};
    bool plain = round % 4 != 0;
    uint32_t *lengths = kernel_memory(b.blocks * sizeof *lengths);
    *words = 0;
    for (size_t g = 0; g < b.blocks; g++)
        *words += lengths[g] = kernel_random(6);
    b.lengths = lengths;
    b.words = kernel_bytes(*words * COLS * sizeof *b.words);
    b.scales = some_floats(b.blocks * COLS, plain);
    b.zeros = kernel_random(2) ? some_floats(b.blocks * COLS, plain) : NULL;
    if (b.bits == 4 && kernel_random(2)) {
        b.table = some_floats(16, plain);
        b.zeros = NULL;
    }
    return b;
}

/* The contract, for one sum. */
static float expected(const dq_nbits *b, const float *x, const float *sums, size_t rows, size_t i, size_t j)
{
    float y = 0;
    size_t w = 0, fields = 32 / b->bits;
    for (size_t g = 0; g < b->blocks; g++) {
        float s = 0;
        for (size_t end = w + b->lengths[g]; w < end; w++)
            for (size_t t = 0; t < fields; t++) {
                uint32_t in_place = b->words[w * COLS + j] & ((1u << b->bits) - 1) << t * b->bits;
                uint32_t code = in_place >> t * b->bits;
                float value = b->table ? b->table[code] : (float)(t + 1 == fields ? code : in_place);
                s = fmaf(value, x[(w * fields + t) * rows + i], s);
            }
        s = fmaf(b->zeros ? -b->zeros[g * COLS + j] : -b->middle, sums[g * rows + i], s);
        y = fmaf(b->scales[g * COLS + j], s, y);
    }
    return y;
}

void check_nbits(const dq_kernels *k)
{
    for (int round = 0; round < 200; round++) {
        size_t words, rows = 1 + kernel_random(DQ_NBITS_ROWS);
        dq_nbits b = random_strip(round, &words);
        float *x = some_floats(words * (32 / b.bits) * rows, round % 4 != 0);
        float *sums = some_floats(b.blocks * rows, round % 4 != 0);
        float *y = kernel_memory(rows * COLS * sizeof *y);
        k->nbits(&b, x, sums, rows, y);
        for (size_t i = 0; i < rows * COLS; i++) {
            float wanted = expected(&b, x, sums, rows, i / COLS, i % COLS);
            KERNEL_FAIL_UNLESS(same_or_nan(y[i], wanted),
                               "%u bits%s, %zu blocks, row %zu of %zu, column %zu: %.9g, wanted %.9g", b.bits,
                               b.table ? " by table" : "", b.blocks, i / COLS, rows, i % COLS, (double)y[i],
                               (double)wanted);
        }
        kernel_done();
    }
}
