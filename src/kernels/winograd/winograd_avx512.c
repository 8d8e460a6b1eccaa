/* SPDX-License-Identifier: Apache-2.0 */
/* The product only. The transforms are bound by memory accesses, for which AVX2's kernels are as fast. */
#include "kernels/simd/vec_avx512.h"

#include <stdint.h>

#include "kernels/winograd/winograd_pairs.h"

#include "kernels/winograd/winograd_product.h"

static void input(const uint8_t *x, size_t row, size_t pixel, size_t tiles, size_t channels, int16_t *v,
                  size_t point)
{
    dq_winograd_s8_avx2.input(x, row, pixel, tiles, channels, v, point);
}

static void output(const int32_t *m, size_t point, const int32_t *init, size_t width, size_t rows, int32_t *y)
{
    dq_winograd_s8_avx2.output(m, point, init, width, rows, y);
}

const dq_winograd_s8 dq_winograd_s8_avx512 = {.input = input, .product = product, .output = output};
