/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of files of packed weights in memory, with checksums that are right afterwards. */
#ifndef DQ_TESTS_PACKED_BYTES_H
#define DQ_TESTS_PACKED_BYTES_H

#include "base/hash.h"

#include <string.h>

enum { /* Offsets in the header and in an entry: docs/packed-weights.md. */
       AT_FORMAT = 12,
       AT_VERSION = 16,
       AT_COUNT = 68,
       AT_KEYS_END = 72,
       AT_SIZE = 80,
       AT_CHECKSUM = 104,
       HEADER = 120,
       ENTRY = 96,
       ENTRY_CHECKSUM = 16,
       ENTRY_PACKED = 72,
       ENTRY_SIZE = 80
};

/** A file whose bytes are the caller's. */
typedef struct packed_bytes {
    unsigned char *bytes;
    size_t size;
} packed_bytes;

/** The number of `length` bytes at offset `at`. */
static inline uint64_t packed_number(const packed_bytes *p, size_t at, size_t length)
{
    uint64_t number = 0;
    memcpy(&number, p->bytes + at, length);
    return number;
}

/** Offset and size of form i. */
static inline size_t packed_form(const packed_bytes *p, size_t i, size_t *length)
{
    *length = packed_number(p, HEADER + i * ENTRY + ENTRY_SIZE, 8);
    return packed_number(p, HEADER + i * ENTRY + ENTRY_PACKED, 8);
}

/** Makes the checksums those of the bytes, as one does who means harm. Any field may be wrong. */
static inline void packed_seal(packed_bytes *p)
{
    const size_t count = packed_number(p, AT_COUNT, 4), keys_end = packed_number(p, AT_KEYS_END, 8);
    unsigned char all[AT_CHECKSUM + sizeof(dq_hash)];
    for (size_t i = 0; i < count && HEADER + (i + 1) * ENTRY <= p->size; i++) {
        size_t length, packed = packed_form(p, i, &length);
        if (packed > p->size || length > p->size - packed)
            continue;
        const dq_hash form = dq_hash_bytes(p->bytes + packed, length);
        memcpy(p->bytes + HEADER + i * ENTRY + ENTRY_CHECKSUM, &form, sizeof form);
    }
    if (keys_end < HEADER || keys_end > p->size)
        return;
    const dq_hash table = dq_hash_bytes(p->bytes + HEADER, keys_end - HEADER);
    memcpy(all, p->bytes, AT_CHECKSUM);
    memcpy(all + AT_CHECKSUM, &table, sizeof table);
    const dq_hash checksum = dq_hash_bytes(all, sizeof all);
    memcpy(p->bytes + AT_CHECKSUM, &checksum, sizeof checksum);
}

/** Copies a file to `to`, whose bytes are zeros and enough, with `length` bytes of form i: the first bytes of
 * the form, or all of it and zeros. Sizes and offsets agree with it; checksums do not. */
static inline void packed_resize(const packed_bytes *from, size_t i, size_t length, packed_bytes *to)
{
    size_t at = packed_number(from, AT_KEYS_END, 8);
    memcpy(to->bytes, from->bytes, at);
    for (size_t k = 0; k < packed_number(from, AT_COUNT, 4); k++) {
        size_t old, packed = packed_form(from, k, &old);
        const uint64_t bytes = k == i ? length : old, align = bytes < 4096 ? 64 : 4096;
        const uint64_t start = (at + align - 1) / align * align;
        memcpy(to->bytes + start, from->bytes + packed, bytes < old ? bytes : old);
        memcpy(to->bytes + HEADER + k * ENTRY + ENTRY_PACKED, &start, sizeof start);
        memcpy(to->bytes + HEADER + k * ENTRY + ENTRY_SIZE, &bytes, sizeof bytes);
        at = start + bytes;
    }
    to->size = at;
    memcpy(to->bytes + AT_SIZE, &(uint64_t){at}, sizeof(uint64_t));
}

#endif
