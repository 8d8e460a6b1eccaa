/* SPDX-License-Identifier: Apache-2.0 */
/* An arena allocator: many small allocations that are freed at once. Not thread-safe. AddressSanitizer builds
 * poison the gaps between allocations, so that overruns are detected. */
#ifndef DQ_BASE_ARENA_H
#define DQ_BASE_ARENA_H

#include <dqrun/dqrun.h>

typedef struct dq_arena_block dq_arena_block;

/** All zeros is an empty arena. */
typedef struct dq_arena {
    dq_arena_block *first;         /* All blocks, oldest first: reset keeps them. */
    dq_arena_block *current;       /* The block that is being filled. */
    size_t used;                   /* Bytes allocated since the last reset. */
    size_t held;                   /* Bytes of all blocks. */
    size_t largest_block;          /* Bytes up to which blocks grow with the arena; 0: 1 MiB. */
    const dq_allocator *allocator; /* Allocates the blocks, and must outlive the arena; NULL: malloc. */
} dq_arena;

/** Zeroed memory aligned to `align` (a power of two, at most DQ_ALIGN); NULL if memory runs out. */
void *dq_arena_alloc(dq_arena *arena, size_t size, size_t align);
/** Zeroed array; NULL also if count * size overflows. */
void *dq_arena_array(dq_arena *arena, size_t count, size_t size);
/** A zero-terminated copy of `length` bytes. */
char *dq_arena_string(dq_arena *arena, const char *bytes, size_t length);
char *dq_arena_printf(dq_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Discards all allocations. Keeps the blocks for later ones, unless only a small part of them was used. */
void dq_arena_reset(dq_arena *arena);
void dq_arena_free(dq_arena *arena);

#define DQ_NEW(arena, type) ((type *)dq_arena_alloc((arena), sizeof(type), _Alignof(type)))
#define DQ_NEW_ARRAY(arena, count, type) ((type *)dq_arena_array((arena), (count), sizeof(type)))

#endif
