/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products in portable C. */
#include "base/codec.h"
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_NBITS_COLS };

/* Computes the sums of a piece of `count` words with each of some lines of digits. Lines are `line_stride`
 * bytes from each other; if that is 4, the lines of each part of a word are contiguous. */
static void piece(const uint32_t *words, size_t count, unsigned bits, const int8_t *digits, size_t lines,
                  size_t line_stride, int32_t sums[][COLS])
{
    const unsigned parts = DQ_NBITS_PARTS(bits), size = bits == 8 ? 2 : 1;
    const uint32_t mask = (1u << bits) - 1;
    memset(sums, 0, lines * sizeof *sums);
    for (size_t n = 0; n < count; n++, words += COLS)
        for (unsigned part = 0; part < parts; part++, digits += line_stride == 4 ? 4 * lines : 4)
            for (size_t e = 0; e < lines; e++)
                for (unsigned i = 0; i < 4; i += size) {
                    int16_t bits_16 = 0;
                    memcpy(&bits_16, digits + e * line_stride + i, size == 2 ? sizeof bits_16 : 0);
                    int32_t digit = size == 2 ? bits_16 : digits[e * line_stride + i];
                    for (size_t j = 0; j < COLS; j++)
                        sums[e][j] += (int32_t)(words[j] >> (8 * i + part * bits) & mask) * digit;
                }
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

static float whole_of(const dq_nbits *b, float zero)
{
    const float top = (float)((1 << b->bits) - 1);
    return zero > 0 ? zero < top ? rintf(zero) : top : 0;
}

void dq_nbits_s32_c(const dq_nbits *b, const dq_nbits_row *x, float *y)
{
    const uint32_t *words = b->words;
    const int8_t *digits = x->digits;
    const size_t most = DQ_NBITS_PIECE_WORDS(b->bits), lines = b->bits == 8 ? 2 : DQ_NBITS_DIGITS;
    int32_t sums[DQ_NBITS_DIGITS][COLS];
    memset(y, 0, COLS * sizeof *y);
    for (size_t g = 0, p = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; p++) {
            const float f = fabsf(x->factors[p]);
            n = left < most ? left : most;
            piece(words, n, b->bits, digits, lines, 4, sums);
            for (size_t j = 0; j < COLS; j++) {
                float zero = zero_of(b, g, j), whole = whole_of(b, zero), scale = scale_of(b, g, j);
                int64_t all = sums[0][j] + (int64_t)sums[1][j] * (lines == 2 ? 2048 : 256) +
                              (lines == 2 ? 0 : (int64_t)sums[2][j] * 65536);
                y[j] = fmaf(scale, f * (float)(all - (int64_t)whole * x->sums[p]), y[j]);
                if (b->fractions)
                    y[j] = fmaf(scale, (zero - whole) * -(f * (float)x->sums[p]), y[j]);
            }
            digits += n * DQ_NBITS_DIGIT_BYTES(b->bits);
            if (x->factors[p] < 0)
                continue;
            words += n * COLS;
            left -= n;
        }
}

void dq_nbits_s8_c(const dq_nbits *b, const dq_nbits_rounded *x, float *y)
{
    const uint32_t *words = b->words;
    const int8_t *digits = x->digits;
    const size_t most = DQ_NBITS_PIECE_WORDS(b->bits), bytes = DQ_NBITS_ROUNDED_BYTES(b->bits);
    int32_t sums[DQ_NBITS_ROWS][COLS];
    memset(y, 0, x->rows * COLS * sizeof *y);
    for (size_t g = 0, p = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; left -= n, p += x->rows) {
            n = left < most ? left : most;
            piece(words, n, b->bits, digits, x->rows, bytes, sums);
            for (size_t i = 0; i < x->rows; i++)
                for (size_t j = 0; j < COLS; j++) {
                    float value = fmaf(-zero_of(b, g, j), x->sums[p + i], (float)sums[i][j]);
                    y[i * COLS + j] = fmaf(scale_of(b, g, j), value * x->factors[p + i], y[i * COLS + j]);
                }
            digits += bytes * x->rows;
            words += n * COLS;
        }
}

/* The largest magnitude over 127. The bits of magnitudes order as they do, and those of NaN are larger. */
static float factor_of(const float *x, size_t n)
{
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    float factor;
    memcpy(&factor, &most, sizeof factor);
    factor /= 127;
    return factor == 0 ? 1 : factor;
}

/* Writes digits in the order of the weights in a word. For 4-bit weights, two in a byte: the digits of the
 * low halves of a word's bytes, then of the high halves. For 8-bit weights: int16 digits of the even bytes,
 * then of the odd ones. */
static void put_rounded(const int8_t *q, size_t words, unsigned bits, int8_t *out)
{
    for (; words > 0; words--, q += 32 / bits)
        for (size_t t = 0; t < 2; t++, out += 4)
            if (bits == 8) {
                const int16_t wide[2] = {q[t], q[t + 2]};
                memcpy(out, wide, sizeof wide);
            } else {
                for (size_t i = 0; i < 4; i++)
                    out[i] = q[t + 2 * i];
            }
}

bool dq_nbits_round_s8_c(const dq_nbits_block *block)
{
    const size_t fields = 32 / block->bits, bytes = DQ_NBITS_ROUNDED_BYTES(block->bits);
    const float *x = block->x, factor = factor_of(x, fields * block->words);
    bool all = true;
    for (size_t left = block->words, p = 0, n; left; left -= n, p += block->rows, x += fields * n) {
        int8_t q[DQ_NBITS_PIECE], *digits = block->digits + bytes * p;
        int32_t sum = 0;
        n = left < DQ_NBITS_PIECE_WORDS(block->bits) ? left : DQ_NBITS_PIECE_WORDS(block->bits);
        dq_quantize_f32_s8_c(x, fields * n, &factor, NULL, 0, q);
        for (size_t i = 0; i < fields * n; i++) {
            sum += q[i];
            all &= q[i] != INT8_MIN;
        }
        memset(digits, 0, bytes);
        put_rounded(q, n, block->bits, digits);
        block->factors[p] = factor;
        block->sums[p] = (float)sum;
    }
    return all;
}

/* `bits` and `table` are constants in each call. */
static inline __attribute__((always_inline)) void as_floats(const dq_nbits *b, size_t block, size_t first,
                                                            size_t count, unsigned bits, const float *table,
                                                            float *out, size_t panel)
{
    enum { PANEL = DQ_GEMM_F32_NR };
    const uint32_t mask = (1u << bits) - 1;
    for (size_t at = 0; at < COLS; at += PANEL, out += panel) {
        const uint32_t *words = b->words + first * COLS + at;
        float scale[PANEL], zero[PANEL], *to = out;
        for (size_t j = 0; j < PANEL; j++) {
            scale[j] = scale_of(b, block, at + j);
            zero[j] = zero_of(b, block, at + j);
        }
        for (size_t n = 0; n < count; n++, words += COLS)
            for (unsigned t = 0; t < 32; t += bits, to += PANEL)
                for (size_t j = 0; j < PANEL; j++) {
                    uint32_t qvalue = words[j] >> t & mask;
                    to[j] = ((table ? table[qvalue] : (float)(int32_t)qvalue) - zero[j]) * scale[j];
                }
    }
}

void dq_nbits_f32_c(const dq_nbits *b, size_t block, size_t first, size_t count, float *out, size_t panel)
{
    if (b->table)
        as_floats(b, block, first, count, 4, b->table, out, panel);
    else if (b->bits == 4)
        as_floats(b, block, first, count, 4, NULL, out, panel);
    else if (b->bits == 8)
        as_floats(b, block, first, count, 8, NULL, out, panel);
    else
        as_floats(b, block, first, count, 2, NULL, out, panel);
}
