/* SPDX-License-Identifier: Apache-2.0 */
/* Long-lived memory of a model or session: from the caller's dq_allocator where there is one, else malloc'ed.
 * What lives during one call only is malloc'ed and does not come here. */
#ifndef DQ_BASE_MEMORY_H
#define DQ_BASE_MEMORY_H

#include <dqrun/dqrun.h>

/** Alignment that a caller's allocator is asked for: a cache line. */
enum { DQ_MEMORY_ALIGN = 64 };

/** `size` bytes, not cleared, aligned to DQ_MEMORY_ALIGN; NULL when memory ran out. `allocator` NULL, or one
 * without functions: malloc'ed, on large pages where that pays (base/pages.h). */
void *dq_memory_alloc(const dq_allocator *allocator, size_t size);
/** Cleared memory for `count` elements of `size` bytes, aligned for any type; NULL also when the product
 * overflows. */
void *dq_memory_calloc(const dq_allocator *allocator, size_t count, size_t size);
/** realloc: moves `old_size` bytes at `old` (NULL: none) to memory of `size` bytes, which is larger. NULL
 * when memory ran out: `old` is as it was. */
void *dq_memory_grow(const dq_allocator *allocator, void *old, size_t old_size, size_t size);
/** Gives memory of any of these back, all of its `size` bytes. NULL is ignored. */
void dq_memory_free(const dq_allocator *allocator, const void *memory, size_t size);

#endif
