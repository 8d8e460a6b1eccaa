/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and optionals, represented as a dq_tensor of another kind. `dtype` is the type of the tensors
 * inside, rank and size are 0. `count` is the number of items (0 or 1 for an optional), and `data` points to
 * a dq_item_list.
 *
 * Lists and their items are immutable (a persistent data structure). A changed sequence is a new list that
 * shares the items and most of the old list's memory (items.c). */
#ifndef DQ_TENSOR_ITEMS_H
#define DQ_TENSOR_ITEMS_H

#include "tensor/tensor.h"

/** The items of a list, stored in an array or in the nodes of a tree. */
typedef struct dq_item_list {
    const dq_tensor *const *items;   /* array of the items; NULL: the list is a tree */
    const struct dq_item_node *root; /* root of the tree; for an array NULL, or a tree of the same items */
    struct dq_item_storage *storage; /* memory shared with longer lists; NULL: append copies */
} dq_item_list;

/** Returns item i of a sequence or optional whose data is set, in at most logarithmic time. */
const dq_tensor *dq_item(const dq_tensor *t, size_t i);

/** Makes *t a sequence (of tensors) or an optional (of `item_kind`) whose data is not set. */
void dq_items_describe(dq_tensor *t, dq_kind kind, dq_kind item_kind, dq_dtype dtype);

/** Allocates an array of `count` items for t in the arena and returns it in *items. dq_items_describe was
 * called for t. The caller fills in the items. */
dq_status dq_items_alloc(dq_arena *arena, dq_tensor *t, size_t count, const dq_tensor ***items,
                         dq_error *err);

/** Sets `to` to the list `from` with one item inserted before item `at`, or with item `at` erased.
 * dq_items_describe was called for `to`. Memory and time are logarithmic in the number of items, amortised.
 */
dq_status dq_items_insert(dq_arena *arena, const dq_tensor *from, size_t at, const dq_tensor *item,
                          dq_tensor *to, dq_error *err);
dq_status dq_items_erase(dq_arena *arena, const dq_tensor *from, size_t at, dq_tensor *to, dq_error *err);

/** Copies t and its data into the arena, including the data of all items, but not the bytes of strings. */
dq_status dq_tensor_keep(dq_arena *arena, const dq_tensor *t, const dq_tensor **kept, dq_error *err);

/** Writes the ONNX type, such as "tensor(float)", "seq(tensor(float))" or "optional(seq(tensor(float)))",
 * into buffer and returns buffer. */
enum { DQ_KIND_TEXT = 64 };
const char *dq_tensor_kind_text(const dq_tensor *t, char buffer[DQ_KIND_TEXT]);

#endif
