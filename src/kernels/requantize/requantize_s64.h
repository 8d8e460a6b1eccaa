/* SPDX-License-Identifier: Apache-2.0 */
/* Requantization of int64 sums to 16 bits in fixed point. The kernel computes
 *     r = total * scale + (shift + 1.5 * 2^20 + 0.5 + near * 2^-32)
 * as one fused product of doubles. Near 1.5 * 2^20 the unit in the last place of a double is 2^-32. The upper
 * 32 bits of r are then the integer part plus a constant whose lower 16 bits are 0, and the lower 32 bits are
 * the fraction. The fraction is below 2 * near exactly if the product is within near * 2^-32 of a tie. r and
 * the constant each have an error of half of 2^-32. All other results are therefore certain if near exceeds
 * the products' error by two.
 *
 * The upper 32 bits, as int32, are monotonic in r; negative r make them negative. Products out of range are
 * therefore clamped as integers: from below before the constant is subtracted, from above by the saturation
 * to int16 and by a minimum after it. uint16 results are int16 ones with their top bit flipped. */
#ifndef DQ_KERNELS_REQUANTIZE_S64_H
#define DQ_KERNELS_REQUANTIZE_S64_H

#include "kernels/gemm_s16/gemm_s16.h"

typedef struct fixed_point {
    double begin;      /* added to shift */
    int32_t near;      /* 0: no product is certain */
    int32_t low;       /* the smallest upper 32 bits of r */
    int32_t add;       /* added to the upper 32 bits: gives results before the flip */
    int16_t high;      /* the largest result before the flip */
    uint16_t sign_xor; /* exclusive or with results */
} fixed_point;

static inline fixed_point fixed_point_of(const dq_q16_sums *s)
{
    fixed_point f = {.near = s->error < 0x1p-4 ? (int32_t)(s->error * 0x1p32) + 3 : 0};
    /* `origin` is the upper half of 1.5 * 2^20. */
    const int32_t origin = 0x41380000, middle = s->lo < 0 ? 0 : 0x8000;
    f.begin = 1572864.5 + f.near * 0x1p-32;
    f.low = origin + s->lo - s->zero_point;
    f.add = s->zero_point - middle - origin;
    f.high = (int16_t)(s->hi - middle);
    f.sign_xor = (uint16_t)middle;
    return f;
}

#endif
