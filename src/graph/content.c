/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/content.h"

#include "base/file.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

typedef struct constant {
    const char *name;
    const dq_tensor *tensor;
    bool hashed;
    dq_hash hash; /* of its data */
} constant;

typedef struct place {
    const void *data;
    size_t size;
    uint32_t number;
} place;

struct dq_content {
    const dq_allocator *allocator;
    dq_hash types;
    constant *constants;
    place *by_data; /* of each constant, ordered */
    size_t count, capacity;
};

dq_hash dq_tensor_hash(const dq_tensor *t)
{
    enum { PIECE = 1 << 20 };
    const char *bytes = t->data;
    struct {
        dq_hash before, piece;
        uint64_t size;
    } all;
    memset(&all, 0, sizeof all);
    all.size = t->size;
    for (size_t at = 0, n; at < t->size; at += n) {
        n = t->size - at < PIECE ? t->size - at : PIECE;
        if (t->mapped)
            dq_file_populate(bytes + at, n);
        all.piece = dq_hash_bytes(bytes + at, n);
        all.before = dq_hash_bytes(&all, sizeof all);
        if (t->mapped)
            dq_file_forget(bytes + at, n);
    }
    return dq_hash_bytes(&all, sizeof all);
}

static bool add(dq_content *content, const char *name, const dq_tensor *t)
{
    struct {
        dq_hash before;
        uint64_t dtype, rank;
        int64_t dims[DQ_MAX_RANK];
    } all;
    if (!t)
        return true;
    if (content->count == content->capacity) {
        const size_t capacity = content->capacity ? 2 * content->capacity : 64;
        constant *grown = dq_memory_grow(content->allocator, content->constants,
                                         content->capacity * sizeof *grown, capacity * sizeof *grown);
        if (!grown)
            return false;
        content->constants = grown;
        content->capacity = capacity;
    }
    content->constants[content->count++] = (constant){.name = name, .tensor = t};
    memset(&all, 0, sizeof all);
    all.before = content->types;
    all.dtype = (uint64_t)t->dtype;
    all.rank = t->rank;
    memcpy(all.dims, t->dims, t->rank * sizeof *t->dims);
    content->types = dq_hash_bytes(&all, sizeof all);
    return true;
}

static bool add_graph(dq_content *content, const dq_graph *g)
{
    for (uint32_t i = 0; i < g->value_count; i++)
        if (!add(content, g->all[i]->name, g->all[i]->constant))
            return false;
    for (uint32_t n = 0; n < g->node_count; n++)
        for (uint32_t a = 0; a < g->nodes[n]->attr_count; a++) {
            const dq_attr *attr = &g->nodes[n]->attrs[a];
            dq_graph *const *graphs = NULL;
            const size_t count = dq_attr_graphs(attr, &graphs);
            if (attr->kind == DQ_ATTR_TENSOR && !add(content, g->nodes[n]->name, attr->u.tensor))
                return false;
            for (size_t i = 0; i < count; i++)
                if (!add_graph(content, graphs[i]))
                    return false;
        }
    return true;
}

static int compare(const void *a, const void *b)
{
    const place *x = a, *y = b;
    if (x->data != y->data)
        return (uintptr_t)x->data < (uintptr_t)y->data ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static bool order_by_data(dq_content *content)
{
    content->by_data = dq_memory_calloc(content->allocator, content->count + 1, sizeof *content->by_data);
    if (!content->by_data)
        return false;
    for (size_t i = 0; i < content->count; i++) {
        const dq_tensor *t = content->constants[i].tensor;
        content->by_data[i] = (place){t->data, t->size, (uint32_t)i};
    }
    if (content->count)
        qsort(content->by_data, content->count, sizeof *content->by_data, compare);
    return true;
}

dq_status dq_content_create(const dq_ir *ir, const dq_allocator *allocator, dq_content **out, dq_error *err)
{
    dq_content *content = dq_memory_calloc(allocator, 1, sizeof *content);
    if (!content)
        return dq_no_memory(err, sizeof *content, "hashes of a model's constants");
    content->allocator = allocator;
    if (!add_graph(content, ir->graph) || !order_by_data(content)) {
        dq_content_free(content);
        return dq_no_memory(err, sizeof(constant), "hashes of a model's constants");
    }
    *out = content;
    return DQ_OK;
}

void dq_content_free(dq_content *content)
{
    if (!content)
        return;
    const dq_allocator *allocator = content->allocator;
    if (content->by_data)
        dq_memory_free(allocator, content->by_data, (content->count + 1) * sizeof *content->by_data);
    dq_memory_free(allocator, content->constants, content->capacity * sizeof *content->constants);
    dq_memory_free(allocator, content, sizeof *content);
}

dq_hash dq_content_types(const dq_content *content)
{
    return content->types;
}

bool dq_content_at(dq_content *content, uint32_t i, dq_hash *hash)
{
    constant *c = i < content->count ? &content->constants[i] : NULL;
    if (!c || c->tensor->dtype == DQ_STRING || !c->tensor->data)
        return false;
    if (!c->hashed)
        c->hash = dq_tensor_hash(c->tensor);
    c->hashed = true;
    *hash = c->hash;
    return true;
}

const char *dq_content_name(const dq_content *content, uint32_t i)
{
    return content->constants[i].name;
}

dq_hash dq_content_find(dq_content *content, const dq_tensor *t, uint32_t *i)
{
    const place key = {.data = t->data, .size = t->size};
    const place *found =
        content->count ? bsearch(&key, content->by_data, content->count, sizeof key, compare) : NULL;
    dq_hash hash;
    *i = found ? found->number : DQ_NO_CONSTANT;
    return found && dq_content_at(content, *i, &hash) ? hash : dq_tensor_hash(t);
}
