/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

enum { SIDE = 4, COLS = DQ_WINOGRAD_COLS };

/* Multiplies B with four values of stride `step`, in place. */
static void b_times(int *d, int step)
{
    int d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    d[0] = d0 - d2;
    d[step] = d1 + d2;
    d[2 * step] = d2 - d1;
    d[3 * step] = d1 - d3;
}

static void input(const uint8_t *x, size_t row, size_t pixel, size_t tiles, size_t channels, int16_t *v,
                  size_t point)
{
    for (size_t i = 0; i < tiles; i++, x += 2 * pixel)
        for (size_t c = 0; c < channels; c++) {
            int d[DQ_WINOGRAD_POINTS];
            for (size_t p = 0; p < DQ_WINOGRAD_POINTS; p++)
                d[p] = x[p / SIDE * row + p % SIDE * pixel + c];
            for (int k = 0; k < SIDE; k++)
                b_times(d + k, SIDE);
            for (int k = 0; k < SIDE; k++)
                b_times(d + k * SIDE, 1);
            for (size_t p = 0; p < DQ_WINOGRAD_POINTS; p++)
                v[p * point + i * channels + c] = (int16_t)d[p];
        }
}

static void product(const int16_t *v, size_t rows, size_t channels, const int16_t *u, int32_t *m)
{
    for (size_t i = 0; i < rows; i++, v += channels, m += COLS) {
        uint32_t sums[COLS] = {0};
        for (size_t c = 0; c < channels; c++)
            for (size_t j = 0; j < COLS; j++)
                sums[j] += (uint32_t)(v[c] * u[(c / 2 * COLS + j) * 2 + c % 2]);
        for (size_t j = 0; j < COLS; j++)
            m[j] = (int32_t)sums[j];
    }
}

/* Multiplies A with four values of stride `step`; the two results replace the first two. */
static void a_times(uint32_t *m, int step)
{
    uint32_t m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step];
    m[0] = m0 + m1 + m2;
    m[step] = m1 - m2 - m3;
}

static void output(const int32_t *m, size_t point, const int32_t *init, size_t width, size_t rows, int32_t *y)
{
    for (size_t i = 0; 2 * i < width; i++)
        for (size_t j = 0; j < COLS; j++) {
            uint32_t t[DQ_WINOGRAD_POINTS];
            for (size_t p = 0; p < DQ_WINOGRAD_POINTS; p++)
                t[p] = (uint32_t)m[p * point + i * COLS + j];
            for (int k = 0; k < SIDE; k++)
                a_times(t + k, SIDE);
            a_times(t, 1);
            a_times(t + SIDE, 1);
            for (size_t k = 0; k < rows; k++)
                for (size_t x = 2 * i; x < width && x < 2 * i + 2; x++)
                    y[(k * width + x) * COLS + j] =
                        (int32_t)((uint32_t)init[j] + (uint32_t)((int32_t)t[k * SIDE + x % 2] / 4));
        }
}

const dq_winograd_s8 dq_winograd_s8_c = {.input = input, .product = product, .output = output};
