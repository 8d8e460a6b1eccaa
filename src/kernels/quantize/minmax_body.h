/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_minmax_f32. Included once per ISA level, after a vec_<isa>.h whose minimum and maximum return
 * the second operand if the first is NaN. Macro parameters: ISA(name), and optionally AHEAD_OF(x), which
 * prefetches the data after x. */
#include "kernels/kernels.h"

#ifndef AHEAD_OF
#define AHEAD_OF(x) ((void)(x))
#endif

#define JOIN_LANES(h)                                                                                        \
    if (VF_LANES > (h)) {                                                                                    \
        low[0] = vf_min(low[0], vf_rotate(low[0], h));                                                       \
        high[0] = vf_max(high[0], vf_rotate(high[0], h));                                                    \
    }

/* Several vectors of minima and maxima hide the latency of the instructions. */
void ISA(dq_minmax_f32)(const float *x, size_t n, float *lo, float *hi)
{
    enum { VECTORS = 4, ELEMENTS_PER_STEP = VECTORS * VF_LANES };
    vf low[VECTORS], high[VECTORS];
    size_t i = 0;
    for (int v = 0; v < VECTORS; v++) {
        low[v] = vf_set(*lo);
        high[v] = vf_set(*hi);
    }
    for (; i + ELEMENTS_PER_STEP <= n; i += ELEMENTS_PER_STEP)
        for (int v = 0; v < VECTORS; v++) {
            const vf some = vf_load(x + i + v * VF_LANES);
            AHEAD_OF(x + i + v * VF_LANES);
            low[v] = vf_min(some, low[v]);
            high[v] = vf_max(some, high[v]);
        }
    for (; i + VF_LANES <= n; i += VF_LANES) {
        low[0] = vf_min(vf_load(x + i), low[0]);
        high[0] = vf_max(vf_load(x + i), high[0]);
    }
    low[0] = vf_min(vf_min(low[0], low[1]), vf_min(low[2], low[3]));
    high[0] = vf_max(vf_max(high[0], high[1]), vf_max(high[2], high[3]));
    JOIN_LANES(8)
    JOIN_LANES(4)
    JOIN_LANES(2)
    JOIN_LANES(1)
    *lo = vf_first(low[0]);
    *hi = vf_first(high[0]);
    dq_minmax_f32_c(x + i, n - i, lo, hi);
}
