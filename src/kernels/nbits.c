#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

enum { COLS = DQ_NBITS_COLS };

/* t of a piece of `count` words, whose codes are the `bits` bits from `shift` on in each field of a byte. */
static void piece(const uint32_t *words, size_t count, unsigned parts, unsigned bits, unsigned shift,
                  const int8_t *digits, float factor, float *t)
{
    int32_t high[COLS] = {0}, low[COLS] = {0};
    const uint32_t mask = (1u << bits) - 1;
    for (size_t n = 0; n < count; n++, words += COLS)
        for (unsigned part = 0; part < parts; part++, digits += 4 * DQ_NBITS_DIGITS)
            for (unsigned i = 0; i < 4; i++) {
                int32_t l = 256 * digits[4 + i] + digits[i], h = digits[8 + i];
                unsigned at = 8 * i + part * bits + shift;
                for (size_t j = 0; j < COLS; j++) {
                    int32_t code = (int32_t)(words[j] >> at & mask);
                    high[j] += code * h;
                    low[j] += code * l;
                }
            }
    for (size_t j = 0; j < COLS; j++)
        t[j] = fmaf((float)high[j], 65536 * factor, (float)low[j] * factor);
}

void dq_nbits_c(const dq_nbits *b, const dq_nbits_row *x, float *y)
{
    const uint32_t *words = b->words;
    const int8_t *digits = x->digits;
    const size_t most = DQ_NBITS_PIECE * b->bits / 32;
    const unsigned parts = 8 / b->bits;
    float t[COLS], upper[COLS];
    memset(y, 0, COLS * sizeof *y);
    for (size_t g = 0, p = 0; g < b->blocks; g++)
        for (size_t left = b->lengths[g], n; left; left -= n, p++) {
            n = left < most ? left : most;
            if (b->bits == 8) {
                piece(words, n, 1, 4, 0, digits, x->factors[p], t);
                piece(words, n, 1, 4, 4, digits, x->factors[p], upper);
            } else {
                piece(words, n, parts, b->bits, 0, digits, x->factors[p], t);
            }
            for (size_t j = 0; j < COLS; j++) {
                float zero = b->zeros ? b->zeros[g * COLS + j] : b->middle;
                float value = b->bits == 8 ? fmaf(16, upper[j], t[j]) : t[j];
                y[j] = fmaf(b->scales[g * COLS + j], fmaf(-zero, x->sums[p], value), y[j]);
            }
            words += n * COLS;
            digits += n * parts * 4 * DQ_NBITS_DIGITS;
        }
}

/* `bits` and `table` are constants in each call. */
static inline __attribute__((always_inline)) void as_floats(const dq_nbits *b, size_t block, size_t first,
                                                            size_t count, unsigned bits, const float *table,
                                                            float *out, size_t panel)
{
    enum { PANEL = DQ_FPANEL };
    const uint32_t mask = (1u << bits) - 1;
    for (size_t at = 0; at < COLS; at += PANEL, out += panel) {
        const uint32_t *words = b->words + first * COLS + at;
        const float *scale = b->scales + block * COLS + at;
        float zero[PANEL], *to = out;
        for (size_t j = 0; j < PANEL; j++)
            zero[j] = b->zeros ? b->zeros[block * COLS + at + j] : b->middle;
        for (size_t n = 0; n < count; n++, words += COLS)
            for (unsigned t = 0; t < 32; t += bits, to += PANEL)
                for (size_t j = 0; j < PANEL; j++) {
                    uint32_t code = words[j] >> t & mask;
                    to[j] = ((table ? table[code] : (float)(int32_t)code) - zero[j]) * scale[j];
                }
    }
}

void dq_nbits_floats_c(const dq_nbits *b, size_t block, size_t first, size_t count, float *out, size_t panel)
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
