/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with usmmla, which multiplies two rows of eight uint8 by two columns of eight int8 and adds to a
 * 2 × 2 block of 32-bit sums, exact for all operands. The register tile is 8 rows by 8 columns: sixteen such
 * blocks. */
#include "kernels/gemm_s8/gemm_s8_pack.h"
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { MR = 8, NR = 8, GROUP = 8, PAIRS = NR / 2 };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_gemm_s8_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_gemm_s8_pack(b, first, NR, GROUP, panel, sums);
}

/* `pairs`, the pairs of rows, is constant in each call, so that the loops over them unroll and sums stay in
 * registers. If the number of rows is odd, the last row is computed twice. */
static inline __attribute__((always_inline)) void tile_rows(const dq_gemm_s8_a *a, size_t rows, int pairs,
                                                            const int8_t *b, const int32_t *init, int32_t *c,
                                                            size_t c_stride)
{
    int32x4_t acc[MR / 2][PAIRS];
    for (int j = 0; j < PAIRS; j++) {
        int32x2_t two = vld1_s32(init + 2 * j);
        for (int i = 0; i < pairs; i++)
            acc[i][j] = vcombine_s32(two, two);
    }
    for (size_t t = 0; t < a->runs; t++)
        for (size_t k = 0; k < a->run; k += GROUP, b += NR * GROUP) {
            uint8x16_t x[MR / 2];
            for (int i = 0; i < pairs; i++) {
                size_t second = 2 * (size_t)i + 1 < rows ? 2 * (size_t)i + 1 : rows - 1;
                x[i] = vcombine_u8(vld1_u8(a->rows[2 * i] + a->offsets[t] + k),
                                   vld1_u8(a->rows[second] + a->offsets[t] + k));
            }
            for (int j = 0; j < PAIRS; j++) {
                int8x16_t w = vld1q_s8(b + 16 * j);
                for (int i = 0; i < pairs; i++)
                    acc[i][j] = vusmmlaq_s32(acc[i][j], x[i], w);
            }
        }
    for (int i = 0; i < pairs; i++)
        for (int j = 0; j < PAIRS; j++) {
            int32_t *to = c + 2 * (size_t)i * c_stride + 2 * j;
            vst1_s32(to, vget_low_s32(acc[i][j]));
            if (2 * (size_t)i + 1 < rows)
                vst1_s32(to + c_stride, vget_high_s32(acc[i][j]));
        }
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    if (rows <= 2)
        tile_rows(a, rows, 1, panel, init, c, c_stride);
    else if (rows <= 4)
        tile_rows(a, rows, 2, panel, init, c, c_stride);
    else if (rows <= 6)
        tile_rows(a, rows, 3, panel, init, c, c_stride);
    else
        tile_rows(a, rows, 4, panel, init, c, c_stride);
}

const dq_gemm_s8 dq_gemm_s8_i8mm = {.mr = MR,
                                    .nr = NR,
                                    .a_signed = false,
                                    .panel_size = panel_size,
                                    .pack = pack,
                                    .tile = tile,
                                    .sums = dq_gemm_s8_sums_u8_neon};
