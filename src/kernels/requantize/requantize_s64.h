/* SPDX-License-Identifier: Apache-2.0 */
/* Sums to 16 bits as numbers of fixed point. The sum
 *     r = total * scale + (shift + 1.5 * 2^20 + 0.5 + near * 2^-32)
 * is one fused product of doubles. Next to 1.5 * 2^20 a double counts 2^-32: the upper 32 bits of r are then
 * a constant, of which the lower 16 bits are 0, and the whole number, and the lower 32 bits are a fraction.
 * That is below 2 * near just where the product is within near * 2^-32 of a tie. r and the constant are each
 * off by half of 2^-32, so that the result is sure elsewhere, if near is two more than the error of products.
 *
 * The upper 32 bits, as int32, never fall where r grows, and negative r make them negative. Products out of
 * range are therefore clamped as integers: from below before the constant is subtracted, from above by the
 * saturation to int16 and by a minimum after it. uint16 results are int16 ones with their top bit flipped. */
#ifndef DQ_KERNELS_REQUANTIZE_S64_H
#define DQ_KERNELS_REQUANTIZE_S64_H

#include "kernels/gemm_s16/gemm_s16.h"

typedef struct fixed_point {
    double begin;      /* added to shift */
    int32_t near;      /* 0: no product is sure */
    int32_t low;       /* the least upper 32 bits of r */
    int32_t add;       /* to upper 32 bits: gives results before the flip */
    int16_t high;      /* the largest result before the flip */
    uint16_t sign_xor; /* exclusive or with results */
} fixed_point;

static inline fixed_point fixed_point_of(const dq_q16_sums *s)
{
    fixed_point f = {.near = s->error < 0x1p-4 ? (int32_t)(s->error * 0x1p32) + 3 : 0};
    const int32_t origin = 0x41380000, middle = s->lo < 0 ? 0 : 0x8000; /* origin: of 1.5 * 2^20 */
    f.begin = 1572864.5 + f.near * 0x1p-32;
    f.low = origin + s->lo - s->zero_point;
    f.add = s->zero_point - middle - origin;
    f.high = (int16_t)(s->hi - middle);
    f.sign_xor = (uint16_t)middle;
    return f;
}

#endif
