/* SPDX-License-Identifier: Apache-2.0 */
/* Template: the members of dq_winograd_s8. Included once per ISA level, after its vec_<isa>.h and the
 * parameters of winograd_product.h; the including file fills its record. Vectors hold input channels in the
 * input transform, and output channels in the output transform. */
#include "kernels/winograd/winograd_product.h"

enum { SIDE = 4, WORDS = 2 * VF_LANES };

/* ---- Input transform ----------------------------------------------------------------------------------- */

static inline void b_times(vi d0, vi d1, vi d2, vi d3, vi out[SIDE])
{
    out[0] = vi_sub_16(d0, d2);
    out[1] = vi_add_16(d1, d2);
    out[2] = vi_sub_16(d2, d1);
    out[3] = vi_sub_16(d1, d3);
}

static inline void column(const uint8_t *x, size_t row, vi out[SIDE])
{
    b_times(vi_words(x), vi_words(x + row), vi_words(x + 2 * row), vi_words(x + 3 * row), out);
}

/* The last two columns of a tile are the first two of the next; their transforms are kept. */
static void input(const uint8_t *x, size_t row, size_t pixel, size_t tiles, size_t channels, int16_t *v,
                  size_t point)
{
    for (size_t c = 0; c < channels; c += WORDS) {
        const uint8_t *from = x + c;
        vi t[SIDE][SIDE]; /* by column */
        column(from, row, t[0]);
        column(from + pixel, row, t[1]);
        for (size_t i = 0; i < tiles; i++) {
            int16_t *to = v + i * channels + c;
            from += 2 * pixel;
            column(from, row, t[2]);
            column(from + pixel, row, t[3]);
            for (size_t k = 0; k < SIDE; k++) {
                vi out[SIDE];
                b_times(t[0][k], t[1][k], t[2][k], t[3][k], out);
                for (size_t l = 0; l < SIDE; l++)
                    vi_store(to + (k * SIDE + l) * point, out[l]);
                t[0][k] = t[2][k];
                t[1][k] = t[3][k];
            }
        }
    }
}

/* ---- Output transform ---------------------------------------------------------------------------------- */

static inline void a_times(vi m0, vi m1, vi m2, vi m3, vi out[2])
{
    out[0] = vi_add(vi_add(m0, m1), m2);
    out[1] = vi_sub(vi_sub(m1, m2), m3);
}

static inline void quarter(vi sum, vi init, int32_t *y)
{
    vi_store(y, vi_add(init, vi_quarter(sum)));
}

static void output(const int32_t *m, size_t point, const int32_t *init, size_t width, size_t rows, int32_t *y)
{
    for (size_t x = 0; x < width; x += 2)
        for (size_t j = 0; j < COLS; j += VF_LANES) {
            const int32_t *from = m + x / 2 * COLS + j;
            vi t[SIDE][2], out[2], start = vi_load(init + j); /* t by column */
            for (size_t k = 0; k < SIDE; k++, from += point)
                a_times(vi_load(from), vi_load(from + SIDE * point), vi_load(from + 2 * SIDE * point),
                        vi_load(from + 3 * SIDE * point), t[k]);
            for (size_t k = 0; k < rows; k++) {
                a_times(t[0][k], t[1][k], t[2][k], t[3][k], out);
                quarter(out[0], start, y + (k * width + x) * COLS + j);
                if (x + 1 < width)
                    quarter(out[1], start, y + (k * width + x + 1) * COLS + j);
            }
        }
}
