/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/items.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

void dq_items_describe(dq_tensor *t, dq_kind kind, dq_kind item_kind, dq_dtype dtype)
{
    *t = (dq_tensor){.kind = kind, .item_kind = item_kind, .dtype = dtype};
}

/* ---- Trees -------------------------------------------------------------------------------------------- */

/* A persistent AVL tree of items in sequence order. Nodes never change: an insertion creates new nodes on the
 * path from the root and shares all others with the old tree. */
struct dq_item_node {
    const dq_tensor *item;
    const struct dq_item_node *left, *right;
    size_t count;
    unsigned height;
};

typedef struct dq_item_node node;

/* Allocator of nodes. After `failed` is set, results of the functions below are invalid. */
typedef struct maker {
    dq_arena *arena;
    bool failed;
} maker;

static size_t count_of(const node *n)
{
    return n ? n->count : 0;
}

static unsigned height_of(const node *n)
{
    return n ? n->height : 0;
}

static const node *make(maker *m, const node *left, const dq_tensor *item, const node *right)
{
    node *made = m->failed ? NULL : DQ_NEW(m->arena, node);
    if (!made) {
        m->failed = true;
        return NULL;
    }
    const unsigned l = height_of(left), r = height_of(right);
    *made = (node){item, left, right, count_of(left) + 1 + count_of(right), (l > r ? l : r) + 1};
    return made;
}

/* The same as make(), for subtrees whose heights differ by at most two: rotates where necessary. */
static const node *balance(maker *m, const node *left, const dq_tensor *item, const node *right)
{
    if (height_of(left) > height_of(right) + 1) {
        const node *l = left->left, *r = left->right;
        if (height_of(l) >= height_of(r))
            return make(m, l, left->item, make(m, r, item, right));
        return make(m, make(m, l, left->item, r->left), r->item, make(m, r->right, item, right));
    }
    if (height_of(right) > height_of(left) + 1) {
        const node *l = right->left, *r = right->right;
        if (height_of(r) >= height_of(l))
            return make(m, make(m, left, item, l), right->item, r);
        return make(m, make(m, left, item, l->left), l->item, make(m, l->right, right->item, r));
    }
    return make(m, left, item, right);
}

static const node *insert(maker *m, const node *n, size_t at, const dq_tensor *item)
{
    const size_t before = n ? count_of(n->left) : 0;
    if (!n || m->failed)
        return make(m, NULL, item, NULL);
    if (at <= before)
        return balance(m, insert(m, n->left, at, item), n->item, n->right);
    return balance(m, n->left, n->item, insert(m, n->right, at - before - 1, item));
}

static const node *erase(maker *m, const node *n, size_t at)
{
    const size_t before = count_of(n->left);
    if (at < before)
        return balance(m, erase(m, n->left, at), n->item, n->right);
    if (at > before)
        return balance(m, n->left, n->item, erase(m, n->right, at - before - 1));
    if (!n->left || !n->right)
        return n->left ? n->left : n->right;
    const node *next = n->right;
    while (next->left)
        next = next->left;
    return balance(m, n->left, next->item, erase(m, n->right, 0));
}

static const node *build(maker *m, const dq_tensor *const *items, size_t count)
{
    const size_t half = count / 2;
    if (!count || m->failed)
        return NULL;
    const node *left = build(m, items, half);
    return make(m, left, items[half], build(m, items + half + 1, count - half - 1));
}

/* ---- Arrays ------------------------------------------------------------------------------------------- */

/* Memory shared by lists with a common prefix. The longest of them can grow in place, because no other list
 * reads past its own end. */
struct dq_item_storage {
    const dq_tensor **items;
    size_t capacity, used;
    bool outgrown;    /* a longer list was copied to other memory */
    const node *root; /* the first `rooted` items as a tree; may be NULL */
    size_t rooted;
};

enum { MAX_COPIED_ITEMS = 64 /* up to so many items an array is copied; a longer one becomes a tree */ };

static const dq_item_list *list_of(const dq_tensor *t)
{
    return t->data;
}

const dq_tensor *dq_item(const dq_tensor *t, size_t i)
{
    const dq_item_list *list = t->data;
    if (list->items)
        return list->items[i];
    const node *n = list->root;
    for (size_t before; i != (before = count_of(n->left));) {
        n = i < before ? n->left : n->right;
        i = i < before ? i : i - before - 1;
    }
    return n->item;
}

static dq_status out_of_memory(size_t count, dq_error *err)
{
    return dq_no_memory(err, count * sizeof(dq_tensor *), "the items of a sequence");
}

static dq_status give(dq_arena *arena, dq_tensor *t, size_t count, const dq_item_list *list, dq_error *err)
{
    dq_item_list *made = DQ_NEW(arena, dq_item_list);
    if (!made)
        return out_of_memory(count, err);
    *made = *list;
    t->data = made;
    t->count = count;
    return DQ_OK;
}

/* Sets t to a new array of `count` items with capacity for `more` further ones. */
static dq_status give_array(dq_arena *arena, dq_tensor *t, size_t count, size_t more,
                            const dq_tensor ***items, dq_error *err)
{
    struct dq_item_storage *storage = DQ_NEW(arena, struct dq_item_storage);
    *items = DQ_NEW_ARRAY(arena, count + more ? count + more : 1, const dq_tensor *);
    if (!storage || !*items)
        return out_of_memory(count, err);
    *storage = (struct dq_item_storage){.items = *items, .capacity = count + more, .used = count};
    return give(arena, t, count, &(dq_item_list){.items = *items, .storage = storage}, err);
}

dq_status dq_items_alloc(dq_arena *arena, dq_tensor *t, size_t count, const dq_tensor ***items, dq_error *err)
{
    return give_array(arena, t, count, 0, items, err);
}

/* Returns the list as a tree. Lists that share an array also share the tree of its first `rooted` items,
 * which is built once. */
static const node *tree_of(maker *m, const dq_tensor *t)
{
    dq_item_list *list = t->data;
    struct dq_item_storage *storage = list->storage;
    if (list->root || !list->items)
        return list->root;
    if (!storage || !storage->root || storage->rooted > t->count) {
        list->root = build(m, list->items, t->count);
    } else {
        list->root = storage->root;
        for (size_t i = storage->rooted; i < t->count; i++)
            list->root = insert(m, list->root, i, list->items[i]);
    }
    if (m->failed)
        list->root = NULL;
    else if (storage && storage->rooted < t->count) {
        storage->root = list->root;
        storage->rooted = t->count;
    }
    return list->root;
}

static void copy_items(const dq_tensor **to, const dq_tensor *const *from, size_t count)
{
    if (count)
        memcpy(to, from, count * sizeof *to);
}

/* Appends an item to an array. A full array is copied once to one of twice the capacity. */
static dq_status append(dq_arena *arena, const dq_tensor *from, const dq_tensor *item, dq_tensor *to,
                        dq_error *err)
{
    struct dq_item_storage *storage = list_of(from)->storage;
    const size_t count = from->count;
    if (storage->used == storage->capacity) {
        const dq_tensor **items;
        DQ_TRY(give_array(arena, to, count + 1, count + 1, &items, err));
        copy_items(items, storage->items, count);
        items[count] = item;
        storage->outgrown = true;
        list_of(to)->storage->root = storage->root;
        list_of(to)->storage->rooted = storage->rooted;
        return DQ_OK;
    }
    storage->items[storage->used++] = item;
    return give(arena, to, count + 1, &(dq_item_list){.items = storage->items, .storage = storage}, err);
}

/* Whether append() applies: the list is the longest in its storage, which is not full or was not copied
 * before. */
static bool can_append(const dq_tensor *t)
{
    const struct dq_item_storage *storage = list_of(t)->items ? list_of(t)->storage : NULL;
    return storage && storage->used == t->count && (storage->used < storage->capacity || !storage->outgrown);
}

dq_status dq_items_insert(dq_arena *arena, const dq_tensor *from, size_t at, const dq_tensor *item,
                          dq_tensor *to, dq_error *err)
{
    const dq_item_list *list = list_of(from);
    const dq_tensor **items;
    if (at == from->count && can_append(from))
        return append(arena, from, item, to, err);
    if (!list->items || from->count > MAX_COPIED_ITEMS) {
        maker m = {.arena = arena};
        const node *root = tree_of(&m, from);
        root = m.failed ? NULL : insert(&m, root, at, item);
        return m.failed ? out_of_memory(from->count, err)
                        : give(arena, to, from->count + 1, &(dq_item_list){.root = root}, err);
    }
    DQ_TRY(dq_items_alloc(arena, to, from->count + 1, &items, err));
    copy_items(items, list->items, at);
    copy_items(items + at + 1, list->items + at, from->count - at);
    items[at] = item;
    return DQ_OK;
}

dq_status dq_items_erase(dq_arena *arena, const dq_tensor *from, size_t at, dq_tensor *to, dq_error *err)
{
    const dq_item_list *list = list_of(from);
    const dq_tensor **items;
    if (!list->items || from->count > MAX_COPIED_ITEMS) {
        maker m = {.arena = arena};
        const node *root = tree_of(&m, from);
        root = m.failed ? NULL : erase(&m, root, at);
        return m.failed ? out_of_memory(from->count, err)
                        : give(arena, to, from->count - 1, &(dq_item_list){.root = root}, err);
    }
    DQ_TRY(dq_items_alloc(arena, to, from->count - 1, &items, err));
    copy_items(items, list->items, at);
    copy_items(items + at, list->items + at + 1, from->count - at - 1);
    return DQ_OK;
}

/* ---- Copies and texts --------------------------------------------------------------------------------- */

/* Recursion is at most three deep: an optional of a sequence of tensors. */
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
        DQ_TRY(dq_tensor_keep(arena, dq_item(t, i), &items[i], err));
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
