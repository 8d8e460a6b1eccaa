/* Sixteen columns of up to four rows at a time: sixteen sums in registers, which a block's codes are added to
 * before its scale is. */
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { COLS = DQ_NBITS_COLS, LANES = 4, VECTORS = 4, STEP = LANES * VECTORS };

/* Fields of four words where they stand, but for the last, which would not keep its sign. */
static inline float32x4_t values(uint32x4_t words, unsigned bits, unsigned t)
{
    uint32_t mask = (1u << bits) - 1;
    if ((t + 1) * bits == 32)
        return vcvtq_f32_u32(vshlq_u32(words, vdupq_n_s32(-(int32_t)(t * bits))));
    return vcvtq_f32_u32(vandq_u32(words, vdupq_n_u32(mask << t * bits)));
}

/* `rows` is constant in each call, so that sums stay in registers. */
static inline __attribute__((always_inline)) void columns(const dq_nbits *b, size_t first, const float *x,
                                                          const float *sums, size_t rows, float *y)
{
    unsigned bits = b->bits, fields = 32 / bits;
    const uint32_t *words = b->words + first;
    float32x4_t total[DQ_NBITS_ROWS][VECTORS];
    for (size_t i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            total[i][v] = vdupq_n_f32(0);
    for (size_t g = 0; g < b->blocks; g++) {
        float32x4_t s[DQ_NBITS_ROWS][VECTORS];
        for (size_t i = 0; i < rows; i++)
            for (int v = 0; v < VECTORS; v++)
                s[i][v] = vdupq_n_f32(0);
        for (size_t n = 0; n < b->lengths[g]; n++, words += COLS)
            for (unsigned t = 0; t < fields; t++, x += rows)
                for (int v = 0; v < VECTORS; v++) {
                    float32x4_t code = values(vld1q_u32(words + v * LANES), bits, t);
                    for (size_t i = 0; i < rows; i++)
                        s[i][v] = vfmaq_n_f32(s[i][v], code, x[i]);
                }
        for (int v = 0; v < VECTORS; v++) {
            size_t at = g * COLS + first + (size_t)v * LANES;
            float32x4_t zero = b->zeros ? vld1q_f32(b->zeros + at) : vdupq_n_f32(b->middle);
            float32x4_t scale = vld1q_f32(b->scales + at);
            for (size_t i = 0; i < rows; i++) {
                float32x4_t lifted = vfmsq_n_f32(s[i][v], zero, sums[g * rows + i]);
                total[i][v] = vfmaq_f32(total[i][v], scale, lifted);
            }
        }
    }
    for (size_t i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            vst1q_f32(y + i * COLS + first + (size_t)v * LANES, total[i][v]);
}

void dq_nbits_neon(const dq_nbits *b, const float *x, const float *sums, size_t rows, float *y)
{
    if (b->table) {
        dq_nbits_c(b, x, sums, rows, y);
        return;
    }
    for (size_t first = 0; first < COLS; first += STEP) {
        if (rows == 1)
            columns(b, first, x, sums, 1, y);
        else if (rows == 2)
            columns(b, first, x, sums, 2, y);
        else if (rows == 3)
            columns(b, first, x, sums, 3, y);
        else
            columns(b, first, x, sums, 4, y);
    }
}
