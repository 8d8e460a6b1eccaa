/* SPDX-License-Identifier: Apache-2.0 */
/* Made-up tensors, the same on every machine. */
#ifndef DQ_TOOLS_CLI_RANDOM_H
#define DQ_TOOLS_CLI_RANDOM_H

#include <dqrun/dqrun.h>

/** Fills a tensor. The numbers come from SplitMix64, started at seed XOR the FNV-1a hash (64 bits) of `name`;
 * one number an element in row-major order, two for complex ones:
 *  - float and double: (number >> 40) / 2^23 - 1, which is even in [-1, 1) and exact in both;
 *  - narrower floats: the largest of the type's finite values that is not above that (types without a sign:
 * not above its absolute value; the smallest if there is none);
 *  - integers of up to 16 bits: the highest bits of the number; wider ones: 0 to 9, (number >> 32) * 10 /
 * 2^32;
 *  - bool: the highest bit; strings: the letter s and such a digit. */
dq_status cli_random_fill(dq_tensor *tensor, const char *name, uint64_t seed, dq_error *err);

#endif
