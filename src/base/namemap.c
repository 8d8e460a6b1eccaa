/* SPDX-License-Identifier: Apache-2.0 */
#include "base/namemap.h"

#include "base/memory.h"

#include <string.h>

struct dq_namemap_entry {
    const char *name; /* NULL: free. */
    void *value;
    uint64_t hash;
};

/* FNV-1a. Its seed is the address of a static object, which differs between processes if the system
 * randomizes addresses. Thus a file cannot contain names that are known to collide. */
static uint64_t hash_name(const char *name)
{
    static const char anchor = 0;
    uint64_t hash = 0xCBF29CE484222325u ^ (uint64_t)(uintptr_t)&anchor;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001B3u;
    return hash ^ (hash >> 29);
}

static dq_namemap_entry *slot(const dq_namemap *map, const char *name, uint64_t hash)
{
    size_t mask = map->capacity - 1;
    for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
        dq_namemap_entry *entry = &map->entries[i];
        if (!entry->name || (entry->hash == hash && strcmp(entry->name, name) == 0))
            return entry;
    }
}

void *dq_namemap_get(const dq_namemap *map, const char *name)
{
    if (!map->count)
        return NULL;
    dq_namemap_entry *entry = slot(map, name, hash_name(name));
    return entry->name ? entry->value : NULL;
}

static void free_entries(const dq_namemap *map)
{
    dq_memory_free(map->allocator, map->entries, map->capacity * sizeof *map->entries);
}

static bool grow(dq_namemap *map)
{
    dq_namemap larger = *map;
    larger.capacity = map->capacity ? map->capacity * 2 : 16;
    larger.entries = dq_memory_calloc(map->allocator, larger.capacity, sizeof *larger.entries);
    if (!larger.entries)
        return false;
    for (size_t i = 0; i < map->capacity; i++)
        if (map->entries[i].name)
            *slot(&larger, map->entries[i].name, map->entries[i].hash) = map->entries[i];
    free_entries(map);
    *map = larger;
    return true;
}

bool dq_namemap_put(dq_namemap *map, const char *name, void *value)
{
    if ((map->count + 1) * 4 > map->capacity * 3 && !grow(map))
        return false;
    uint64_t hash = hash_name(name);
    dq_namemap_entry *entry = slot(map, name, hash);
    if (!entry->name)
        map->count++;
    *entry = (dq_namemap_entry){name, value, hash};
    return true;
}

void dq_namemap_free(dq_namemap *map)
{
    free_entries(map);
    *map = (dq_namemap){.allocator = map->allocator};
}
