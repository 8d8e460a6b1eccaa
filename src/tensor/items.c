#include "tensor/items.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

void dq_items_describe(dq_tensor *t, dq_kind kind, dq_kind item_kind, dq_dtype dtype)
{
    *t = (dq_tensor){.kind = kind, .item_kind = item_kind, .dtype = dtype};
}

dq_status dq_items_alloc(dq_arena *arena, dq_tensor *t, size_t count, const dq_tensor ***items, dq_error *err)
{
    *items = DQ_NEW_ARRAY(arena, count ? count : 1, const dq_tensor *);
    if (!*items)
        return dq_no_memory(err, count * sizeof **items, "the items of a sequence");
    t->data = *items;
    t->count = count;
    return DQ_OK;
}

/* Sequences hold tensors and optionals hold sequences at most, so that this goes three deep. */
dq_status dq_tensor_keep(dq_arena *arena, const dq_tensor *t, const dq_tensor **kept, dq_error *err)
{
    dq_tensor *copy = DQ_NEW(arena, dq_tensor);
    if (!copy)
        return dq_no_memory(err, sizeof *copy, "an item");
    *copy = *t;
    copy->owned = false;
    *kept = copy;
    if (t->kind == DQ_KIND_TENSOR) {
        copy->data = dq_arena_alloc(arena, t->size ? t->size : 1, DQ_ALIGN);
        if (!copy->data)
            return dq_no_memory(err, t->size, "an item");
        if (t->size)
            memcpy(copy->data, t->data, t->size);
        return DQ_OK;
    }
    const dq_tensor **items;
    DQ_TRY(dq_items_alloc(arena, copy, t->count, &items, err));
    for (size_t i = 0; i < t->count; i++)
        DQ_TRY(dq_tensor_keep(arena, dq_items(t)[i], &items[i], err));
    return DQ_OK;
}

const char *dq_tensor_kind_text(const dq_tensor *t, char buffer[DQ_KIND_TEXT])
{
    const char *dtype = dq_dtype_name(t->dtype);
    if (t->kind == DQ_KIND_SEQUENCE)
        snprintf(buffer, DQ_KIND_TEXT, "seq(tensor(%s))", dtype);
    else if (t->kind == DQ_KIND_OPTIONAL && t->item_kind == DQ_KIND_SEQUENCE)
        snprintf(buffer, DQ_KIND_TEXT, "optional(seq(tensor(%s)))", dtype);
    else
        snprintf(buffer, DQ_KIND_TEXT, t->kind == DQ_KIND_OPTIONAL ? "optional(tensor(%s))" : "tensor(%s)",
                 dtype);
    return buffer;
}
