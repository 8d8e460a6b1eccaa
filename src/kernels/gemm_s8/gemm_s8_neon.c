/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with smull, smlal and sadalp, which adds pairs of 16-bit lanes to 32-bit sums. The register tile
 * is 2 rows by 8 columns, with an accumulator of four partial sums for each element. A vector of a row holds
 * sixteen positions, and smlal adds the products of its two halves. These two fit in 16 bits unless both
 * weights are -128: panels with such a weight widen each product on its own. */
#include "kernels/gemm_s8/gemm_s8_arm.h"
#include "kernels/kernels.h"

enum { MR = 2, NR = 8, GROUP = DQ_ARM_STEP };
enum { WIDENS = NR /* index in the head, after the sums: 1 if some weight is -128 */ };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_arm_panel_size(runs, run, NR, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    const size_t used = dq_arm_pack(b, first, NR, GROUP, panel, sums);
    const int8_t *w = (const int8_t *)panel + DQ_ARM_HEAD, *end = (const int8_t *)panel + used;
    int8x16_t least = vdupq_n_s8(0);
    for (; w < end; w += 16)
        least = vminq_s8(least, vld1q_s8(w));
    ((int32_t *)panel)[WIDENS] = vminvq_s8(least) == INT8_MIN;
    return used;
}

static inline void load_two(const int8_t **b, int8x16_t w[2])
{
    __asm__ volatile("" : "+r"(*b)); /* opaque, so that no more vectors are loaded in advance */
    w[0] = vld1q_s8(*b);
    w[1] = vld1q_s8(*b + 16);
    *b += 32;
}

/* Adds the products of the rows with columns j and j + 1, in an order in which no instruction waits for the
 * one before it. */
static inline __attribute__((always_inline)) void
add_products(const int8x16_t x[MR], int rows, bool widens, const int8x16_t w[2], int j, int32x4_t (*acc)[NR])
{
    int16x8_t products[MR][2];
    for (int i = 0; i < rows; i++)
        for (int n = 0; n < 2; n++)
            products[i][n] = vmull_s8(vget_low_s8(x[i]), vget_low_s8(w[n]));
    for (int i = 0; i < rows && !widens; i++)
        for (int n = 0; n < 2; n++)
            products[i][n] = vmlal_high_s8(products[i][n], x[i], w[n]);
    for (int i = 0; i < rows; i++)
        for (int n = 0; n < 2; n++)
            acc[i][j + n] = vpadalq_s16(acc[i][j + n], products[i][n]);
    for (int i = 0; i < rows && widens; i++)
        for (int n = 0; n < 2; n++)
            acc[i][j + n] = vpadalq_s16(acc[i][j + n], vmull_high_s8(x[i], w[n]));
}

/* `rows` and `widens` are constant in each call, so that the loops unroll and sums stay in registers. Bytes
 * past the end of a segment are read (DQ_GEMM_S8_SLACK) and meet zero weights. */
static inline __attribute__((always_inline)) void tile_rows(const dq_gemm_s8_a *a, int rows, bool widens,
                                                            const int8_t *b, const int32_t *init, int32_t *c,
                                                            size_t c_stride)
{
    const int32_t *head = (const int32_t *)(const void *)b;
    const uint8x16_t sign = vdupq_n_u8(0x80);
    int32x4_t acc[MR][NR];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < NR; j++)
            acc[i][j] = vdupq_n_s32(0);
    b += DQ_ARM_HEAD;
    for (size_t t = 0; t < a->runs; t++) {
        const uint8_t *from[MR];
        for (int i = 0; i < rows; i++)
            from[i] = a->rows[i] + a->offsets[t];
        for (size_t k = 0; k < a->run; k += GROUP) {
            int8x16_t x[MR], w[NR / 2][2];
            for (int i = 0; i < rows; i++)
                x[i] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(from[i] + k), sign));
            load_two(&b, w[0]);
            for (int j = 0; j < NR; j += 2) {
                if (j + 2 < NR)
                    load_two(&b, w[j / 2 + 1]);
                add_products(x, rows, widens, w[j / 2], j, acc);
            }
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < NR; j += 4) {
            const int32x4_t *four = acc[i] + j;
            int32x4_t sums = vpaddq_s32(vpaddq_s32(four[0], four[1]), vpaddq_s32(four[2], four[3]));
            sums = vaddq_s32(sums, vaddq_s32(vld1q_s32(init + j), vld1q_s32(head + j)));
            vst1q_s32(c + (size_t)i * c_stride + j, sums);
        }
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    const bool widens = ((const int32_t *)panel)[WIDENS];
    if (rows == MR && widens)
        tile_rows(a, MR, true, panel, init, c, c_stride);
    else if (rows == MR)
        tile_rows(a, MR, false, panel, init, c, c_stride);
    else if (widens)
        tile_rows(a, 1, true, panel, init, c, c_stride);
    else
        tile_rows(a, 1, false, panel, init, c, c_stride);
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
