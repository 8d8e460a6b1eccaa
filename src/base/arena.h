/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: many small pieces that live and die together. Not thread-safe. Under AddressSanitizer the space
 * between pieces is poisoned, so that an overrun of one piece is seen. */
#ifndef DQ_BASE_ARENA_H
#define DQ_BASE_ARENA_H

#include <dqrun/dqrun.h>

typedef struct dq_arena_block dq_arena_block;

/** Zero-initialised is empty and ready. */
typedef struct dq_arena {
    dq_arena_block *first;         /* all blocks, oldest first: reset keeps them */
    dq_arena_block *current;       /* the one that is being filled */
    size_t used;                   /* bytes handed out since the last reset */
    size_t held;                   /* of all blocks */
    const dq_allocator *allocator; /* gives the blocks and outlives the arena; NULL: malloc */
} dq_arena;

/** Zeroed memory aligned to `align` (a power of two, at most DQ_ALIGN); NULL when memory ran out. */
void *dq_arena_alloc(dq_arena *arena, size_t size, size_t align);
/** Zeroed array, NULL also when count * size overflows. */
void *dq_arena_array(dq_arena *arena, size_t count, size_t size);
/** A zero-terminated copy of `length` bytes. */
char *dq_arena_string(dq_arena *arena, const char *bytes, size_t length);
char *dq_arena_printf(dq_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Forgets all pieces and keeps the memory for the next ones, unless they used little of it. */
void dq_arena_reset(dq_arena *arena);
void dq_arena_free(dq_arena *arena);

#define DQ_NEW(arena, type) ((type *)dq_arena_alloc((arena), sizeof(type), _Alignof(type)))
#define DQ_NEW_ARRAY(arena, count, type) ((type *)dq_arena_array((arena), (count), sizeof(type)))

#endif
