/* SPDX-License-Identifier: Apache-2.0 */
/* The random numbers of all C tests: xorshift64* (S. Vigna, An experimental exploration of Marsaglia's
 * xorshift generators, scrambled, 2016). The same seed gives the same numbers on every machine and with every
 * compiler. A seed is any number but 0, and the state after it. */
#ifndef DQ_TESTS_RANDOM_H
#define DQ_TESTS_RANDOM_H

#include <stdint.h>

static inline uint64_t random_bits(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1d;
}

/** Returns a number from 0 to n - 1; n is 1 or more. */
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((random_bits(state) >> 32) % n);
}

/** Returns a multiple of 2^-24 from -0.5 to 0.5, which a float holds. */
static inline double random_fraction(uint64_t *state)
{
    return (double)(random_bits(state) >> 40) * 0x1p-24 - 0.5;
}

#endif
