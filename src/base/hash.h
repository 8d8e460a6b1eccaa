/* SPDX-License-Identifier: Apache-2.0 */
/* A fast hash that finds accidental changes of large data. It is no protection against forgery. */
#ifndef DQ_BASE_HASH_H
#define DQ_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct dq_hash {
    uint64_t high, low;
} dq_hash;

/** XXH3 with 128 bits: the same on every processor. `bytes` may be unaligned. */
dq_hash dq_hash_bytes(const void *bytes, size_t size);

/** Below 0, 0 or above 0, as memcmp: some total order. */
int dq_hash_compare(dq_hash a, dq_hash b);

#endif
