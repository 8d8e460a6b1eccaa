/* SPDX-License-Identifier: Apache-2.0 */
/* Template: dq_winograd_product_fn. Included once per ISA level, after its vec_<isa>.h.
 *
 * Macro parameters:
 *
 *   VECTORS                    vectors of columns at a time, 1 or 2
 *   pairs_of(u, w)             loads the weights of a pair of channels for VECTORS vectors of columns
 *   add_products(sum, v, w)    adds their products with the pair of input channels at v to the sums */
#include "kernels/kernels.h"

#include <string.h>

enum { COLS = DQ_WINOGRAD_COLS, HEIGHT = 12 / VECTORS };

/* `rows` is a compile-time constant in each call, so that loops unroll and sums stay in registers. */
static inline __attribute__((always_inline)) void some_rows(const int16_t *v, int rows, size_t channels,
                                                            const int16_t *u, int32_t *m)
{
    for (int j = 0; j < COLS; j += VECTORS * VF_LANES) {
        const int16_t *from = u + 2 * j;
        vi sums[HEIGHT][VECTORS];
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < VECTORS; k++)
                sums[i][k] = vi_set(0);
        for (size_t c = 0; c < channels; c += 2, from += 2 * COLS) {
            vi w[VECTORS];
            pairs_of(from, w);
            for (int i = 0; i < rows; i++)
                add_products(sums[i], v + (size_t)i * channels + c, w);
        }
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < VECTORS; k++)
                vi_store(m + i * COLS + j + k * VF_LANES, sums[i][k]);
    }
}

static void product(const int16_t *v, size_t rows, size_t channels, const int16_t *u, int32_t *m)
{
    for (; rows >= HEIGHT; rows -= HEIGHT, v += HEIGHT * channels, m += HEIGHT * COLS)
        some_rows(v, HEIGHT, channels, u, m);
    for (; rows >= 4; rows -= 4, v += 4 * channels, m += 4 * COLS)
        some_rows(v, 4, channels, u, m);
    for (; rows; rows--, v += channels, m += COLS)
        some_rows(v, 1, channels, u, m);
}
