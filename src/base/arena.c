/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/checked.h"
#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define DQ_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DQ_ASAN 1
#endif
#endif
#ifdef DQ_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define REDZONE 32
#else
#define POISON(p, n) ((void)0)
#define UNPOISON(p, n) ((void)0)
#define REDZONE 0
#endif

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20 };

struct dq_arena_block {
    dq_arena_block *next;
    size_t size; /* Of data. */
    size_t used;
    char *data;
};

static dq_arena_block *new_block(const dq_allocator *allocator, size_t size)
{
    size_t total;
    if (!dq_add_size(sizeof(dq_arena_block), size, &total))
        return NULL;
    dq_arena_block *block = dq_memory_alloc(allocator, total);
    if (!block)
        return NULL;
    block->next = NULL;
    block->size = size;
    block->used = 0;
    block->data = (char *)(block + 1);
    POISON(block->data, size);
    return block;
}

/* The address of an allocation in `block`; NULL: it does not fit. */
static char *fit(dq_arena_block *block, size_t size, size_t align)
{
    uintptr_t start = (uintptr_t)block->data + block->used;
    size_t pad = (size_t)(-start & (align - 1));
    if (pad > block->size - block->used || size > block->size - block->used - pad)
        return NULL;
    block->used += pad + size;
    return (char *)(start + pad);
}

static char *fit_somewhere(dq_arena *arena, size_t size, size_t align)
{
    for (dq_arena_block *block = arena->current; block; block = block->next) {
        char *piece = fit(block, size, align);
        if (piece) {
            arena->current = block;
            return piece;
        }
    }
    size_t padded_size;
    if (!dq_add_size(size, align, &padded_size))
        return NULL;
    const size_t step = dq_least(arena->used < FIRST_BLOCK ? FIRST_BLOCK : arena->used,
                                 arena->largest_block ? arena->largest_block : LARGEST_BLOCK);
    dq_arena_block *block = new_block(arena->allocator, padded_size > step ? padded_size : step);
    if (!block)
        return NULL;
    dq_arena_block **end = &arena->first;
    while (*end)
        end = &(*end)->next;
    *end = block;
    arena->current = block;
    arena->held += block->size;
    return fit(block, size, align);
}

void *dq_arena_alloc(dq_arena *arena, size_t size, size_t align)
{
    size_t guarded;
    if (!dq_add_size(size, REDZONE, &guarded))
        return NULL;
    char *piece = fit_somewhere(arena, guarded ? guarded : 1, align);
    if (!piece)
        return NULL;
    arena->used += guarded;
    UNPOISON(piece, size);
    memset(piece, 0, size);
    return piece;
}

void *dq_arena_array(dq_arena *arena, size_t count, size_t size)
{
    size_t total;
    if (!dq_mul_size(count, size, &total))
        return NULL;
    return dq_arena_alloc(arena, total, 16);
}

char *dq_arena_string(dq_arena *arena, const char *bytes, size_t length)
{
    size_t total;
    if (!dq_add_size(length, 1, &total))
        return NULL;
    char *copy = dq_arena_alloc(arena, total, 1);
    if (copy && length)
        memcpy(copy, bytes, length);
    return copy;
}

char *dq_arena_printf(dq_arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : dq_arena_alloc(arena, (size_t)length + 1, 1);
    if (text)
        vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void dq_arena_reset(dq_arena *arena)
{
    /* Ratio of allocated to used bytes above which reset frees the blocks: an allocation that grows from time
     * to time leaves an unused block each time. */
    enum { LITTLE = 4 };
    for (dq_arena_block *block = arena->first; block; block = block->next) {
        block->used = 0;
        POISON(block->data, block->size);
    }
    if (arena->held > LARGEST_BLOCK && arena->held / LITTLE > arena->used)
        dq_arena_free(arena);
    arena->current = arena->first;
    arena->used = 0;
}

void dq_arena_free(dq_arena *arena)
{
    dq_arena_block *block = arena->first;
    while (block) {
        dq_arena_block *next = block->next;
        UNPOISON(block->data, block->size);
        dq_memory_free(arena->allocator, block, sizeof *block + block->size);
        block = next;
    }
    *arena = (dq_arena){.largest_block = arena->largest_block, .allocator = arena->allocator};
}
