/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a result: pieces that are freed together. */
#ifndef DQ_TOOLS_INSIGHT_POOL_H
#define DQ_TOOLS_INSIGHT_POOL_H

#include <dqrun/dqrun.h>

/** Starts as {0}. */
typedef struct insight_pool {
    struct insight_chunk *chunks;
} insight_pool;

/** `count` cleared elements of `size` bytes; never NULL for a count of 0. NULL: memory ran out. */
void *insight_alloc(insight_pool *pool, size_t count, size_t size);
/** A copy of the text; NULL where text is NULL or memory ran out. */
const char *insight_copy(insight_pool *pool, const char *text);
/** A formatted text; NULL: memory ran out. */
const char *insight_format(insight_pool *pool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void insight_pool_free(insight_pool *pool);

#endif
