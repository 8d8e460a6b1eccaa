/* SPDX-License-Identifier: Apache-2.0 */
/* Sums to quantized values by floats. Fused float products decide nearly all roundings. The sum
 *     r = acc * scale + (768.5 + 2^-13)
 * is taken times UNIT, a power of two, so that its bits, an integer, count steps of 2^-14 from below where
 * the product is under 256 in size: bits 14 and up are then the rounded product and a constant, and the lower
 * 14 say how far it was from the next half quantum. acc and scale are each off by at most 2^-24 of their size
 * and r by half a step, one step in all, so that the result is sure unless fewer than four steps are left;
 * those few are done in double and exactly (requantize.h). A column's shift is added to the constant, which
 * is then off by half a step, too. From 256 on all results saturate, whatever the
 * zero point, and bits of floats go up with them (those of negative ones are negative).
 *
 * UNIT is such that bits 14 and up of 768 * UNIT are at least 2^15 + 255 and fit in 16 bits. Then they
 * saturate to 16 bits without a sign, and what is left after taking away MIDDLE less a zero point is below
 * 2^15 for every product up to infinity, as packing to bytes wants it. */
#ifndef DQ_KERNELS_REQUANTIZE_FLOAT_H
#define DQ_KERNELS_REQUANTIZE_FLOAT_H

enum { FRACTION = 14, NEAR_TIE = 3, MIDDLE = (80 << 9) + 256 /* bits 14 and up of 768 * UNIT */ };

#define UNIT 0x1p-56
#define BEGINNING ((768.5f + 0x1p-13f) * 0x1p-56f)

/* The constant for a column with a shift. */
static inline float beginning_with(double shift)
{
    return (float)((double)BEGINNING + shift * UNIT);
}

#endif
