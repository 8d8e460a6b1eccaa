/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

/* The functions become part of this file: the library needs the header of xxHash only. */
#define XXH_INLINE_ALL
#include <xxhash.h>

dq_hash dq_hash_bytes(const void *bytes, size_t size)
{
    const XXH128_hash_t hash = XXH3_128bits(bytes, size);
    return (dq_hash){hash.high64, hash.low64};
}

int dq_hash_compare(dq_hash a, dq_hash b)
{
    if (a.high != b.high)
        return a.high < b.high ? -1 : 1;
    return (a.low > b.low) - (a.low < b.low);
}
