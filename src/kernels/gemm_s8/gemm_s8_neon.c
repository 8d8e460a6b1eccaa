/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with smull of int8 pairs and sadalp, which adds the two products of a pair to a 32-bit sum:
 * neither can overflow. The register tile is 4 rows by 16 columns. The rows' bytes minus 128 are first
 * written to a buffer, CHUNK positions at a time. */
#include "kernels/gemm_s8/gemm_s8_arm.h"
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { MR = 4, NR = 16, LANES = 4, VECTORS = NR / LANES, GROUP = 2, CHUNK = 128, STEP = 16 };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_arm_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_arm_pack(b, first, NR, GROUP, panel, sums);
}

/* Writes x - 128 to out. Bytes past n are read (DQ_GEMM_S8_SLACK) and meet zero weights. */
static inline void lower(const uint8_t *x, size_t n, int8_t *out)
{
    for (size_t k = 0; k < n; k += STEP)
        vst1q_s8(out + k, vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x + k), vdupq_n_u8(0x80))));
}

static inline int8x16_t pair_everywhere(const int8_t *x)
{
    int16_t pair;
    memcpy(&pair, x, sizeof pair);
    return vreinterpretq_s8_s16(vdupq_n_s16(pair));
}

/* `rows` is constant in each call, so that the loops over rows unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile_rows(const dq_gemm_s8_a *a, int rows, const int8_t *b,
                                                            const int32_t *init, int32_t *c, size_t c_stride)
{
    int8_t lowered[MR][CHUNK];
    int32x4_t acc[MR][VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        int32x4_t head = vreinterpretq_s32_s8(vld1q_s8(b + v * LANES * 4));
        for (int i = 0; i < rows; i++)
            acc[i][v] = vaddq_s32(vld1q_s32(init + v * LANES), head);
    }
    b += DQ_ARM_HEAD;
    for (size_t t = 0; t < a->runs; t++)
        for (size_t k = 0; k < a->run; k += CHUNK) {
            size_t n = a->run - k < CHUNK ? a->run - k : CHUNK;
            for (int i = 0; i < rows; i++)
                lower(a->rows[i] + a->offsets[t] + k, n, lowered[i]);
            for (size_t g = 0; g < n; g += GROUP, b += NR * GROUP) {
                int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);
                for (int i = 0; i < rows; i++) {
                    int8x16_t x = pair_everywhere(lowered[i] + g);
                    acc[i][0] = vpadalq_s16(acc[i][0], vmull_s8(vget_low_s8(x), vget_low_s8(b0)));
                    acc[i][1] = vpadalq_s16(acc[i][1], vmull_high_s8(x, b0));
                    acc[i][2] = vpadalq_s16(acc[i][2], vmull_s8(vget_low_s8(x), vget_low_s8(b1)));
                    acc[i][3] = vpadalq_s16(acc[i][3], vmull_high_s8(x, b1));
                }
            }
        }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < VECTORS; v++)
            vst1q_s32(c + (size_t)i * c_stride + v * LANES, acc[i][v]);
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    if (rows == 1)
        tile_rows(a, 1, panel, init, c, c_stride);
    else if (rows == 2)
        tile_rows(a, 2, panel, init, c, c_stride);
    else if (rows == 3)
        tile_rows(a, 3, panel, init, c, c_stride);
    else
        tile_rows(a, MR, panel, init, c, c_stride);
}

void dq_gemm_s8_sums_u8_neon(const dq_gemm_s8_a *a, size_t rows, int32_t *out)
{
    for (size_t i = 0; i < rows; i++) {
        uint32x4_t sums = vdupq_n_u32(0);
        uint32_t rest = 0;
        for (size_t t = 0; t < a->runs; t++) {
            const uint8_t *x = a->rows[i] + a->offsets[t];
            size_t p = 0;
            for (; p + 16 <= a->run; p += 16)
                sums = vpadalq_u16(sums, vpaddlq_u8(vld1q_u8(x + p)));
            for (; p < a->run; p++)
                rest += x[p];
        }
        out[i] = (int32_t)(rest + vaddvq_u32(sums));
    }
}

const dq_gemm_s8 dq_gemm_s8_neon = {.mr = MR,
                                    .nr = NR,
                                    .a_signed = false,
                                    .panel_size = panel_size,
                                    .pack = pack,
                                    .tile = tile,
                                    .sums = dq_gemm_s8_sums_u8_neon};
