/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with sdot, which adds four int8 products to an int32. Quantized values of at most 4
 * bits are nonnegative as int8, too. */
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_dotprod
enum { WHOLE = 1 };

enum { VECTORS = 4 };
#define add_products(sum, qvalues, digits)                                                                   \
    (*(sum) = vdotq_s32(*(sum), vreinterpretq_s8_s32(qvalues), vreinterpretq_s8_s32(digits)))
#define dot_s16(sum, qvalues, digits) (*(sum) = vi_add(*(sum), vi_dot_16(qvalues, digits)))
#define in_32(sum, by) ((by) == 1 ? (sum) : vi_left(sum, 8))

#include "kernels/weight_only/nbits_body.h"

/* ---- Whole pieces of rounded rows: a vector holds sixteen digits, which sdot reads by lanes. ---------- */

/* 4 bits. Adds the products of a word of each column with lanes `lane` and `lane` + 1. */
#define MULTIPLY_WORD_4(lane)                                                                                \
    for (int v = 0; v < VECTORS; v++) {                                                                      \
        __asm__ volatile("" : "+r"(words)); /* opaque: no more words in registers */                         \
        const uint8x16_t word = vreinterpretq_u8_s32(vi_load(words + v * VF_LANES));                         \
        const int8x16_t low = vreinterpretq_s8_u8(vandq_u8(word, vdupq_n_u8(15)));                           \
        const int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(word, 4));                                     \
        for (int i = 0; i < rows; i++) {                                                                     \
            sum[v][i] = vdotq_laneq_s32(sum[v][i], low, x[i], lane);                                         \
            sum[v][i] = vdotq_laneq_s32(sum[v][i], high, x[i], (lane) + 1);                                  \
        }                                                                                                    \
    }                                                                                                        \
    words += COLS

ALWAYS_INLINE void whole_piece_4(const uint32_t *words, const int8_t *digits, int rows,
                                 vi sum[VECTORS][LINES])
{
    for (int half = 0; half < 2; half++) {
        int8x16_t x[LINES];
        for (int i = 0; i < rows; i++)
            x[i] = vld1q_s8(digits + (size_t)i * DQ_NBITS_ROUNDED_BYTES(4) + 16 * half);
        MULTIPLY_WORD_4(0);
        MULTIPLY_WORD_4(2);
    }
}

/* 8 bits: sdot multiplies (q - 128), and the sums begin at 128 times the sum of the digits. */
#define MULTIPLY_WORD_8(lane)                                                                                \
    for (int v = 0; v < VECTORS; v++) {                                                                      \
        __asm__ volatile("" : "+r"(words)); /* opaque: no more words in registers */                         \
        const uint8x16_t word = vreinterpretq_u8_s32(vi_load(words + v * VF_LANES));                         \
        const int8x16_t lowered = vreinterpretq_s8_u8(veorq_u8(word, vdupq_n_u8(0x80)));                     \
        for (int i = 0; i < rows; i++)                                                                       \
            sum[v][i] = vdotq_laneq_s32(sum[v][i], lowered, x[i], lane);                                     \
    }                                                                                                        \
    words += COLS

/* The digits of four words as bytes, in the order of the quantized values. */
static inline int8x16_t digits_of_words(const int8_t *digits)
{
    static const uint8_t order[16] = {0, 4, 2, 6, 8, 12, 10, 14, 16, 20, 18, 22, 24, 28, 26, 30};
    return vqtbl2q_s8(vld1q_s8_x2(digits), vld1q_u8(order));
}

ALWAYS_INLINE void whole_piece_8(const uint32_t *words, const int8_t *digits, int rows,
                                 vi sum[VECTORS][LINES])
{
    for (int half = 0; half < 2; half++) {
        int8x16_t x[LINES];
        for (int i = 0; i < rows; i++)
            x[i] = digits_of_words(digits + (size_t)i * DQ_NBITS_ROUNDED_BYTES(8) + 32 * half);
        MULTIPLY_WORD_8(0);
        MULTIPLY_WORD_8(1);
        MULTIPLY_WORD_8(2);
        MULTIPLY_WORD_8(3);
    }
}

ALWAYS_INLINE void whole_rounded_piece(int bits, const uint32_t *words, const dq_nbits_rounded *x, int rows,
                                       vi sum[VECTORS][LINES])
{
    for (int v = 0; v < VECTORS; v++)
        for (int i = 0; i < rows; i++)
            sum[v][i] = vi_set(bits == 8 ? 128 * (int32_t)x->sums[i] : 0);
    if (bits == 8)
        whole_piece_8(words, x->digits, rows, sum);
    else
        whole_piece_4(words, x->digits, rows, sum);
}

#define WHOLE_ROUNDED_PIECE whole_rounded_piece
#include "kernels/weight_only/nbits_rounded_body.h"
