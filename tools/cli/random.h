/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo-random tensors, equal on every machine. */
#ifndef DQ_TOOLS_CLI_RANDOM_H
#define DQ_TOOLS_CLI_RANDOM_H

#include <dqrun/dqrun.h>

/** Fills a tensor. The numbers come from SplitMix64, seeded with `seed` XOR the 64-bit FNV-1a hash of `name`.
 * Each element in row-major order takes one number, a complex one two:
 *
 *  - float and double: (number >> 40) / 2^23 - 1, which is uniform in [-1, 1) and exact in both;
 *
 *  - narrower floats: the largest finite value of the type that is not above that (types without a sign: not
 * above its absolute value; the smallest if there is none);
 *
 *  - integers of up to 16 bits: the highest bits of the number; larger types: 0 to 9, (number >> 32) * 10 /
 * 2^32;
 *
 *  - bool: the highest bit; strings: the letter s and such a digit. */
dq_status cli_random_fill(dq_tensor *tensor, const char *name, uint64_t seed, dq_error *err);

#endif
