/* SPDX-License-Identifier: Apache-2.0 */
/* Memory on large pages. Hardware prefetchers stop at page boundaries, and each new page costs a TLB lookup:
 * 4 KiB pages cost a sequential loop up to a third of its time. */
#ifndef DQ_BASE_PAGES_H
#define DQ_BASE_PAGES_H

#include <stddef.h>

/** Size of large pages on most machines, a power of two. On other machines this module only aligns. */
enum { DQ_LARGE_PAGE = 1 << 21 };

/** malloc'ed memory of `size` bytes, not cleared, aligned to 64; NULL if memory runs out. If the system has
 * large pages, as many as fit begin at its beginning. */
void *dq_pages_alloc(size_t size);
/** Requests as many large pages as fit in `size` bytes at `memory`, which is aligned to their size. */
void dq_pages_advise(void *memory, size_t size);

#endif
