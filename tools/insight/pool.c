/* SPDX-License-Identifier: Apache-2.0 */
#include "insight/pool.h"

#include "io/common.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16, ALIGNMENT = 16 };

struct insight_chunk {
    struct insight_chunk *next;
    size_t used, size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

static struct insight_chunk *add_chunk(insight_pool *pool, size_t size)
{
    struct insight_chunk *chunk = calloc(1, sizeof *chunk + size);
    if (!chunk)
        return NULL;
    chunk->size = size;
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    return chunk;
}

void *insight_alloc(insight_pool *pool, size_t count, size_t size)
{
    size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
    struct insight_chunk *chunk = pool->chunks;
    if (!chunk || chunk->size - chunk->used < bytes)
        chunk = add_chunk(pool, bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES);
    if (!chunk)
        return NULL;
    void *memory = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return memory;
}

const char *insight_copy(insight_pool *pool, const char *text)
{
    char *copy = text ? insight_alloc(pool, strlen(text) + 1, 1) : NULL;
    if (copy)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

const char *insight_format(insight_pool *pool, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *text = length < 0 ? NULL : insight_alloc(pool, (size_t)length + 1, 1);
    if (text) {
        va_start(args, format);
        vsnprintf(text, (size_t)length + 1, format, args);
        va_end(args);
    }
    return text;
}

void insight_pool_free(insight_pool *pool)
{
    while (pool->chunks) {
        struct insight_chunk *next = pool->chunks->next;
        free(pool->chunks);
        pool->chunks = next;
    }
}
