/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of FIPS 180-4, for bytes that come in parts. */
#ifndef DQ_TOOLS_IO_SHA256_H
#define DQ_TOOLS_IO_SHA256_H

#include <stddef.h>
#include <stdint.h>

/** Bytes of a digest, and of its hexadecimal text with the final NUL. */
enum { SHA256_BYTES = 32, SHA256_TEXT = 2 * SHA256_BYTES + 1 };

typedef struct sha256 {
    uint32_t state[8];
    uint64_t size;     /**< bytes so far */
    uint8_t block[64]; /**< its first size % 64 bytes are not processed yet */
} sha256;

void sha256_start(sha256 *hash);
void sha256_add(sha256 *hash, const void *bytes, size_t size);
/** Writes the digest in lower-case hexadecimal. The hash must be started anew before more bytes. Returns
 * `text`. */
const char *sha256_finish(sha256 *hash, char text[SHA256_TEXT]);

#endif
