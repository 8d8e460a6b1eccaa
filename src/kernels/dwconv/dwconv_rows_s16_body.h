/* SPDX-License-Identifier: Apache-2.0 */
/* Template: included once per ISA level. Implements dq_dwconv_rows_s16_fn. Pairs of elements loaded from x
 * give every second output, those loaded from x + 1 the others. The file of the ISA level defines before the
 * include
 *   vec_<isa>.h           the vector operations
 *   ISA(name)             the name of a kernel of this level */
#include "kernels/kernels.h"

#include <string.h>

/* Computes 2 * VF_LANES outputs for each of `vectors`, which is constant in each call, so that
 * accumulators stay in registers. */
static inline __attribute__((always_inline)) void outputs(const int16_t *x, const ptrdiff_t *offsets,
                                                          const int16_t *w, size_t taps, int32_t init,
                                                          int vectors, int32_t *out)
{
    enum { MAX_ROWS = 2, EACH = 2 * VF_LANES };
    vi even[MAX_ROWS], odd[MAX_ROWS];
    for (int v = 0; v < vectors; v++)
        even[v] = odd[v] = vi_set(init);
    for (size_t t = 0; t < taps; t++) {
        const int16_t *z = x + offsets[t];
        int32_t both;
        memcpy(&both, w + 2 * t, sizeof both);
        for (int v = 0; v < vectors; v++) {
            even[v] = vi_add(even[v], vi_dot_16(vi_load(z + v * EACH), vi_set(both)));
            odd[v] = vi_add(odd[v], vi_dot_16(vi_load(z + v * EACH + 1), vi_set(both)));
        }
    }
    for (int v = 0; v < vectors; v++) {
        vi_store(out + v * EACH, vi_zip_low(even[v], odd[v]));
        vi_store(out + v * EACH + VF_LANES, vi_zip_high(even[v], odd[v]));
    }
}

/* The last vector of a row may write past the row's end into the next row, which is computed later. */
void ISA(dq_dwconv_rows_s16)(const int16_t *x, size_t step, size_t rows, const ptrdiff_t *offsets,
                             const int16_t *w, size_t taps, int32_t init, size_t n, int32_t *out)
{
    enum { EACH = 2 * VF_LANES };
    const int32_t *end = out + rows * n;
    for (; rows > 0; rows--, x += step, out += n) {
        size_t j = 0;
        for (; j + 2 * EACH <= n; j += 2 * EACH)
            outputs(x + j, offsets, w, taps, init, 2, out + j);
        for (; j < n && (size_t)(end - out) - j >= EACH; j += EACH)
            outputs(x + j, offsets, w, taps, init, 1, out + j);
        if (j < n) {
            int32_t rest[EACH];
            outputs(x + j, offsets, w, taps, init, 1, rest);
            memcpy(out + j, rest, (n - j) * sizeof *out);
        }
    }
}
