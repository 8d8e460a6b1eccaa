/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Rows of 8-bit depthwise convolutions, LANES accumulators per
 * vector. The file of the ISA level defines before the include
 *   LANES, VECTORS        accumulators of a vector, and vectors of the register tile
 *   void outputs(x, offsets, w, taps, init, int vectors, out)
 *                         computes vectors * LANES outputs; `vectors` is constant in each call, so that
 *                         accumulators stay in registers */
#include <string.h>

enum { STEP = LANES * VECTORS };

static void row(const int16_t *x, const ptrdiff_t *offsets, const int16_t *w, size_t taps, int32_t init,
                size_t n, int32_t *out)
{
    size_t j = 0;
    for (; j + STEP <= n; j += STEP)
        outputs(x + 2 * j, offsets, w, taps, init, VECTORS, out + j);
    for (; j + LANES <= n; j += LANES)
        outputs(x + 2 * j, offsets, w, taps, init, 1, out + j);
    if (j < n) {
        int32_t rest[LANES];
        outputs(x + 2 * j, offsets, w, taps, init, 1, rest);
        memcpy(out + j, rest, (n - j) * sizeof *out);
    }
}
