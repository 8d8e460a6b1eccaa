/* SPDX-License-Identifier: Apache-2.0 */
/* Long-lived memory of a model or session: from the caller's dq_allocator if there is one, else from malloc.
 * Memory that lives only during one call comes from malloc directly. */
#ifndef DQ_BASE_MEMORY_H
#define DQ_BASE_MEMORY_H

#include <dqrun/dqrun.h>

/** Alignment requested from a caller's allocator: a cache line. */
enum { DQ_MEMORY_ALIGN = 64 };

/** `size` bytes, not cleared, aligned to DQ_MEMORY_ALIGN; NULL if memory runs out. `allocator` NULL, or
 * without functions: malloc, on large pages if that pays off (base/pages.h). */
void *dq_memory_alloc(const dq_allocator *allocator, size_t size);
/** Cleared memory for `count` elements of `size` bytes, aligned for any type; NULL also if the product
 * overflows. */
void *dq_memory_calloc(const dq_allocator *allocator, size_t count, size_t size);
/** realloc to a larger size: moves `old_size` bytes at `old` (NULL: none) to memory of `size` bytes. NULL if
 * memory runs out; `old` is then unchanged. */
void *dq_memory_grow(const dq_allocator *allocator, void *old, size_t old_size, size_t size);
/** Frees memory of any of these, all of its `size` bytes. Ignores NULL. */
void dq_memory_free(const dq_allocator *allocator, const void *memory, size_t size);

#endif
