/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level with vpdpbusd. NC4HW4 convolution in which one instruction is a step,
 * four bytes of a pixel times four weights, exact for all operands. A panel has the weights of step after
 * step; within a step, four weights for each output channel.
 *
 * The file of the ISA level includes its vec_<isa>.h before, and defines
 *   VECTORS             vectors of pixels of a tile: its accumulators stay in registers
 *   add_products(sum, pixels, w)  adds to each lane of *sum the products of four bytes with four weights */
#include "kernels/kernels.h"

#include "base/checked.h"

#include <string.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS, BYTES = STEP * VF_LANES };

static size_t panel_size(size_t steps)
{
    size_t size;
    return dq_mul_size(steps, OUTS * STEP, &size) && dq_align_size(size, DQ_ALIGN, &size) ? size : 0;
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
    vi acc[OUTS][VECTORS];
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            acc[j][v] = vi_set(init[j]);
    for (size_t s = 0; s < steps; s++, w += OUTS) {
        vi pixels[VECTORS];
        for (int v = 0; v < vectors; v++)
            pixels[v] = vi_load(x + offsets[s] + BYTES * v);
        for (int j = 0; j < OUTS; j++)
            for (int v = 0; v < vectors; v++)
                add_products(&acc[j][v], pixels[v], vi_set(w[j]));
    }
    for (int j = 0; j < OUTS; j++)
        for (int v = 0; v < vectors; v++)
            vi_store(c + (size_t)j * c_stride + v * VF_LANES, acc[j][v]);
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    enum { PIXELS = VECTORS * VF_LANES, FEW_PIXELS = 2 * VF_LANES };
    for (; n > PIXELS - VF_LANES; n = n < PIXELS ? 0 : n - PIXELS, x += PIXELS * STEP, c += PIXELS)
        tile(x, offsets, steps, panel, init, VECTORS, c, c_stride);
    for (; n > VF_LANES; n = n < FEW_PIXELS ? 0 : n - FEW_PIXELS, x += FEW_PIXELS * STEP, c += FEW_PIXELS)
        tile(x, offsets, steps, panel, init, 2, c, c_stride);
    if (n)
        tile(x, offsets, steps, panel, init, 1, c, c_stride);
}
