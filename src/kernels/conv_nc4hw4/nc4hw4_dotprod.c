/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with sdot: a lane has the four bytes of a pixel, minus 128, and one vector the weights
 * of a step for all four output channels, which sdot reads by lanes. The panels are NEON's. */
#include "base/checked.h"
#include "kernels/kernels.h"

#include <arm_neon.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, HEAD = DQ_ALIGN, LANES = 4, VECTORS = 4, FEW = 2 };

/* Four or two vectors of pixels; `vectors` is constant in each call. */
static inline __attribute__((always_inline)) void tile(const uint8_t *x, const ptrdiff_t *offsets,
                                                       size_t steps, const void *panel, const int32_t *init,
                                                       int vectors, int32_t *c, size_t c_stride)
{
    const int32x4_t start = vaddq_s32(vld1q_s32(init), vld1q_s32(panel));
    const int8_t *w = (const int8_t *)panel + HEAD;
    int32x4_t acc[OUTS][VECTORS];
    for (int v = 0; v < vectors; v++) {
        acc[0][v] = vdupq_laneq_s32(start, 0);
        acc[1][v] = vdupq_laneq_s32(start, 1);
        acc[2][v] = vdupq_laneq_s32(start, 2);
        acc[3][v] = vdupq_laneq_s32(start, 3);
    }
    for (size_t s = 0; s < steps; s++, w += OUTS * STEP) {
        const int8x16_t four = vld1q_s8(w);
        for (int v = 0; v < vectors; v++) {
            const uint8x16_t bytes = vld1q_u8(x + offsets[s] + STEP * LANES * v);
            const int8x16_t pixels = vreinterpretq_s8_u8(veorq_u8(bytes, vdupq_n_u8(0x80)));
            acc[0][v] = vdotq_laneq_s32(acc[0][v], pixels, four, 0);
            acc[1][v] = vdotq_laneq_s32(acc[1][v], pixels, four, 1);
            acc[2][v] = vdotq_laneq_s32(acc[2][v], pixels, four, 2);
            acc[3][v] = vdotq_laneq_s32(acc[3][v], pixels, four, 3);
        }
    }
    for (size_t j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            vst1q_s32(c + j * c_stride + LANES * v, acc[j][v]);
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    size_t p = 0;
    for (; p + FEW * LANES < n; p += VECTORS * LANES)
        tile(x + STEP * p, offsets, steps, panel, init, VECTORS, c + p, c_stride);
    if (p < n)
        tile(x + STEP * p, offsets, steps, panel, init, FEW, c + p, c_stride);
}

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_dotprod = {.lanes = FEW * LANES,
                                                     .least = 24,
                                                     .deepest = 256,
                                                     .nhwc = true,
                                                     .interleave = dq_nc4hw4_interleave_neon,
                                                     .panel_size = dq_nc4hw4_panel_size_neon,
                                                     .pack = dq_nc4hw4_pack_neon,
                                                     .sums = sums,
                                                     .store = dq_nc4hw4_store_neon};
