/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolutions, sixteen outputs at a time. smlal by the two weights of a pair of taps is
 * exact. Both products of an output have a sum each, which are added at the end. */
#include "kernels/dwconv/dwconv_taps_neon.h"
#include "kernels/kernels.h"

#include <arm_neon.h>
#include <string.h>

enum { LANES = 8, VECTORS = 2 };

void dq_dwconv_pairs_s8_neon(const uint8_t *x, size_t stride, size_t distance, size_t n, int16_t *out)
{
    size_t j = 0;
    for (; stride <= 2 && j + LANES <= n; j += LANES, x += LANES * stride) {
        const uint8_t *y = x + distance;
        uint8x8_t first = stride == 1 ? vld1_u8(x) : vld2_u8(x).val[0];
        uint8x8_t second = stride == 1 ? vld1_u8(y) : vld2_u8(y).val[0];
        int16x8x2_t pairs = {
            {vreinterpretq_s16_u16(vmovl_u8(first)), vreinterpretq_s16_u16(vmovl_u8(second))}};
        vst2q_s16(out + 2 * j, pairs);
    }
    dq_dwconv_pairs_s8_c(x, stride, distance, n - j, out + 2 * j);
}

static inline __attribute__((always_inline)) void outputs(const int16_t *x, const ptrdiff_t *offsets,
                                                          const int16_t *w, size_t taps, int32_t init,
                                                          int vectors, int32_t *out)
{
    int32x4_t sum[VECTORS][4]; /* two outputs each */
    for (int v = 0; v < vectors; v++)
        for (int q = 0; q < 4; q++)
            sum[v][q] = vdupq_n_s32(0);
    for (size_t t = 0; t < taps; t++) {
        int32_t both;
        memcpy(&both, w + 2 * t, sizeof both);
        const int16x8_t pair = vreinterpretq_s16_s32(vdupq_n_s32(both));
        for (int v = 0; v < vectors; v++)
            for (int q = 0; q < 4; q += 2) {
                const int16x8_t from = vld1q_s16(x + offsets[t] + 2 * LANES * v + 4 * q);
                sum[v][q] = vmlal_s16(sum[v][q], vget_low_s16(from), vget_low_s16(pair));
                sum[v][q + 1] = vmlal_high_s16(sum[v][q + 1], from, pair);
            }
    }
    for (int v = 0; v < vectors; v++)
        for (int q = 0; q < 4; q += 2)
            vst1q_s32(out + LANES * v + 2 * q,
                      vaddq_s32(vpaddq_s32(sum[v][q], sum[v][q + 1]), vdupq_n_s32(init)));
}

#include "kernels/dwconv/dwconv_row_s8_body.h"

void dq_dwconv_rows_s8_neon(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                            const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    for (size_t i = 0; i < rows; i++)
        row(x + i * step, offsets, w, taps, init, n, out + i * n);
}

/* ---- 3x3 from bytes ----------------------------------------------------------------------------------- */

static inline void store(const int32x4_t sums[4], int32_t *out)
{
    for (int k = 0; k < 4; k++)
        vst1q_s32(out + 4 * k, sums[k]);
}

/* Nine taps in `groups` groups, which is constant in each call. */
static inline __attribute__((always_inline)) void rows_of_nine(const uint8_t *x, size_t step, size_t rows,
                                                               const tap *taps, size_t groups, int32_t start,
                                                               size_t n, int32_t *out)
{
    const taps_kept kept = keep_taps(taps);
    const int32x4_t init = vdupq_n_s32(start);
    for (; rows; rows--, x += step, out += n)
        for (size_t at = 0; at < n; at += CHUNK) {
            const size_t j = dq_dwconv_chunk_at(at, n, CHUNK);
            int32x4_t sums[4];
            sum_kept(x + j, &kept, groups, init, sums);
            store(sums, out + j);
        }
}

/* Any number of taps, and rows that cannot be written in whole chunks. */
static void rows_of_taps(const uint8_t *x, size_t step, size_t rows, const tap *taps, tap_groups all,
                         int32_t start, size_t n, int32_t *out)
{
    const int32x4_t init = vdupq_n_s32(start);
    for (; rows; rows--, x += step, out += n)
        for (size_t j = 0; j < n; j += CHUNK) {
            int32_t made[CHUNK];
            int32x4_t sums[4];
            sum_any(x + j, taps, all, false, init, sums);
            store(sums, made);
            memcpy(out + j, made, (n - j < CHUNK ? n - j : CHUNK) * sizeof *out);
        }
}

/* Any weights, in as few groups as they need. */
static __attribute__((noinline)) void rows_of_any(const uint8_t *x, size_t step, size_t rows,
                                                  const int16_t *w, int32_t start, size_t n, int32_t *out)
{
    enum { PARTS = 3, TAPS_HERE = PARTS * TAPS_3X3 };
    int16_t nine[TAPS_3X3];
    size_t at[TAPS_3X3], count;
    tap taps[TAPS_HERE], grouped[TAPS_HERE];
    for (size_t t = 0; t < TAPS_3X3; t++) {
        nine[t] = w[t / 3 * 4 + t % 3];
        at[t] = t / 3 * step + t % 3;
    }
    find_taps(nine, at, TAPS_3X3, TAPS_HERE, taps, &count);
    const tap_groups all = group_taps(taps, count, grouped);
    rows_of_taps(x, step, rows, grouped, all, start, n, out);
}

/* The sums of a kernel's rows, or of the kernel, usually fit in 16 bits as they are. */
static void rows_of_bytes(const uint8_t *x, size_t step, size_t rows, const int16_t *w, int32_t init,
                          size_t n, int32_t *out)
{
    const int32_t start = (int32_t)((uint32_t)init + taps_start(w, 12));
    tap taps[TAPS_3X3];
    int heaviest = 0, heaviest_row = 0, all = 0;
    for (size_t r = 0, t = 0; r < 3; r++) {
        int row = 0;
        for (size_t c = 0; c < 3; c++, t++) {
            const int weight = w[4 * r + c];
            taps[t] = (tap){weight, (uint32_t)(r * step + c)};
            heaviest = abs(weight) > heaviest ? abs(weight) : heaviest;
            row += abs(weight);
        }
        heaviest_row = row > heaviest_row ? row : heaviest_row;
        all += row;
    }
    if (heaviest > TAP_MAX || heaviest_row > GROUP_MAX || step > UINT32_MAX / 4) {
        rows_of_any(x, step, rows, w, start, n, out);
        return;
    }
    const tap_groups groups = {TAPS_3X3, all <= GROUP_MAX ? 1 : GROUPS_3X3};
    const size_t whole = dq_dwconv_whole_chunks(rows, n, CHUNK);
    if (groups.groups == 1)
        rows_of_nine(x, step, whole, taps, 1, start, n, out);
    else
        rows_of_nine(x, step, whole, taps, GROUPS_3X3, start, n, out);
    rows_of_taps(x + whole * step, step, rows - whole, taps, groups, start, n, out + whole * n);
}

const dq_dwconv_3x3_s8 dq_dwconv_3x3_s8_neon = {.least = CHUNK, .rows = rows_of_bytes};
