/* When quantizing to 8 bits may multiply with the scale's reciprocal in place of dividing. */
#ifndef DQ_KERNELS_RECIPROCAL_H
#define DQ_KERNELS_RECIPROCAL_H

#include <math.h>
#include <stdbool.h>

/* A product x * (1 / s) is off from the quotient x / s by less than 2^-22 of it (three roundings of 2^-24
 * each). A quotient clamped to the bounds of an 8-bit type less its zero point is at most 2^8 in size, so off
 * by less than 2^-14: where the product is not farther than this from an integer, both round to that integer.
 */
#define DQ_ROUNDS_ALIKE (0.5f - 0x1p-13f)

/** Neither s nor 1 / s is near the ends of float's range, so that the reciprocal has all its bits. */
static inline bool dq_reciprocal_serves(float s)
{
    return fabsf(s) >= 0x1p-100f && fabsf(s) <= 0x1p100f;
}

#endif
