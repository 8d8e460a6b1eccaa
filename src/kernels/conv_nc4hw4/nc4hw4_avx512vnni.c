/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution with vpdpbusd: one instruction is a step, four bytes of a pixel times four weights,
 * exact for all operands. A panel has the weights of step after step; within a step, four weights for each
 * output channel. */
#include "kernels/kernels.h"

#include "base/checked.h"

#include <immintrin.h>
#include <string.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, LANES = 16, BYTES = 64, VECTORS = 4 /* per tile */ };

static size_t panel_size(size_t steps)
{
    size_t size;
    return dq_mul_size(steps, OUTS * STEP, &size) && dq_align_size(size, BYTES, &size) ? size : 0;
}

/* Runs once per panel; optimized for size. */
static __attribute__((cold)) size_t pack(const int8_t *w, size_t steps, void *panel)
{
    for (size_t s = 0; s < steps; s++)
        for (size_t j = 0; j < OUTS; j++)
            memcpy((int8_t *)panel + (s * OUTS + j) * STEP, w + (j * steps + s) * STEP, STEP);
    return panel_size(steps);
}

/* `vectors` is constant in each call, so that the loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void tile(const uint8_t *x, const ptrdiff_t *offsets,
                                                       size_t steps, const int32_t *w, const int32_t *init,
                                                       int vectors, int32_t *c, size_t c_stride)
{
    __m512i acc[OUTS][VECTORS];
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            acc[j][v] = _mm512_set1_epi32(init[j]);
    for (size_t s = 0; s < steps; s++, w += OUTS) {
        __m512i pixels[VECTORS];
        for (int v = 0; v < vectors; v++)
            pixels[v] = _mm512_loadu_si512(x + offsets[s] + BYTES * v);
        for (int j = 0; j < OUTS; j++)
            for (int v = 0; v < vectors; v++)
                acc[j][v] = _mm512_dpbusd_epi32(acc[j][v], pixels[v], _mm512_set1_epi32(w[j]));
    }
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_si512(c + (size_t)j * c_stride + v * LANES, acc[j][v]);
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    enum { PIXELS_PER_STEP = VECTORS * LANES, PIXELS_PER_SHORT_STEP = 2 * LANES };
    for (; n > PIXELS_PER_SHORT_STEP + LANES;
         n = n < PIXELS_PER_STEP ? 0 : n - PIXELS_PER_STEP, x += PIXELS_PER_STEP * STEP, c += PIXELS_PER_STEP)
        tile(x, offsets, steps, panel, init, VECTORS, c, c_stride);
    for (; n > LANES; n = n < PIXELS_PER_SHORT_STEP ? 0 : n - PIXELS_PER_SHORT_STEP,
                      x += PIXELS_PER_SHORT_STEP * STEP, c += PIXELS_PER_SHORT_STEP)
        tile(x, offsets, steps, panel, init, 2, c, c_stride);
    if (n)
        tile(x, offsets, steps, panel, init, 1, c, c_stride);
}

/* Every panel reads all input bytes again, so that for many channels the GEMM of gemm_s8.h is faster. AMX
 * tiles are much faster, but their input and output have to be transposed; so the limit is lower there. */
#define KERNELS(most)                                                                                        \
    {                                                                                                        \
        .lanes = LANES, .least = BYTES, .deepest = most, .interleave = dq_nc4hw4_interleave_avx2,            \
        .panel_size = panel_size, .pack = pack, .sums = sums, .store = dq_nc4hw4_store_avx2,                 \
        .exact_scale = dq_nc4hw4_exact_scale_avx2, .qvalues = dq_nc4hw4_requantize_avx512                    \
    }
const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_avx512vnni = KERNELS(224);
const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_amx = KERNELS(144);
