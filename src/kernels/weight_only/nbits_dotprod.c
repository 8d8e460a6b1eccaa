/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with sdot, which adds four int8 products to an int32. Quantized values of at most 4
 * bits are nonnegative as int8, too. */
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_dotprod
enum { WHOLE = 1 };

enum { VECTORS = 4, SUMS_IN_16_BITS = 0 };
#define add_products(sum, qvalues, digits)                                                                   \
    (*(sum) = vdotq_s32(*(sum), vreinterpretq_s8_s32(qvalues), vreinterpretq_s8_s32(digits)))
#define dot_s16(sum, qvalues, digits) (*(sum) = vi_add(*(sum), vi_dot_16(qvalues, digits)))
#define in_32(sum, by) ((by) == 1 ? (sum) : vi_left(sum, 8))

#include "kernels/weight_only/nbits_body.h"

/* ---- Several rounded rows ------------------------------------------------------------------------------ */

/* sdot multiplies four values of four columns with a lane of digits. */

enum { SCALES = 8, FACTORS = 4 };
#include "kernels/weight_only/nbits_unpacked_body.h"

static inline void put_values(int8x16_t first, int8x16_t second, int8_t *to)
{
    vst1q_s8(to, first);
    vst1q_s8(to + 16, second);
}

static inline void put_digits(const int8x16_t row[LINES], int8_t *to)
{
    for (size_t i = 0; i < LINES; i++)
        vst1q_s8(to + 16 * i, row[i]);
}

static inline void put_scales(vf scale, float *to)
{
    vf_store(to, scale);
}

static inline void put_factors(vf factor, float *to)
{
    vf_store(to, factor);
}

/* Adds the products of four values, those of lane `lane` of the digits. */
#define MULTIPLY_LANE(lane, values)                                                                          \
    for (int v = 0; v < TILE_VECTORS; v++)                                                                   \
        for (int i = 0; i < LINES; i++)                                                                      \
    sum[v][i] = vdotq_laneq_s32(sum[v][i], (values)[2 * v + (lane) % 2], row[i], lane)

static void multiply_tile(const pieces *p, const row_digits *x, size_t tile, float *y)
{
    const int8_t *values = p->values[tile][0], *digits = x->digits[0];
    const float *scales = p->scales[tile][0], *factors = x->factors[0];
    vf result[TILE_VECTORS][LINES];
    for (int v = 0; v < TILE_VECTORS; v++)
        for (int i = 0; i < LINES; i++)
            result[v][i] = vf_load(y + i * COLS + v * VF_LANES);
#pragma GCC unroll 1
    for (size_t k = 0; k < p->count; k++) {
        vi sum[TILE_VECTORS][LINES];
        for (int v = 0; v < TILE_VECTORS; v++)
            for (int i = 0; i < LINES; i++)
                sum[v][i] = vi_set(0);
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++, digits += ROWS_BYTES / 2) {
            int8x16_t row[LINES];
            for (int i = 0; i < LINES; i++)
                row[i] = vld1q_s8(digits + 16 * i);
            for (int v = 0; v < TILE_VECTORS; v++)
                for (int i = 0; i < LINES; i++)
                    __asm__("" : "+w"(sum[v][i])); /* opaque, so that GCC copies fewer sums */
            for (int n = 0; n < STEPS / 2; n++, values += 32 * TILE_VECTORS) {
                int8x16_t w[2 * TILE_VECTORS];
                for (int i = 0; i < 2 * TILE_VECTORS; i++)
                    w[i] = vld1q_s8(values + 16 * i);
                if (n == 0) {
                    MULTIPLY_LANE(0, w);
                    MULTIPLY_LANE(1, w);
                } else {
                    MULTIPLY_LANE(2, w);
                    MULTIPLY_LANE(3, w);
                }
            }
        }
        const vf factor = vf_load(factors);
        for (int v = 0; v < TILE_VECTORS; v++) {
            const vf scale = vf_load(scales + v * VF_LANES);
            vf value[LINES];
            value[0] = vmulq_laneq_f32(vi_to_float(sum[v][0]), factor, 0);
            value[1] = vmulq_laneq_f32(vi_to_float(sum[v][1]), factor, 1);
            value[2] = vmulq_laneq_f32(vi_to_float(sum[v][2]), factor, 2);
            value[3] = vmulq_laneq_f32(vi_to_float(sum[v][3]), factor, 3);
            for (int i = 0; i < LINES; i++)
                result[v][i] = vf_fma(scale, value[i], result[v][i]);
        }
        scales += SCALES;
        factors += FACTORS;
    }
    for (int v = 0; v < TILE_VECTORS; v++)
        for (int i = 0; i < LINES; i++)
            vf_store(y + i * COLS + v * VF_LANES, result[v][i]);
}

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

#define SEVERAL_ROWS several_rows
#define WHOLE_ROUNDED_PIECE whole_rounded_piece
#include "kernels/weight_only/nbits_rounded_body.h"
