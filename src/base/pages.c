/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise */
#include "base/pages.h"

#include "base/checked.h"

#include <stdlib.h>
#include <sys/mman.h>

void dq_pages_advise(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    if (size >= DQ_LARGE_PAGE) /* If the system refuses, small pages are used. */
        madvise(memory, size / DQ_LARGE_PAGE * DQ_LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)size;
#endif
}

void *dq_pages_alloc(size_t size)
{
    size_t align = size < DQ_LARGE_PAGE ? 64 : DQ_LARGE_PAGE, requested;
    if (!dq_align_size(size ? size : 1, align, &requested))
        return NULL;
    void *memory = aligned_alloc(align, requested);
    if (memory)
        dq_pages_advise(memory, size);
    return memory;
}
