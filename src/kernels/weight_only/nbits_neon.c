/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products with NEON, by pairwise multiplication of bytes (nbits_pairs.h). */
#include "kernels/simd/vec_neon.h"

#define ISA(name) name##_neon
enum { WHOLE = 1, LOOKS_UP = 0 };

static inline void add_now(vi *sum, vi term)
{
    *sum = vi_add_16(*sum, term);
}

#include "kernels/weight_only/nbits_pairs.h"

#include "kernels/weight_only/nbits_body.h"
#include "kernels/weight_only/nbits_rounded_body.h"

typedef uint8x16x4_t lookup;
#define lookup_of(table) vld1q_u8_x4((const uint8_t *)(table))

/* Looks up the bytes of each float by their indices in the table's 64 bytes. */
ALWAYS_INLINE void look_up(const lookup *table, vi word, int each, vf *value)
{
    const vi mask = vi_set((1 << each) - 1);
#pragma GCC unroll 8
    for (int t = 0; t < 32 / each; t++) {
        const vi qvalues = vi_and(vi_right(word, t * each), mask);
        const vi indices = vi_add(vi_mul(qvalues, vi_set(0x04040404)), vi_set(0x03020100));
        value[t] = vreinterpretq_f32_u8(vqtbl4q_u8(*table, vreinterpretq_u8_s32(indices)));
    }
}

#include "kernels/weight_only/nbits_floats_body.h"

/* ---- Rounding to 8 bits -------------------------------------------------------------------------------- */

/* The largest magnitude over 127; n is a multiple of four. The bits of magnitudes order as they do, and those
 * of NaN are larger. */
static float factor_of(const float *x, size_t n)
{
    vi most = vi_set(0);
    for (size_t i = 0; i < n; i += VF_LANES)
        most = vmaxq_s32(most, vi_and(vf_bits(vf_load(x + i)), vi_set(INT32_MAX)));
    const int32_t bits = vmaxvq_s32(most);
    float factor;
    memcpy(&factor, &bits, sizeof factor);
    factor /= 127;
    return factor == 0 ? 1 : factor;
}

/* The digits of 16 values, in order. */
static int8x16_t round_sixteen(const float *x, vf factor)
{
    vi q[4];
    for (int i = 0; i < 4; i++) {
        const vf value = vf_div(vf_load(x + i * VF_LANES), factor);
        q[i] = vbslq_s32(vceqq_f32(value, value), vf_nearest(value), vi_set(INT8_MIN));
    }
    return vqmovn_high_s16(vqmovn_s16(vqmovn_high_s32(vqmovn_s32(q[0]), q[1])),
                           vqmovn_high_s32(vqmovn_s32(q[2]), q[3]));
}

/* Writes 16 digits in the order of a word's fields: even ones, then odd ones, of each word. */
static void put_digits(int8x16_t digits, unsigned bits, int8_t *out)
{
    static const uint8_t nibbles[16] = {0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15};
    static const uint8_t words[16] = {0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15};
    digits = vqtbl1q_s8(digits, vld1q_u8(bits == 4 ? nibbles : words));
    if (bits == 4) {
        vst1q_s8(out, digits);
        return;
    }
    vst1q_s8(out, vreinterpretq_s8_s16(vmovl_s8(vget_low_s8(digits))));
    vst1q_s8(out + 16, vreinterpretq_s8_s16(vmovl_high_s8(digits)));
}

bool dq_nbits_round_s8_neon(const dq_nbits_block *block)
{
    enum { PIECE = DQ_NBITS_PIECE };
    const size_t fields = 32 / block->bits, bytes = DQ_NBITS_ROUNDED_BYTES(block->bits);
    const float *x = block->x, factor = factor_of(x, fields * block->words);
    int8x16_t least = vdupq_n_s8(0);
    for (size_t left = fields * block->words, p = 0, n; left; left -= n, p += block->rows, x += n) {
        float padded[PIECE] = {0};
        n = left < PIECE ? left : PIECE;
        if (n < PIECE)
            memcpy(padded, x, n * sizeof *x);
        const float *from = n < PIECE ? padded : x;
        const int8x16_t first = round_sixteen(from, vf_set(factor)),
                        second = round_sixteen(from + 16, vf_set(factor));
        least = vminq_s8(least, vminq_s8(first, second));
        put_digits(first, block->bits, block->digits + bytes * p);
        put_digits(second, block->bits, block->digits + bytes * p + bytes / 2);
        block->factors[p] = factor;
        block->sums[p] = (float)(vaddlvq_s8(first) + vaddlvq_s8(second));
    }
    return vminvq_s8(least) != INT8_MIN;
}
