/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/owned.h"

#include "base/checked.h"
#include "base/memory.h"
#include "tensor/items.h"

#include <string.h>

/* A tensor with a copy of its allocator, so that it may outlive the allocator's owner. */
typedef struct holder {
    dq_tensor t; /* first */
    dq_allocator allocator;
} holder;

/* Creates a tensor with the fields of `like` but without data. */
static dq_tensor *new_tensor(const dq_allocator *allocator, const dq_tensor *like)
{
    holder *h = dq_memory_calloc(allocator, 1, sizeof *h);
    if (!h)
        return NULL;
    h->t = *like;
    h->t.data = NULL;
    h->t.mapped = h->t.unaligned = h->t.is_const = false;
    h->t.owned = true;
    h->t.allocator = NULL;
    if (allocator && allocator->allocate) {
        h->allocator = *allocator;
        h->t.allocator = &h->allocator;
    }
    return &h->t;
}

dq_status dq_tensor_new_owned(const dq_allocator *allocator, const dq_tensor *like, dq_tensor **out,
                              dq_error *err)
{
    dq_tensor *t = new_tensor(allocator, like);
    if (!t)
        return dq_no_memory(err, sizeof *t, "a tensor");
    t->data = dq_memory_alloc(allocator, t->size);
    if (!t->data) {
        dq_tensor_free_owned(t);
        return dq_no_memory(err, like->size, "a tensor");
    }
    if (t->dtype == DQ_STRING)
        memset(t->data, 0, t->size);
    *out = t;
    return DQ_OK;
}

typedef struct own_list {
    dq_item_list list;
    const dq_tensor *items[];
} own_list;

static bool size_of_list(size_t count, size_t *size)
{
    return dq_mul_size(count, sizeof(const dq_tensor *), size) && dq_add_size(*size, sizeof(own_list), size);
}

dq_status dq_tensor_new_list(const dq_allocator *allocator, const dq_tensor *like, size_t count,
                             dq_tensor *const *items, dq_tensor **out, dq_error *err)
{
    size_t size;
    if (!size_of_list(count, &size))
        return dq_no_memory(err, SIZE_MAX, "a sequence");
    dq_tensor *t = new_tensor(allocator, like);
    own_list *own = dq_memory_calloc(allocator, 1, size);
    if (!t || !own) {
        dq_memory_free(allocator, own, size);
        dq_tensor_free_owned(t);
        return dq_no_memory(err, size, "a sequence");
    }
    for (size_t i = 0; i < count; i++)
        own->items[i] = items ? items[i] : NULL;
    own->list.items = own->items;
    t->data = own;
    t->count = count;
    *out = t;
    return DQ_OK;
}

dq_status dq_tensor_put_string(dq_tensor *t, size_t i, const char *bytes, size_t length, dq_error *err)
{
    char *copy = length < SIZE_MAX ? dq_memory_calloc(t->allocator, 1, length + 1) : NULL;
    if (!copy)
        return dq_no_memory(err, length, "a string");
    if (length)
        memcpy(copy, bytes, length);
    dq_string *s = &dq_data(t, dq_string)[i];
    dq_memory_free(t->allocator, s->bytes, s->length + 1);
    *s = (dq_string){copy, length};
    return DQ_OK;
}

/* ---- Copies -------------------------------------------------------------------------------------------- */

static dq_status copy_elements(dq_tensor *to, const dq_tensor *from, dq_error *err)
{
    if (to->dtype != DQ_STRING) {
        if (to->size)
            memcpy(to->data, from->data, to->size);
        return DQ_OK;
    }
    for (size_t i = 0; i < from->count; i++) {
        const dq_string *s = &dq_data(from, dq_string)[i];
        if (s->length)
            DQ_TRY(dq_tensor_put_string(to, i, s->bytes, s->length, err));
    }
    return DQ_OK;
}

/* Recursion is at most three deep: an optional of a sequence of tensors. */
static dq_status copy_list(const dq_allocator *allocator, const dq_tensor *t, dq_tensor **out, dq_error *err)
{
    dq_tensor *list;
    DQ_TRY(dq_tensor_new_list(allocator, t, t->count, NULL, &list, err));
    own_list *own = list->data;
    for (size_t i = 0; i < t->count; i++) {
        dq_tensor *item = NULL;
        const dq_status status = dq_tensor_copy_owned(allocator, dq_item(t, i), &item, err);
        if (status != DQ_OK) {
            dq_tensor_free_owned(list);
            return status;
        }
        own->items[i] = item;
    }
    *out = list;
    return DQ_OK;
}

dq_status dq_tensor_copy_owned(const dq_allocator *allocator, const dq_tensor *t, dq_tensor **out,
                               dq_error *err)
{
    if (t->kind != DQ_KIND_TENSOR)
        return copy_list(allocator, t, out, err);
    dq_tensor *copy;
    DQ_TRY(dq_tensor_new_owned(allocator, t, &copy, err));
    const dq_status status = copy_elements(copy, t, err);
    if (status != DQ_OK)
        dq_tensor_free_owned(copy);
    else
        *out = copy;
    return status;
}

/* ---- Freeing ------------------------------------------------------------------------------------------- */

static void free_data(const dq_tensor *t, const dq_allocator *allocator)
{
    size_t size = t->size;
    if (!t->data)
        return;
    if (t->kind != DQ_KIND_TENSOR) {
        size_of_list(t->count, &size);
        for (size_t i = 0; i < t->count; i++)
            dq_tensor_free_owned((dq_tensor *)(uintptr_t)dq_item(t, i));
    } else if (t->dtype == DQ_STRING) {
        for (size_t i = 0; i < t->count; i++)
            dq_memory_free(allocator, dq_data(t, dq_string)[i].bytes, dq_data(t, dq_string)[i].length + 1);
    }
    dq_memory_free(allocator, t->data, size);
}

void dq_tensor_free_owned(dq_tensor *t)
{
    if (!t)
        return;
    const dq_allocator allocator = t->allocator ? *t->allocator : (dq_allocator){0};
    if (t->owned)
        free_data(t, &allocator);
    dq_memory_free(&allocator, t, sizeof(holder));
}
