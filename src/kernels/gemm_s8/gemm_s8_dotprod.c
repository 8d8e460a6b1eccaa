/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit GEMM with sdot, which adds four int8 products to a 32-bit sum, exact for all operands. The register
 * tile is 8 rows by 8 columns: sixteen accumulators. Rows are packed in strips of eight: for each group of
 * four positions, two vectors of four rows each, whose lanes sdot multiplies by vectors of four columns.
 * Fewer than four rows are not worth packing. */
#include "kernels/gemm_s8/gemm_s8_arm.h"
#include "kernels/kernels.h"

enum { NR = 8, GROUP = 4, FEW = 3 /* rows that are not packed */ };

static size_t panel_size(size_t runs, size_t run)
{
    return dq_arm_panel_size(runs, run, NR, GROUP);
}

static size_t packed_a_size(const dq_gemm_s8_b *b, size_t rows)
{
    return dq_arm_packed_a_size(b, rows, GROUP);
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

/* ---- Few rows ----------------------------------------------------------------------------------------- */

/* Multiplies one group of positions, lane `lane` of the rows' vectors; the lane must be a constant. Sums of
 * `parts` groups are independent, so that few rows do not wait for them. */
#define MULTIPLY_GROUP(lane)                                                                                 \
    do {                                                                                                     \
        int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);                                                   \
        for (int i = 0; i < rows; i++) {                                                                     \
            int32x4_t *sum = acc[i][(lane) % parts];                                                         \
            sum[0] = vdotq_laneq_s32(sum[0], b0, x[i], lane);                                                \
            sum[1] = vdotq_laneq_s32(sum[1], b1, x[i], lane);                                                \
        }                                                                                                    \
        b += NR * GROUP;                                                                                     \
    } while (0)

/* `rows` and `parts` are constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void few_rows(const dq_gemm_s8_a *a, int rows, int parts,
                                                           const int8_t *b, const int32_t *init, int32_t *c,
                                                           size_t c_stride)
{
    int32x4_t acc[FEW][4][2];
    for (int v = 0; v < 2; v++) {
        int32x4_t head = vreinterpretq_s32_s8(vld1q_s8(b + v * 16));
        for (int i = 0; i < rows; i++) {
            acc[i][0][v] = vaddq_s32(vld1q_s32(init + v * 4), head);
            for (int p = 1; p < parts; p++)
                acc[i][p][v] = vdupq_n_s32(0);
        }
    }
    b += DQ_ARM_HEAD;
    for (size_t t = 0; t < a->runs; t++) {
        size_t left = a->run;
        const uint8_t *from[FEW];
        int8x16_t x[FEW];
        for (int i = 0; i < rows; i++)
            from[i] = a->rows[i] + a->offsets[t];
        for (; left >= DQ_ARM_STEP; left -= DQ_ARM_STEP) {
            for (int i = 0; i < rows; i++, from[i - 1] += DQ_ARM_STEP)
                x[i] = lowered(from[i]);
            MULTIPLY_GROUP(0);
            MULTIPLY_GROUP(1);
            MULTIPLY_GROUP(2);
            MULTIPLY_GROUP(3);
        }
        if (left == 0)
            continue;
        for (int i = 0; i < rows; i++)
            x[i] = lowered(from[i]);
        MULTIPLY_GROUP(0);
        if (left > 4)
            MULTIPLY_GROUP(1);
        if (left > 8)
            MULTIPLY_GROUP(2);
        if (left > 12)
            MULTIPLY_GROUP(3);
    }
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < 2; v++) {
            for (int p = 1; p < parts; p++)
                acc[i][0][v] = vaddq_s32(acc[i][0][v], acc[i][p][v]);
            vst1q_s32(c + (size_t)i * c_stride + v * 4, acc[i][0][v]);
        }
}

/* ---- Strips of packed rows ---------------------------------------------------------------------------- */

/* Writes the groups of sixteen positions of eight rows: x[i] becomes lane i % 4 of vector i / 4 of a group.
 */
static inline void transposed(const int8x16_t x[DQ_ARM_STRIP], int8x16_t group[4][2])
{
    for (int h = 0; h < 2; h++) {
        const int8x16_t *r = x + 4 * h;
        int32x4_t a = vreinterpretq_s32_s8(r[0]), b = vreinterpretq_s32_s8(r[1]),
                  c = vreinterpretq_s32_s8(r[2]), d = vreinterpretq_s32_s8(r[3]);
        int64x2_t ab = vreinterpretq_s64_s32(vzip1q_s32(a, b)), cd = vreinterpretq_s64_s32(vzip1q_s32(c, d));
        int64x2_t ab2 = vreinterpretq_s64_s32(vzip2q_s32(a, b)),
                  cd2 = vreinterpretq_s64_s32(vzip2q_s32(c, d));
        group[0][h] = vreinterpretq_s8_s64(vzip1q_s64(ab, cd));
        group[1][h] = vreinterpretq_s8_s64(vzip2q_s64(ab, cd));
        group[2][h] = vreinterpretq_s8_s64(vzip1q_s64(ab2, cd2));
        group[3][h] = vreinterpretq_s8_s64(vzip2q_s64(ab2, cd2));
    }
}

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
                const size_t groups = dq_arm_groups(run - k, GROUP);
                int8x16_t x[DQ_ARM_STRIP], group[4][2];
                for (int i = 0; i < DQ_ARM_STRIP; i++)
                    x[i] = lowered(row[i] + offset + (ptrdiff_t)k);
                transposed(x, group);
                for (size_t g = 0; g < 4 && g < groups; g++, to += DQ_ARM_STRIP * GROUP) {
                    vst1q_u8(to, vreinterpretq_u8_s8(group[g][0]));
                    vst1q_u8(to + 16, vreinterpretq_u8_s8(group[g][1]));
                }
            }
        }
    }
}

/* Computes up to 4 * halves rows; `halves`, 1 or 2, is constant in each call. */
static inline __attribute__((always_inline)) void strip(const int8_t *x, size_t groups, int halves,
                                                        size_t rows, const int8_t *b, const int32_t *init,
                                                        int32_t *c, size_t c_stride)
{
    int32x4_t acc[DQ_ARM_STRIP][2];
    for (int v = 0; v < 2; v++) {
        int32x4_t head = vreinterpretq_s32_s8(vld1q_s8(b + v * 16));
        for (int i = 0; i < 4 * halves; i++)
            acc[i][v] = vaddq_s32(vld1q_s32(init + v * 4), head);
    }
    b += DQ_ARM_HEAD;
#pragma GCC unroll 2
    for (size_t g = 0; g < groups; g++, x += DQ_ARM_STRIP * GROUP, b += NR * GROUP) {
        int8x16_t b0 = vld1q_s8(b), b1 = vld1q_s8(b + 16);
        for (int h = 0; h < halves; h++) {
            int8x16_t four = vld1q_s8(x + 16 * h);
            int32x4_t(*sum)[2] = acc + 4 * h;
            for (int v = 0; v < 2; v++) {
                int8x16_t w = v ? b1 : b0;
                sum[0][v] = vdotq_laneq_s32(sum[0][v], w, four, 0);
                sum[1][v] = vdotq_laneq_s32(sum[1][v], w, four, 1);
                sum[2][v] = vdotq_laneq_s32(sum[2][v], w, four, 2);
                sum[3][v] = vdotq_laneq_s32(sum[3][v], w, four, 3);
            }
        }
    }
    for (int i = 0; i < 4 * halves; i++)
        for (int v = 0; v < 2; v++)
            if ((size_t)i < rows)
                vst1q_s32(c + (size_t)i * c_stride + v * 4, acc[i][v]);
}

static void packed_rows(const dq_gemm_s8_a *a, size_t rows, const int8_t *panel, const int32_t *init,
                        int32_t *c, size_t c_stride)
{
    const size_t groups = a->runs * dq_arm_groups(a->run, GROUP);
    const int8_t *x = (const int8_t *)dq_arm_strips(a, rows, pack_rows);
    for (size_t i = 0; i < rows; i += DQ_ARM_STRIP, x += groups * DQ_ARM_STRIP * GROUP, c += 8 * c_stride) {
        if (rows - i > 4)
            strip(x, groups, 2, rows - i, panel, init, c, c_stride);
        else
            strip(x, groups, 1, rows - i, panel, init, c, c_stride);
    }
}

static void tile(const dq_gemm_s8_a *a, size_t rows, const void *panel, const int32_t *init, int32_t *c,
                 size_t c_stride)
{
    if (rows == 1)
        few_rows(a, 1, 4, panel, init, c, c_stride);
    else if (rows == 2)
        few_rows(a, 2, 2, panel, init, c, c_stride);
    else if (rows == FEW)
        few_rows(a, FEW, 2, panel, init, c, c_stride);
    else
        packed_rows(a, rows, panel, init, c, c_stride);
}

const dq_gemm_s8 dq_gemm_s8_dotprod = {.mr = DQ_ARM_MR,
                                       .nr = NR,
                                       .a_signed = false,
                                       .dots = true,
                                       .panel_size = panel_size,
                                       .packed_a_size = packed_a_size,
                                       .pack = pack,
                                       .tile = tile,
                                       .sums = dq_gemm_s8_sums_u8_neon};
