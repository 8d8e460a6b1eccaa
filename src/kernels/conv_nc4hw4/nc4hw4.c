/* SPDX-License-Identifier: Apache-2.0 */
/* NC4HW4 convolution in portable C. A panel is a copy of the weights. */
#include "kernels/kernels.h"

#include "base/checked.h"

#include <string.h>

enum { STEP = DQ_NC4HW4_STEP, OUTS = DQ_NC4HW4_OUTS };

void dq_nc4hw4_interleave_c(const uint8_t *const planes[STEP], size_t n, uint8_t sign_xor, uint8_t *out)
{
    for (size_t e = 0; e < STEP; e++)
        for (size_t p = 0; p < n; p++)
            out[STEP * p + e] = planes[e] ? planes[e][p] ^ sign_xor : 0;
}

static size_t panel_size(size_t steps)
{
    size_t size;
    return dq_mul_size(steps, OUTS * STEP, &size) && dq_align_size(size ? size : 1, DQ_ALIGN, &size) ? size
                                                                                                     : 0;
}

static size_t pack(const int8_t *w, size_t steps, void *panel)
{
    memcpy(panel, w, steps * OUTS * STEP);
    return panel_size(steps);
}

static void sums(const uint8_t *x, const ptrdiff_t *offsets, size_t steps, const void *panel,
                 const int32_t *init, size_t n, int32_t *c, size_t c_stride)
{
    for (size_t j = 0; j < OUTS; j++)
        for (size_t p = 0; p < n; p++) {
            const int8_t *w = (const int8_t *)panel + j * steps * STEP;
            uint32_t sum = (uint32_t)init[j];
            for (size_t s = 0; s < steps; s++)
                for (size_t e = 0; e < STEP; e++)
                    sum += (uint32_t)(x[offsets[s] + (ptrdiff_t)(STEP * p + e)] * w[s * STEP + e]);
            c[j * c_stride + p] = (int32_t)sum;
        }
}

static void store(const int32_t *c, size_t c_stride, size_t n, size_t channels, const dq_requantize_to *to)
{
    for (size_t p = 0; p < n; p++)
        for (size_t j = 0; j < channels; j++)
            dq_requantize_s32_c(c + j * c_stride + p, 1, to, j, 0, to->out + p * to->out_stride + j);
}

const dq_conv_nc4hw4_s8 dq_conv_nc4hw4_s8_c = {.lanes = DQ_NC4HW4_PIXELS,
                                               .least = 1,
                                               .deepest = SIZE_MAX,
                                               .interleave = dq_nc4hw4_interleave_c,
                                               .panel_size = panel_size,
                                               .pack = pack,
                                               .sums = sums,
                                               .store = store};
