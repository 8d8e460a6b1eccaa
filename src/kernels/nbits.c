#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

float dq_nbits_factor(const dq_nbits *b, size_t p)
{
    unsigned fields = 32 / b->bits, t = (unsigned)(p % fields);
    return b->table || t + 1 == fields ? 1.0f : 1.0f / (float)(1u << t * b->bits);
}

/* Field t of a word, in its place but for the last one. */
static float value(const dq_nbits *b, uint32_t word, unsigned t)
{
    uint32_t code = word >> t * b->bits & ((1u << b->bits) - 1);
    if (b->table)
        return b->table[code];
    return (float)((t + 1) * b->bits == 32 ? code : code << t * b->bits);
}

void dq_nbits_c(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y)
{
    enum { COLS = DQ_NBITS_COLS };
    unsigned fields = 32 / b->bits;
    for (size_t i = 0; i < rows; i++) {
        const uint32_t *words = b->words;
        const float *from = x + i;
        float *to = y + i * COLS;
        memset(to, 0, COLS * sizeof *to);
        for (size_t g = 0; g < b->blocks; g++) {
            float s[COLS] = {0};
            for (size_t n = 0; n < b->lengths[g]; n++, words += COLS)
                for (unsigned t = 0; t < fields; t++, from += rows)
                    for (size_t j = 0; j < COLS; j++)
                        s[j] = fmaf(value(b, words[j], t), *from, s[j]);
            for (size_t j = 0; j < COLS; j++) {
                float zero = b->zeros ? b->zeros[g * COLS + j] : b->middle;
                to[j] = fmaf(b->scales[g * COLS + j], fmaf(-zero, sums[g * rows + i], s[j]), to[j]);
            }
        }
    }
}
