/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/packs.h"

#include "base/arena.h"
#include "base/checked.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/memory.h"
#include "base/pages.h"
#include "ops/packed_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH_FORGETTING = 1 << 16 };

typedef struct form {
    struct form *next;
    const void *data; /* of the tensor that it was made from; identifies it, as the tensor's own address may
                         be a view's */
    dq_pack_fn make;
    size_t key_size, size, memory_size; /* size: readable bytes from `packed` on */
    size_t full;          /* bytes of the form; more than `size` where a file leaves out unused ones */
    void *memory;         /* as allocated; NULL: the form is in the arena or in the file */
    const void *packed;   /* aligned */
    struct form *waiting; /* next in the list of deferred forms */
    dq_tensor from;       /* the tensor, whose data live as long as the cache */
    unsigned how, isa;
    _Alignas(max_align_t) char key[]; /* a struct of the maker's */
} form;

enum { LISTS = 512 };

struct dq_packs {
    dq_lock lock;
    const dq_allocator *allocator;
    form *forms[LISTS], *waiting; /* a hash table by tensor: the forms of one tensor are in the same list */
    dq_arena small;               /* forms of less than a large page */
    dq_packed_file *file;         /* forms that need not be made; NULL: none */
    dq_content *content;          /* of the model, if there is a file */
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
    packs->small = (dq_arena){.largest_block = 4 * DQ_LARGE_PAGE, .allocator = allocator};
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
    dq_arena_free(&packs->small);
    dq_packed_file_close(packs->file);
    dq_content_free(packs->content);
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

static form *new_form(const dq_packs *packs, const dq_tensor *from, const dq_packing *requested)
{
    form *f = dq_memory_calloc(packs->allocator, 1, sizeof *f + requested->key_size);
    if (!f)
        return NULL;
    f->data = from->data;
    f->from = *from;
    f->make = requested->make;
    f->how = requested->how;
    f->isa = requested->isa;
    f->size = f->full = requested->size;
    f->key_size = requested->key_size;
    if (f->key_size)
        memcpy(f->key, requested->key, f->key_size);
    return f;
}

/* Allocates zeroed memory for a form. A run reads forms in about the order of their requests, in which small
 * ones share large pages. Large forms have large pages of their own; calloc keeps pages that the maker never
 * writes uncommitted. */
static bool allocate(dq_packs *packs, form *f)
{
    size_t bytes;
    if (f->size < DQ_LARGE_PAGE)
        return (f->packed = dq_arena_alloc(&packs->small, f->size, DQ_ALIGN)) != NULL;
    if (!dq_add_size(f->size, DQ_LARGE_PAGE, &bytes) ||
        !(f->memory = dq_memory_calloc(packs->allocator, 1, bytes)))
        return false;
    f->memory_size = bytes;
    void *packed = (char *)f->memory + (DQ_LARGE_PAGE - (uintptr_t)f->memory % DQ_LARGE_PAGE) % DQ_LARGE_PAGE;
    f->packed = packed;
    dq_pages_advise(packed, f->size);
    return true;
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
static bool make_from_copy(const dq_packs *packs, void *packed, form *f, const dq_tensor *from,
                           const void *key)
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
    aligned.data = copied ? (void *)(uintptr_t)copied->packed : copy;
    aligned.unaligned = aligned.mapped = false;
    f->make(packed, &aligned, key);
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

static bool fill(const dq_packs *packs, form *f, const dq_tensor *from, const void *key)
{
    void *packed = (void *)(uintptr_t)f->packed; /* in f->memory */
    if (from->unaligned && !(f->how & DQ_PACK_UNALIGNED)) {
        if (!make_from_copy(packs, packed, f, from, key))
            return false;
    } else {
        f->make(packed, from, key);
    }
    /* the packed form replaces the original from now on */
    if (from->mapped && from->size >= WORTH_FORGETTING)
        dq_file_forget(from->data, from->size);
    return true;
}

static form *make_form(dq_packs *packs, const dq_tensor *from, const dq_packing *requested)
{
    form *f = new_form(packs, from, requested);
    if (!f || !allocate(packs, f)) {
        free_form(packs, f);
        return NULL;
    }
    if (requested->how & DQ_PACK_DEFERRED) {
        f->waiting = packs->waiting;
        packs->waiting = f;
    } else if (!fill(packs, f, from, requested->key)) {
        free_form(packs, f);
        return NULL;
    }
    return f;
}

/* ---- Files --------------------------------------------------------------------------------------------- */

/* Describes a form as a file has it, but for `packed` and `size`; false if it may not be in a file. */
static bool describe(const form *f, dq_content *content, dq_packed_form *out)
{
    const dq_packer *packer = dq_packer_of(f->make);
    const size_t pointers = packer ? packer->pointers * sizeof(void *) : 0;
    uint32_t constant;
    if (!packer || f->key_size < pointers || f->key_size > UINT16_MAX || f->from.repeats ||
        f->from.dtype == DQ_STRING)
        return false;
    const dq_hash source = dq_content_find(content, &f->from, &constant);
    *out = (dq_packed_form){.source = source,
                            .constant = constant,
                            .dtype = f->from.dtype,
                            .packer = packer,
                            .key = f->key + pointers,
                            .key_size = f->key_size - pointers,
                            .full = f->full};
    return true;
}

/* *out becomes the form in the file, or NULL. */
static dq_status take_from_file(const dq_packs *packs, const dq_tensor *from, const dq_packing *requested,
                                form **out, dq_error *err)
{
    dq_packed_form wanted;
    *out = NULL;
    if (!packs->file || requested->isa != dq_packed_file_isa(packs->file) || !dq_packer_of(requested->make))
        return DQ_OK;
    form *f = new_form(packs, from, requested);
    if (!f)
        return dq_no_memory(err, sizeof *f, "packed weights");
    if (describe(f, packs->content, &wanted)) {
        dq_packed_file_find(packs->file, &wanted);
        f->packed = wanted.packed;
        f->size = wanted.size;
    }
    if (f->packed && !wanted.packer->used(f->packed, f->size, f->full, f->key)) {
        free_form(packs, f);
        return dq_fail(err, DQ_BAD_INPUT, "%s: a form of '%s' is not one of dqrun's: pack the model again",
                       dq_packed_file_path(packs->file), wanted.packer->name);
    }
    if (f->packed)
        *out = f;
    else
        free_form(packs, f);
    return DQ_OK;
}

dq_status dq_packs_open_file(dq_packs *packs, const char *path, uint64_t limit, dq_content *content,
                             const char *model_path, dq_error *err)
{
    packs->content = content;
    return dq_packed_file_open(path, limit, content, model_path, packs->allocator, &packs->file, err);
}

dq_status dq_packs_check_isa(const dq_packs *packs, unsigned isa, dq_error *err)
{
    if (!packs->file || dq_packed_file_isa(packs->file) == isa)
        return DQ_OK;
    return dq_fail(err, DQ_BAD_INPUT,
                   "%s: was packed for ISA level %s (features 0x%x), expected %s (0x%x) of the session",
                   dq_packed_file_path(packs->file), dq_packed_file_isa_name(packs->file),
                   dq_packed_file_isa(packs->file), dq_isa_highest(isa), isa);
}

static bool is_waiting(const dq_packs *packs, const form *f)
{
    const form *w = packs->waiting;
    while (w && w != f)
        w = w->waiting;
    return w != NULL;
}

/* Describes a form with the bytes that a run reads; false if it may not be in a file. */
static bool describe_used(const form *f, dq_content *content, dq_packed_form *out)
{
    if (!describe(f, content, out))
        return false;
    out->packed = f->packed;
    out->size = out->packer->used(f->packed, f->size, f->full, f->key);
    return out->size > 0;
}

/* Lists the forms for a file. They stay valid without the lock. */
static size_t list_forms(dq_packs *packs, unsigned isa, dq_content *content, dq_packed_form *list)
{
    size_t count = 0;
    for (size_t i = 0; i < LISTS; i++)
        for (const form *f = packs->forms[i]; f; f = f->next)
            if (!list)
                count++;
            else if (f->isa == isa && !is_waiting(packs, f) && describe_used(f, content, &list[count]))
                count++;
    return count;
}

dq_status dq_packs_save(dq_packs *packs, unsigned isa, dq_content *content, dq_write_fn write, void *arg,
                        dq_error *err)
{
    dq_lock_take(&packs->lock);
    size_t count = list_forms(packs, isa, content, NULL);
    dq_packed_form *list = calloc(count + 1, sizeof *list);
    if (list)
        count = list_forms(packs, isa, content, list);
    dq_lock_release(&packs->lock);
    if (!list)
        return dq_no_memory(err, count * sizeof *list, "a list of packed weights");
    const dq_status status =
        dq_packed_file_write(write, arg, isa, dq_content_types(content), list, count, err);
    free(list);
    return status;
}

/* ---- Requests ------------------------------------------------------------------------------------------ */

dq_status dq_packs_get(dq_packs *packs, const dq_tensor *from, const dq_packing *requested,
                       const void **packed, dq_error *err)
{
    dq_status status = DQ_OK;
    dq_lock_take(&packs->lock);
    form *f = find(packs, from->data, requested);
    if (!f) {
        status = take_from_file(packs, from, requested, &f, err);
        if (status == DQ_OK && !f)
            f = make_form(packs, from, requested);
        if (f) {
            form **list = &packs->forms[list_of(f->data)];
            f->next = *list;
            *list = f;
        } else if (status == DQ_OK) {
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
        w->jobs[i].filled = fill(w->packs, f, &f->from, f->key);
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
