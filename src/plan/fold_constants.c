/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fold_constants.h"

#include "base/lock.h"
#include "base/memory.h"

#include <string.h>

struct dq_folded {
    dq_lock lock;
    dq_arena arena;
    size_t count;
    const dq_tensor *values[];
};

static size_t size_of(size_t value_count)
{
    return sizeof(dq_folded) + value_count * sizeof(dq_tensor *);
}

dq_status dq_folded_create(size_t value_count, const dq_allocator *allocator, dq_folded **out, dq_error *err)
{
    const size_t size = size_of(value_count);
    dq_folded *folded = dq_memory_calloc(allocator, 1, size);
    if (!folded)
        return dq_no_memory(err, size, "folded constants");
    dq_status status = dq_lock_create(&folded->lock, "folded constants", err);
    if (status != DQ_OK) {
        dq_memory_free(allocator, folded, size);
        return status;
    }
    folded->arena.allocator = allocator;
    folded->count = value_count;
    *out = folded;
    return DQ_OK;
}

void dq_folded_free(dq_folded *folded)
{
    if (!folded)
        return;
    dq_arena_free(&folded->arena);
    dq_lock_destroy(&folded->lock);
    dq_memory_free(folded->arena.allocator, folded, size_of(folded->count));
}

const dq_tensor *dq_folded_get(dq_folded *folded, uint32_t id)
{
    dq_lock_take(&folded->lock);
    const dq_tensor *t = id < folded->count ? folded->values[id] : NULL;
    dq_lock_release(&folded->lock);
    return t;
}

static dq_status copy_strings(dq_arena *arena, dq_tensor *t, dq_error *err)
{
    dq_string *s = t->data;
    for (size_t i = 0; i < t->count; i++) {
        s[i].bytes = dq_arena_string(arena, s[i].bytes, s[i].length);
        if (!s[i].bytes)
            return dq_no_memory(err, s[i].length, "a string");
    }
    return DQ_OK;
}

static dq_status keep(dq_folded *folded, uint32_t id, const dq_tensor *t, dq_error *err)
{
    dq_tensor *copy = NULL;
    DQ_TRY(dq_tensor_new(&folded->arena, t->dtype, t->rank, t->dims, 0, &copy, err));
    if (t->size)
        memcpy(copy->data, t->data, t->size);
    if (t->dtype == DQ_STRING)
        DQ_TRY(copy_strings(&folded->arena, copy, err));
    folded->values[id] = copy;
    return DQ_OK;
}

dq_status dq_folded_put(dq_folded *folded, uint32_t id, const dq_tensor *t, const dq_tensor **kept,
                        dq_error *err)
{
    dq_status status = DQ_OK;
    dq_lock_take(&folded->lock);
    if (!folded->values[id])
        status = keep(folded, id, t, err);
    *kept = folded->values[id];
    dq_lock_release(&folded->lock);
    return status;
}
