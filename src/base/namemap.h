/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from names to pointers: open addressing, FNV-1a with a per-process seed, because names come from
 * untrusted files. */
#ifndef DQ_BASE_NAMEMAP_H
#define DQ_BASE_NAMEMAP_H

#include <dqrun/dqrun.h>

typedef struct dq_namemap_entry dq_namemap_entry;

/** All zeros is an empty map. Names are not copied: they must outlive the map. */
typedef struct dq_namemap {
    dq_namemap_entry *entries;
    size_t capacity, count;
    const dq_allocator *allocator; /* Of the entries; NULL: malloc. */
} dq_namemap;

/** The value stored under `name`, or NULL. */
void *dq_namemap_get(const dq_namemap *map, const char *name);
/** Stores `value` (not NULL) under `name` and replaces an earlier one. False: out of memory. */
bool dq_namemap_put(dq_namemap *map, const char *name, void *value);
void dq_namemap_free(dq_namemap *map);

#endif
