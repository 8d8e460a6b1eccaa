/* SPDX-License-Identifier: Apache-2.0 */
/* Memory on large pages. A loop that goes straight through memory stops at the end of each page, where what
 * fetches ahead does, and asks where the next one is: pages of 4 KiB cost it up to a third of its time. */
#ifndef DQ_BASE_PAGES_H
#define DQ_BASE_PAGES_H

#include <stddef.h>

/** A power of two: the size of large pages on most machines. On others this module only aligns. */
enum { DQ_LARGE_PAGE = 1 << 21 };

/** malloc'ed memory of `size` bytes, not cleared, aligned to 64; NULL when memory ran out. As many large
 * pages as fit in it begin where it begins, if the system gives any. */
void *dq_pages_alloc(size_t size);
/** Asks for as many large pages as fit in `size` bytes at `memory`, which begins at a multiple of their size.
 */
void dq_pages_advise(void *memory, size_t size);

#endif
