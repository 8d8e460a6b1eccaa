/* SPDX-License-Identifier: Apache-2.0 */
/* 8-bit depthwise convolutions, sixteen outputs at a time. smlal by the two weights of a pair of taps is
 * exact. Both products of an output have a sum each, which are added at the end. */
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
