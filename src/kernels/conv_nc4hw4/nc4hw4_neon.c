/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with smull of int8 pairs and sadalp, as in gemm_s8_neon.c: pixel bytes minus 128 are
 * multiplied, and 128 times the sum of the weights, which the head of the panel holds, is added. The register
 * tile is 4 channels by 8 pixels, with two accumulators each: one for a pixel's first two bytes, one for the
 * others. */
#include "base/checked.h"
#include "kernels/kernels.h"

#include <arm_neon.h>
#include <string.h>

#define ISA(name) name##_neon

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, HEAD = DQ_ALIGN, VECTORS = 2, PIXELS = 8 };

size_t dq_nc4hw4_panel_size_neon(size_t steps)
{
    size_t size;
    return dq_mul_size(steps, OUTS * STEP, &size) && dq_add_size(size, HEAD, &size) &&
                   dq_align_size(size, DQ_ALIGN, &size)
               ? size
               : 0;
}

/* After the head, the weights of step after step; within a step, four for each channel. */
size_t dq_nc4hw4_pack_neon(const int8_t *w, size_t steps, void *panel)
{
    int32_t head[OUTS] = {0};
    int8_t *to = (int8_t *)panel + HEAD;
    for (size_t j = 0; j < OUTS; j++)
        for (size_t s = 0; s < steps; s++, w += STEP)
            for (size_t e = 0; e < STEP; e++) {
                to[(s * OUTS + j) * STEP + e] = w[e];
                head[j] += 128 * w[e];
            }
    memcpy(panel, head, sizeof head);
    return dq_nc4hw4_panel_size_neon(steps);
}

static inline int8x16_t four(const int8_t *w)
{
    int32_t bytes;
    memcpy(&bytes, w, sizeof bytes);
    return vreinterpretq_s8_s32(vdupq_n_s32(bytes));
}

static inline void tile(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const int8_t *w,
                        const int32_t start[OUTS], int32_t *c, size_t c_stride)
{
    const uint8x16_t sign_xor = vdupq_n_u8(0x80);
    int32x4_t acc[OUTS][VECTORS][2]; /* two pixels per accumulator */
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < VECTORS; v++)
            acc[j][v][0] = acc[j][v][1] = vdupq_n_s32(0);
    for (size_t s = 0; s < steps; s++, w += OUTS * STEP) {
        int8x16_t pixels[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            pixels[v] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x + offsets[s] + 16 * v), sign_xor));
        for (int j = 0; j < OUTS; j++) {
            int8x16_t by = four(w + j * STEP);
            for (int v = 0; v < VECTORS; v++) {
                int16x8_t low = vmull_s8(vget_low_s8(pixels[v]), vget_low_s8(by));
                acc[j][v][0] = vpadalq_s16(acc[j][v][0], low);
                acc[j][v][1] = vpadalq_s16(acc[j][v][1], vmull_high_s8(pixels[v], by));
            }
        }
    }
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < VECTORS; v++) {
            int32x4_t sum = vpaddq_s32(acc[j][v][0], acc[j][v][1]);
            vst1q_s32(c + (size_t)j * c_stride + 4 * v, vaddq_s32(sum, vdupq_n_s32(start[j])));
        }
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    int32_t start[OUTS];
    vst1q_s32(start, vaddq_s32(vld1q_s32(init), vld1q_s32(panel)));
    for (size_t p = 0; p < n; p += PIXELS)
        tile(x + STEP * p, offsets, steps, (const int8_t *)panel + HEAD, start, c + p, c_stride);
}

void dq_nc4hw4_interleave_neon(const uint8_t *const planes[STEP], size_t n, uint8_t sign_xor, uint8_t *out)
{
    const uint8_t *rest[STEP];
    size_t p = 0;
    for (; p + 16 <= n; p += 16) {
        uint8x16x4_t x;
        for (int e = 0; e < STEP; e++)
            x.val[e] = planes[e] ? veorq_u8(vld1q_u8(planes[e] + p), vdupq_n_u8(sign_xor)) : vdupq_n_u8(0);
        vst4q_u8(out + STEP * p, x);
    }
    for (int e = 0; e < STEP; e++)
        rest[e] = planes[e] ? planes[e] + p : NULL;
    dq_nc4hw4_interleave_c(rest, n - p, sign_xor, out + STEP * p);
}

#include "kernels/conv_nc4hw4/nc4hw4_store.h"

void dq_nc4hw4_store_neon(const int32_t *c, size_t c_stride, size_t n, size_t channels,
                          const dq_requantize_to *to)
{
    store(c, c_stride, n, channels, to);
}

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_neon = {.lanes = 8,
                                                  .least = 24,
                                                  .deepest = 256,
                                                  .nhwc = true,
                                                  .interleave = dq_nc4hw4_interleave_neon,
                                                  .panel_size = dq_nc4hw4_panel_size_neon,
                                                  .pack = dq_nc4hw4_pack_neon,
                                                  .sums = sums,
                                                  .store = dq_nc4hw4_store_neon};
