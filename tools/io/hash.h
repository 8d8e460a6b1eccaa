/* SPDX-License-Identifier: Apache-2.0 */
/* A hash of a value that two machines can compare. docs/hash.md defines it for other programs. */
#ifndef DQ_TOOLS_IO_HASH_H
#define DQ_TOOLS_IO_HASH_H

#include "io/sha256.h"

#include <dqrun/dqrun.h>

/** Writes the SHA-256 over these bytes of the value, in hexadecimal, and returns `text`:
 *
 * - a tensor: its type and shape as text, such as "float[2,3]" and a line feed, then its elements;
 *
 * - an element of 8 bits or more: its bytes, the least significant first; a complex one is two floats;
 *
 * - an element under 8 bits: one byte with the element in its lowest bits and zeros above;
 *
 * - a NaN: as the one of the type with the quiet bit alone, because sign and payload mean nothing;
 *
 * - a string: its length in 8 bytes, the least significant first, then its bytes;
 *
 * - a sequence or optional: "seq(float)[N]" or "optional(float)[N]" and a line feed, then its N items. */
const char *io_hash(const dq_tensor *value, char text[SHA256_TEXT]);

#endif
