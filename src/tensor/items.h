/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals: dq_tensors of another kind. `dtype` is that of the tensors inside, rank and size
 * are 0, `count` is the number of items (of an optional 0 or 1), and `data` points to a dq_item_list. Items
 * never change once they are in a list, and lists do not either: a changed sequence is a new list that shares
 * the items, and most of the old list's memory (items.c). */
#ifndef DQ_TENSOR_ITEMS_H
#define DQ_TENSOR_ITEMS_H

#include "tensor/tensor.h"

/** The items of a list: in an array, or in the nodes of a tree. */
typedef struct dq_item_list {
    const dq_tensor *const *items;   /* NULL: a tree */
    const struct dq_item_node *root; /* a tree; of an array NULL, or the same items once more */
    struct dq_item_storage
        *workspace; /* the array's memory, which longer lists share; NULL: it stays as it is */
} dq_item_list;

/** Item i of a sequence or optional whose data is there; in logarithmic time at most. */
const dq_tensor *dq_item(const dq_tensor *t, size_t i);

/** Makes *t a sequence (of tensors) or an optional (of `item_kind`), with no data yet. */
void dq_items_describe(dq_tensor *t, dq_kind kind, dq_kind item_kind, dq_dtype dtype);

/** Gives t, already described, room for `count` items in the arena: *items, to be filled in by the caller. */
dq_status dq_items_alloc(dq_arena *arena, dq_tensor *t, size_t count, const dq_tensor ***items,
                         dq_error *err);

/** Makes `to`, already described, the list `from` with one more item before item `at`, or without item `at`.
 * Memory and time are logarithmic in the number of items, amortised. */
dq_status dq_items_insert(dq_arena *arena, const dq_tensor *from, size_t at, const dq_tensor *item,
                          dq_tensor *to, dq_error *err);
dq_status dq_items_erase(dq_arena *arena, const dq_tensor *from, size_t at, dq_tensor *to, dq_error *err);

/** A copy of t with its data in the arena, down to the items' (but for the bytes of strings). */
dq_status dq_tensor_keep(dq_arena *arena, const dq_tensor *t, const dq_tensor **kept, dq_error *err);

/** "tensor(float)", "seq(tensor(float))", "optional(seq(tensor(float)))" into buffer; returns buffer. */
enum { DQ_KIND_TEXT = 64 };
const char *dq_tensor_kind_text(const dq_tensor *t, char buffer[DQ_KIND_TEXT]);

#endif
