/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with usmmla, which multiplies two rows of eight uint8 by two columns of eight int8 and adds to a
 * 2 × 2 block of 32-bit sums, exact for all operands. The register tile is 8 rows by 8 columns: sixteen such
 * blocks. Rows are packed in strips of eight: for each group of eight positions, a vector for each pair of
 * rows. Fewer than four rows are not worth packing. */
#include "kernels/gemm_s8/gemm_s8_arm.h"
#include "kernels/kernels.h"

enum { NR = 8, GROUP = 8, PAIRS = NR / 2, FEW = 3 /* rows that are not packed */ };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_gemm_s8_panel_size(runs, run, NR, GROUP);
}

static size_t packed_a_size(const dq_gemm_s8_b *b, size_t rows)
{
    return dq_arm_packed_a_size(b, rows, GROUP);
}

static size_t pack(const dq_gemm_s8_b *b, size_t first, void *panel, int32_t *sums)
{
    return dq_gemm_s8_pack(b, first, NR, GROUP, panel, sums);
}

/* Writes the 2 × 2 block of rows i and i + 1; the second one is not written from row `rows` on. */
static inline void store_pair(int32x4_t block, size_t i, size_t rows, int32_t *c, size_t c_stride)
{
    if (i < rows)
        vst1_s32(c + i * c_stride, vget_low_s32(block));
    if (i + 1 < rows)
        vst1_s32(c + (i + 1) * c_stride, vget_high_s32(block));
}

/* ---- Few rows ----------------------------------------------------------------------------------------- */

/* usdot adds products of four positions: the two halves of a group have a sum each. */
static void one_row(const dq_gemm_s8_a *a, const int8_t *b, const int32_t *init, int32_t *c)
{
    int32x4_t acc[PAIRS];
    for (int j = 0; j < PAIRS; j++)
        acc[j] = vdupq_n_s32(0);
    for (size_t t = 0; t < a->runs; t++) {
        const uint8_t *x = a->rows[0] + a->offsets[t];
        for (size_t k = 0; k < a->run; k += GROUP, b += NR * GROUP) {
            uint8x8_t eight = vld1_u8(x + k);
            for (int j = 0; j < PAIRS; j++)
                acc[j] = vusdotq_s32(acc[j], vcombine_u8(eight, eight), vld1q_s8(b + 16 * j));
        }
    }
    for (int j = 0; j < PAIRS; j += 2)
        vst1q_s32(c + 2 * j, vaddq_s32(vld1q_s32(init + 2 * j), vpaddq_s32(acc[j], acc[j + 1])));
}

/* `pairs`, the pairs of rows, is constant in each call, so that the loops over them unroll and sums stay in
 * registers. If the number of rows is odd, the last row is computed twice. */
static inline __attribute__((always_inline)) void few_rows(const dq_gemm_s8_a *a, size_t rows, int pairs,
                                                           const int8_t *b, const int32_t *init, int32_t *c,
                                                           size_t c_stride)
{
    int32x4_t acc[(FEW + 1) / 2][PAIRS];
    for (int j = 0; j < PAIRS; j++) {
        int32x2_t two = vld1_s32(init + 2 * j);
        for (int i = 0; i < pairs; i++)
            acc[i][j] = vcombine_s32(two, two);
    }
    for (size_t t = 0; t < a->runs; t++)
        for (size_t k = 0; k < a->run; k += GROUP, b += NR * GROUP) {
            uint8x16_t x[(FEW + 1) / 2];
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
        for (int j = 0; j < PAIRS; j++)
            store_pair(acc[i][j], 2 * (size_t)i, rows, c + 2 * j, c_stride);
}

/* ---- Strips of packed rows ---------------------------------------------------------------------------- */

static __attribute__((noinline)) void pack_rows(const dq_gemm_s8_a *a, size_t rows, uint8_t *to)
{
    const size_t runs = a->runs,
                 run = a->run; /* copies: stores of bytes may change *a, as compilers see it */
    for (size_t first = 0; first < rows; first += DQ_ARM_STRIP) {
        const uint8_t *row[DQ_ARM_STRIP];
        dq_arm_strip_rows(a, first, rows, row);
        for (size_t t = 0; t < runs; t++) {
            const ptrdiff_t offset = a->offsets[t];
            for (size_t k = 0; k < run; k += DQ_ARM_STEP) {
                const bool both = dq_arm_groups(run - k, GROUP) > 1;
                for (int i = 0; i < DQ_ARM_STRIP; i += 2, to += 16) {
                    uint64x2_t x = vreinterpretq_u64_u8(vld1q_u8(row[i] + offset + (ptrdiff_t)k));
                    uint64x2_t y = vreinterpretq_u64_u8(vld1q_u8(row[i + 1] + offset + (ptrdiff_t)k));
                    vst1q_u8(to, vreinterpretq_u8_u64(vzip1q_u64(x, y)));
                    if (both)
                        vst1q_u8(to + DQ_ARM_STRIP * GROUP, vreinterpretq_u8_u64(vzip2q_u64(x, y)));
                }
                to += both ? DQ_ARM_STRIP * GROUP : 0;
            }
        }
    }
}

/* Computes up to 2 * pairs rows; `pairs` is constant in each call. */
static inline __attribute__((always_inline)) void strip(const uint8_t *x, size_t groups, int pairs,
                                                        size_t rows, const int8_t *b, const int32_t *init,
                                                        int32_t *c, size_t c_stride)
{
    int32x4_t acc[DQ_ARM_STRIP / 2][PAIRS];
    for (int j = 0; j < PAIRS; j++) {
        int32x2_t two = vld1_s32(init + 2 * j);
        for (int i = 0; i < pairs; i++)
            acc[i][j] = vcombine_s32(two, two);
    }
#pragma GCC unroll 2
    for (size_t g = 0; g < groups; g++, x += DQ_ARM_STRIP * GROUP, b += NR * GROUP) {
        uint8x16_t two[DQ_ARM_STRIP / 2];
        for (int i = 0; i < pairs; i++)
            two[i] = vld1q_u8(x + 16 * i);
        for (int j = 0; j < PAIRS; j++) {
            int8x16_t w = vld1q_s8(b + 16 * j);
            for (int i = 0; i < pairs; i++)
                acc[i][j] = vusmmlaq_s32(acc[i][j], two[i], w);
        }
    }
    for (int i = 0; i < pairs; i++)
        for (int j = 0; j < PAIRS; j++)
            store_pair(acc[i][j], 2 * (size_t)i, rows, c + 2 * j, c_stride);
}

static void packed_rows(const dq_gemm_s8_a *a, size_t rows, const int8_t *panel, const int32_t *init,
                        int32_t *c, size_t c_stride)
{
    const size_t groups = a->runs * dq_arm_groups(a->run, GROUP);
    const uint8_t *x = dq_arm_strips(a, rows, pack_rows);
    for (size_t i = 0; i < rows; i += DQ_ARM_STRIP, x += groups * DQ_ARM_STRIP * GROUP, c += 8 * c_stride) {
        if (rows - i > 4)
            strip(x, groups, 4, rows - i, panel, init, c, c_stride);
        else
            strip(x, groups, 2, rows - i, panel, init, c, c_stride);
    }
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    if (rows == 1)
        one_row(a, panel, init, c);
    else if (rows == 2)
        few_rows(a, rows, 1, panel, init, c, c_stride);
    else if (rows == FEW)
        few_rows(a, rows, 2, panel, init, c, c_stride);
    else
        packed_rows(a, rows, panel, init, c, c_stride);
}

const dq_gemm_s8 dq_gemm_s8_i8mm = {.mr = DQ_ARM_MR,
                                    .nr = NR,
                                    .a_signed = false,
                                    .dots = true,
                                    .panel_size = panel_size,
                                    .packed_a_size = packed_a_size,
                                    .pack = pack,
                                    .tile = tile,
                                    .sums = dq_gemm_s8_sums_u8_neon};
