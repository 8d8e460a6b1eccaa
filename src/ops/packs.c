/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/packs.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/pages.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH_FORGETTING = 1 << 16 };

typedef struct form {
    struct form *next;
    const void *data; /* of the tensor that it was made from; identifies it, as the tensor's own address may
                         be a view's */
    dq_pack_fn make;
    size_t key_size, size, memory_size;
    void *memory, *packed; /* `memory` as allocated; `packed` aligned */
    struct form *waiting;  /* next in the list of deferred forms */
    dq_tensor from;        /* the tensor of a deferred form */
    unsigned how;
    _Alignas(max_align_t) char key[]; /* a struct of the maker's */
} form;

enum { LISTS = 512 };

struct dq_packs {
    dq_lock lock;
    const dq_allocator *allocator;
    form *forms[LISTS], *waiting; /* a hash table by tensor: the forms of one tensor are in the same list */
};

static size_t list_of(const void *data)
{
    return ((uintptr_t)data * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (LISTS - 1);
}

dq_status dq_packs_create(const dq_allocator *allocator, dq_packs **out, dq_error *err)
{
    dq_packs *packs = dq_memory_calloc(allocator, 1, sizeof *packs);
    if (!packs)
        return dq_no_memory(err, sizeof *packs, "the cache of packed weights");
    dq_status status = dq_lock_create(&packs->lock, "the cache of packed weights", err);
    if (status != DQ_OK) {
        dq_memory_free(allocator, packs, sizeof *packs);
        return status;
    }
    packs->allocator = allocator;
    *out = packs;
    return DQ_OK;
}

static void free_form(const dq_packs *packs, const form *f)
{
    if (!f)
        return;
    dq_memory_free(packs->allocator, f->memory, f->memory_size);
    dq_memory_free(packs->allocator, f, sizeof *f + f->key_size);
}

void dq_packs_free(dq_packs *packs)
{
    if (!packs)
        return;
    for (size_t i = 0; i < LISTS; i++)
        for (form *f = packs->forms[i], *next; f; f = next) {
            next = f->next;
            free_form(packs, f);
        }
    dq_lock_destroy(&packs->lock);
    dq_memory_free(packs->allocator, packs, sizeof *packs);
}

size_t dq_packs_bytes(dq_packs *packs)
{
    size_t bytes = 0;
    dq_lock_take(&packs->lock);
    for (size_t i = 0; i < LISTS; i++)
        for (const form *f = packs->forms[i]; f; f = f->next)
            bytes += f->size;
    dq_lock_release(&packs->lock);
    return bytes;
}

static form *find(dq_packs *packs, const void *data, const dq_packing *requested)
{
    const size_t key_size = requested->key_size;
    for (form *f = packs->forms[list_of(data)]; f; f = f->next)
        if (f->data == data && f->make == requested->make && f->key_size == key_size &&
            (key_size == 0 || memcmp(f->key, requested->key, key_size) == 0))
            return f;
    return NULL;
}

/* Allocates zeroed memory for a form. calloc keeps pages that the maker never writes uncommitted. Large pages
 * are for forms that a run reads sequentially and completely. Smaller forms would waste the unused part of
 * the last large page. */
static form *new_form(const dq_packs *packs, size_t key_size, size_t size)
{
    enum { MIN_HUGE_PAGE_BYTES = 1 << 23 };
    size_t bytes, align = size < MIN_HUGE_PAGE_BYTES ? 64 : DQ_LARGE_PAGE;
    form *f = dq_memory_calloc(packs->allocator, 1, sizeof *f + key_size);
    if (!f)
        return NULL;
    f->key_size = key_size;
    if (!dq_add_size(size, align, &bytes) || !(f->memory = dq_memory_calloc(packs->allocator, 1, bytes))) {
        free_form(packs, f);
        return NULL;
    }
    f->memory_size = bytes;
    f->size = size;
    f->packed = (char *)f->memory + (align - (uintptr_t)f->memory % align) % align;
    if (size >= MIN_HUGE_PAGE_BYTES)
        dq_pages_advise(f->packed, size);
    return f;
}

/* Copies a mapped tensor's data and releases its pages on the way, so that both are never resident at once.
 */
static void copy_out(void *to, const dq_tensor *from, const void *key)
{
    enum { PIECE = 1 << 20 };
    (void)key;
    const char *bytes = from->data;
    size_t given_back = 0;
    for (size_t at = 0, n; at < from->size; at += n) {
        n = from->size - at < PIECE ? from->size - at : PIECE;
        memcpy((char *)to + at, bytes + at, n);
        if (from->mapped)
            dq_file_drop_pages(bytes, &given_back, at + n);
    }
}

/* Runs `make` for an unaligned tensor, from a temporary aligned copy. */
static bool make_from_copy(const dq_packs *packs, form *f, const dq_tensor *from, const void *key)
{
    dq_tensor aligned = *from;
    const form *copied = NULL;
    for (const form *other = packs->forms[list_of(from->data)]; other && !copied; other = other->next)
        if (other->data == from->data && other->make == copy_out)
            copied = other;
    void *copy = copied ? NULL : malloc(from->size);
    if (!copied && !copy)
        return false;
    if (copy)
        copy_out(copy, from, NULL);
    aligned.data = copied ? copied->packed : copy;
    aligned.unaligned = aligned.mapped = false;
    f->make(f->packed, &aligned, key);
    free(copy);
    return true;
}

dq_status dq_packs_align(dq_packs *packs, dq_tensor *t, dq_error *err)
{
    const void *data = NULL;
    if (!t->unaligned)
        return DQ_OK;
    const dq_packing aligned = {.make = copy_out, .size = t->size, .how = DQ_PACK_UNALIGNED};
    DQ_TRY(dq_packs_get(packs, t, &aligned, &data, err));
    t->data = (void *)(uintptr_t)data; /* constants are const everywhere */
    t->unaligned = t->mapped = false;
    return DQ_OK;
}

static bool fill(const dq_packs *packs, form *f, const dq_tensor *from, unsigned how, const void *key)
{
    if (from->unaligned && !(how & DQ_PACK_UNALIGNED)) {
        if (!make_from_copy(packs, f, from, key))
            return false;
    } else {
        f->make(f->packed, from, key);
    }
    /* the packed form replaces the original from now on */
    if (from->mapped && from->size >= WORTH_FORGETTING)
        dq_file_forget(from->data, from->size);
    return true;
}

static form *make_form(dq_packs *packs, const dq_tensor *from, const dq_packing *requested)
{
    form *f = new_form(packs, requested->key_size, requested->size);
    if (!f)
        return NULL;
    f->data = from->data;
    f->make = requested->make;
    if (requested->key_size)
        memcpy(f->key, requested->key, requested->key_size);
    if (requested->how & DQ_PACK_DEFERRED) {
        f->from = *from;
        f->how = requested->how;
        f->waiting = packs->waiting;
        packs->waiting = f;
    } else if (!fill(packs, f, from, requested->how, requested->key)) {
        free_form(packs, f);
        return NULL;
    }
    return f;
}

dq_status dq_packs_get(dq_packs *packs, const dq_tensor *from, const dq_packing *requested,
                       const void **packed, dq_error *err)
{
    dq_status status = DQ_OK;
    dq_lock_take(&packs->lock);
    form *f = find(packs, from->data, requested);
    if (!f) {
        f = make_form(packs, from, requested);
        if (f) {
            form **list = &packs->forms[list_of(f->data)];
            f->next = *list;
            *list = f;
        } else {
            status = dq_no_memory(err, requested->size, "packed weights");
        }
    }
    if (f)
        *packed = f->packed;
    dq_lock_release(&packs->lock);
    return status;
}

/* ---- Deferred packing ---------------------------------------------------------------------------------- */

typedef struct job {
    form *form;
    bool filled;
} job;

typedef struct work {
    const dq_packs *packs;
    job *jobs;
} work;

/* Sorts the largest first, so that threads end at about the same time. */
static int by_size(const void *a, const void *b)
{
    size_t x = ((const job *)a)->form->size, y = ((const job *)b)->form->size;
    return (x < y) - (x > y);
}

static void fill_some(void *arg, size_t begin, size_t end, unsigned worker)
{
    (void)worker;
    const work *w = arg;
    for (size_t i = begin; i < end; i++) {
        form *f = w->jobs[i].form;
        w->jobs[i].filled = fill(w->packs, f, &f->from, f->how, f->key);
    }
}

static dq_status fill_waiting(dq_packs *packs, dq_threads *threads, dq_error *err)
{
    size_t count = 0, left = 0;
    for (form *f = packs->waiting; f; f = f->waiting)
        count++;
    work w = {packs, calloc(count + 1, sizeof *w.jobs)};
    if (!w.jobs)
        return dq_no_memory(err, count * sizeof *w.jobs, "a list of weights to be packed");
    count = 0;
    for (form *f = packs->waiting; f; f = f->waiting)
        w.jobs[count++].form = f;
    qsort(w.jobs, count, sizeof *w.jobs, by_size);
    dq_parallel(threads, count, 1, fill_some, &w);
    packs->waiting = NULL;
    for (size_t i = 0; i < count; i++) {
        if (w.jobs[i].filled)
            continue;
        left = w.jobs[i].form->from.size;
        w.jobs[i].form->waiting = packs->waiting;
        packs->waiting = w.jobs[i].form;
    }
    free(w.jobs);
    return packs->waiting ? dq_no_memory(err, left, "a copy of weights to be packed") : DQ_OK;
}

dq_status dq_packs_finish(dq_packs *packs, dq_threads *threads, dq_error *err)
{
    dq_status status = DQ_OK;
    if (!packs)
        return DQ_OK;
    /* Also waits until another session has filled deferred forms that this one uses. */
    dq_lock_take(&packs->lock);
    if (packs->waiting)
        status = fill_waiting(packs, threads, err);
    dq_lock_release(&packs->lock);
    return status;
}
