/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_nc4hw4_store_fn with the requantize and interleave
 * kernels of the level. The file of the ISA level defines before the include
 *   ISA(name)             the name of a kernel of this level
 *   OUTS                  DQ_NC4HW4_OUTS */
#ifndef DQ_KERNELS_NC4HW4_STORE_H
#define DQ_KERNELS_NC4HW4_STORE_H

#include "kernels/kernels.h"

#include <string.h>

/* Requantizes row by row, then interleaves the rows as pixels. */
static void store(const int32_t *c, size_t c_stride, size_t n, size_t channels, const dq_requantize_to *to)
{
    enum { PART = 64 };
    dq_requantize_s32_fn *const requantize = ISA(dq_requantize_s32);
    dq_nc4hw4_interleave_fn *const interleave = ISA(dq_nc4hw4_interleave);
    uint8_t rows[OUTS][PART], pixels[OUTS * PART], *out = to->out;
    const uint8_t *planes[OUTS] = {rows[0], rows[1], rows[2], rows[3]};
    for (size_t p = 0; p < n; p += PART, c += PART) {
        size_t some = n - p < PART ? n - p : PART;
        for (size_t j = 0; j < OUTS; j++)
            if (j < channels)
                requantize(c + j * c_stride, some, to, j, 0, rows[j]);
            else
                planes[j] = NULL;
        interleave(planes, some, 0, pixels);
        for (size_t i = 0; i < some; i++, out += to->out_stride)
            if (channels == OUTS)
                memcpy(out, pixels + OUTS * i, OUTS);
            else
                memcpy(out, pixels + OUTS * i, channels);
    }
}

#endif
