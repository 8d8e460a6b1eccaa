/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include "base/checked.h"
#include "base/pages.h"

#include <stdlib.h>
#include <string.h>

static bool is_custom(const dq_allocator *allocator)
{
    return allocator && allocator->allocate;
}

/* An empty allocation has an address, too. */
static size_t at_least_one(size_t size)
{
    return size ? size : 1;
}

void *dq_memory_alloc(const dq_allocator *allocator, size_t size)
{
    return is_custom(allocator) ? allocator->allocate(allocator->arg, at_least_one(size), DQ_MEMORY_ALIGN)
                                : dq_pages_alloc(size);
}

void *dq_memory_calloc(const dq_allocator *allocator, size_t count, size_t size)
{
    size_t bytes;
    if (!dq_mul_size(count, size, &bytes))
        return NULL;
    if (!is_custom(allocator))
        return calloc(1, at_least_one(bytes));
    void *memory = dq_memory_alloc(allocator, bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
}

void *dq_memory_grow(const dq_allocator *allocator, void *old, size_t old_size, size_t size)
{
    if (!is_custom(allocator))
        return realloc(old, at_least_one(size));
    void *grown = dq_memory_alloc(allocator, size);
    if (!grown)
        return NULL;
    if (old)
        memcpy(grown, old, old_size);
    dq_memory_free(allocator, old, old_size);
    return grown;
}

void dq_memory_free(const dq_allocator *allocator, const void *memory, size_t size)
{
    void *address = (void *)(uintptr_t)memory;
    if (!address)
        return;
    if (is_custom(allocator))
        allocator->release(allocator->arg, address, at_least_one(size));
    else
        free(address);
}
