/* SPDX-License-Identifier: Apache-2.0 */
/* Weight-only products of several rounded rows with smmla, which multiplies two rows of eight digits by two
 * columns of eight values. The lanes of its sums are those of two rows and two columns, row by row. A single
 * row is sdot's. */
#include "kernels/simd/vec_neon.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#include "kernels/weight_only/nbits_scales.h"

#include <string.h>

enum { COLS = DQ_NBITS_COLS, LINES = 4, PAIRS = LINES / 2, SCALES = 16, FACTORS = 8 };
#include "kernels/weight_only/nbits_unpacked_body.h"

static inline void put_values(int8x16_t first, int8x16_t second, int8_t *to)
{
    const int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    vst1q_s8(to, vreinterpretq_s8_s32(vzip1q_s32(a, b)));
    vst1q_s8(to + 16, vreinterpretq_s8_s32(vzip2q_s32(a, b)));
}

static inline void put_digits(const int8x16_t row[LINES], int8_t *to)
{
    for (size_t i = 0; i < LINES; i += 2) {
        const int64x2_t a = vreinterpretq_s64_s8(row[i]), b = vreinterpretq_s64_s8(row[i + 1]);
        vst1q_s8(to + 16 * (i / 2), vreinterpretq_s8_s64(vtrn1q_s64(a, b)));
        vst1q_s8(to + 16 * (i / 2 + PAIRS), vreinterpretq_s8_s64(vtrn2q_s64(a, b)));
    }
}

static inline void put_scales(vf scale, float *to)
{
    const float64x2_t pairs = vreinterpretq_f64_f32(scale);
    vf_store(to, vreinterpretq_f32_f64(vdupq_laneq_f64(pairs, 0)));
    vf_store(to + VF_LANES, vreinterpretq_f32_f64(vdupq_laneq_f64(pairs, 1)));
}

static inline void put_factors(vf factor, float *to)
{
    vf_store(to, vzip1q_f32(factor, factor));
    vf_store(to + VF_LANES, vzip2q_f32(factor, factor));
}

static void multiply_tile(const pieces *p, const row_digits *x, size_t tile, float *y)
{
    enum { COL_PAIRS = TILE_COLS / 2 };
    const int8_t *values = p->values[tile][0], *digits = x->digits[0];
    const float *scales = p->scales[tile][0], *factors = x->factors[0];
    vf result[PAIRS][COL_PAIRS];
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < COL_PAIRS; j++) {
            const float *at = y + 2 * i * COLS + 2 * j;
            result[i][j] = vcombine_f32(vld1_f32(at), vld1_f32(at + COLS));
        }
#pragma GCC unroll 1
    for (size_t k = 0; k < p->count; k++) {
        vi sum[PAIRS][COL_PAIRS];
        for (int i = 0; i < PAIRS; i++)
            for (int j = 0; j < COL_PAIRS; j++)
                sum[i][j] = vi_set(0);
#pragma GCC unroll 4
        for (int n = 0; n < STEPS; n++, values += 16 * COL_PAIRS, digits += 16 * PAIRS)
            for (int j = 0; j < COL_PAIRS; j++)
                for (int i = 0; i < PAIRS; i++)
                    sum[i][j] = vmmlaq_s32(sum[i][j], vld1q_s8(digits + 16 * i), vld1q_s8(values + 16 * j));
        for (int i = 0; i < PAIRS; i++)
            for (int j = 0; j < COL_PAIRS; j++) {
                const vf value = vf_mul(vi_to_float(sum[i][j]), vf_load(factors + i * VF_LANES));
                result[i][j] = vf_fma(vf_load(scales + j * VF_LANES), value, result[i][j]);
            }
        scales += SCALES;
        factors += FACTORS;
    }
    for (int i = 0; i < PAIRS; i++)
        for (int j = 0; j < COL_PAIRS; j++) {
            float *at = y + 2 * i * COLS + 2 * j;
            vst1_f32(at, vget_low_f32(result[i][j]));
            vst1_f32(at + COLS, vget_high_f32(result[i][j]));
        }
}

void dq_nbits_s8_i8mm(const dq_nbits *b, const dq_nbits_rounded *x, float *y)
{
    if (x->rows > 1 && has_int8_values(b))
        several_rows(b, x, y);
    else
        dq_nbits_s8_dotprod(b, x, y);
}
