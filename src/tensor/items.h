/* Sequences and optionals: dq_tensors of another kind. `dtype` is that of the tensors inside, rank and size
 * are 0, `count` is the number of items (of an optional 0 or 1), and `data` points to an array of pointers to
 * them. Items never change once they are in a list, so that lists share them. */
#ifndef DQ_TENSOR_ITEMS_H
#define DQ_TENSOR_ITEMS_H

#include "tensor/tensor.h"

/** The items of a sequence or optional whose data is there. */
static inline const dq_tensor *const *dq_items(const dq_tensor *t)
{
    return (const dq_tensor *const *)t->data;
}

/** Makes *t a sequence (of tensors) or an optional (of `item_kind`), with no data yet. */
void dq_items_describe(dq_tensor *t, dq_kind kind, dq_kind item_kind, dq_dtype dtype);

/** Gives t, already described, room for `count` items in the arena: *items, to be filled in by the caller. */
dq_status dq_items_alloc(dq_arena *arena, dq_tensor *t, size_t count, const dq_tensor ***items,
                         dq_error *err);

/** A copy of t with its data in the arena, down to the items' (but for the bytes of strings). */
dq_status dq_tensor_keep(dq_arena *arena, const dq_tensor *t, const dq_tensor **kept, dq_error *err);

/** "tensor(float)", "seq(tensor(float))", "optional(seq(tensor(float)))" into buffer; returns buffer. */
enum { DQ_KIND_TEXT = 64 };
const char *dq_tensor_kind_text(const dq_tensor *t, char buffer[DQ_KIND_TEXT]);

#endif
