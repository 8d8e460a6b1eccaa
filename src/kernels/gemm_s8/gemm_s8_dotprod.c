/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with sdot, which adds four int8 products to a 32-bit sum, exact for all operands. The register
 * tile is 8 rows by 8 columns: sixteen accumulators. A vector of a row holds four groups of positions. */
#include "kernels/gemm_s8/gemm_s8_arm.h"
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { MR = 8, NR = 8, GROUP = 4, STEP = 16 };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_arm_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_arm_pack(b, first, NR, GROUP, panel, sums);
}

/* Loads sixteen bytes of a row and subtracts 128. Bytes past its end are read (DQ_GEMM_S8_SLACK), and are not
 * used or meet zero weights. */
static inline int8x16_t lowered(const uint8_t *x)
{
    return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), vdupq_n_u8(0x80)));
}

/* Multiplies one group of positions, lane `lane` of the rows' vectors; the lane must be a constant. */
#define STEP_OF(lane)                                                                                        \
    do {                                                                                                     \
        int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);                                                   \
        for (int i = 0; i < rows; i++) {                                                                     \
            acc[i][0] = vdotq_laneq_s32(acc[i][0], b0, x[i], lane);                                          \
            acc[i][1] = vdotq_laneq_s32(acc[i][1], b1, x[i], lane);                                          \
        }                                                                                                    \
        b += NR * GROUP;                                                                                     \
    } while (0)

/* `rows` is constant in each call, so that the loops over rows unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile_rows(const dq_gemm_s8_a *a, int rows, const int8_t *b,
                                                            const int32_t *init, int32_t *c, size_t c_stride)
{
    int32x4_t acc[MR][2];
    for (int v = 0; v < 2; v++) {
        int32x4_t head = vreinterpretq_s32_s8(vld1q_s8(b + v * 16));
        for (int i = 0; i < rows; i++)
            acc[i][v] = vaddq_s32(vld1q_s32(init + v * 4), head);
    }
    b += DQ_ARM_HEAD;
    for (size_t t = 0; t < a->runs; t++)
        for (size_t k = 0; k < a->run; k += STEP) {
            size_t left = a->run - k;
            int8x16_t x[MR];
            for (int i = 0; i < rows; i++)
                x[i] = lowered(a->rows[i] + a->offsets[t] + k);
            STEP_OF(0);
            if (left > 4)
                STEP_OF(1);
            if (left > 8)
                STEP_OF(2);
            if (left > 12)
                STEP_OF(3);
        }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < 2; v++)
            vst1q_s32(c + (size_t)i * c_stride + v * 4, acc[i][v]);
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    switch (rows) {
#define ROWS(n)                                                                                              \
    case n:                                                                                                  \
        tile_rows(a, n, panel, init, c, c_stride);                                                           \
        break;
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
        ROWS(7)
    default:
        tile_rows(a, MR, panel, init, c, c_stride);
    }
#undef ROWS
}

const dq_gemm_s8 dq_gemm_s8_dotprod = {.mr = MR,
                                       .nr = NR,
                                       .a_signed = false,
                                       .panel_size = panel_size,
                                       .pack = pack,
                                       .tile = tile,
                                       .sums = dq_gemm_s8_sums_u8_neon};
