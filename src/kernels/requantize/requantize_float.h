/* SPDX-License-Identifier: Apache-2.0 */
/* Requantization in float: fused float products decide nearly all roundings. The kernel computes
 *     r = (acc * scale + 768.5 + 2^-13) * UNIT
 * with UNIT a power of two. For products below 256 in magnitude, the bits of r, read as an integer, count
 * steps of 2^-14. Bits 14 and up are the rounded product plus a constant. The lower 14 bits are the distance
 * to the half quantum below, plus two steps.
 *
 * Error: acc and scale have relative errors of at most 2^-24, and r is rounded by half a step: one step in
 * all. The result is certain unless fewer than four steps are left. Those few are computed in double and
 * exactly (requantize.h). A column's shift is added to the constant, whose rounding is another half step.
 *
 * Saturation: from 256 on all results saturate for every zero point. The bits of floats are monotonic; those
 * of negative ones are negative. UNIT is chosen so that bits 14 and up of 768 * UNIT are at least 2^15 + 255
 * and fit in 16 bits. They then saturate to unsigned 16 bits, and the difference to MIDDLE minus a zero point
 * is below 2^15 for every product up to infinity, as the pack to bytes requires. */
#ifndef DQ_KERNELS_REQUANTIZE_FLOAT_H
#define DQ_KERNELS_REQUANTIZE_FLOAT_H

enum { FRACTION = 14, NEAR_TIE = 3, MIDDLE = (80 << 9) + 256 /* bits 14 and up of 768 * UNIT */ };

#define UNIT 0x1p-56
#define BEGINNING ((768.5f + 0x1p-13f) * 0x1p-56f)

/* The constant of a column with a shift. */
static inline float beginning_with(double shift)
{
    return (float)((double)BEGINNING + shift * UNIT);
}

#endif
