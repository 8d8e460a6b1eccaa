#include "ops/packs.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/pages.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH_FORGETTING = 1 << 16 };

typedef struct form {
    struct form *next;
    const void *data; /* of the tensor that it was made from: the tensor's own address may be a view's */
    dq_pack_fn make;
    size_t key_size;
    void *memory, *packed; /* the latter aligned */
    char key[];
} form;

struct dq_packs {
    pthread_mutex_t lock;
    form *forms;
};

dq_status dq_packs_create(dq_packs **out, dq_error *err)
{
    dq_packs *packs = calloc(1, sizeof *packs);
    if (!packs)
        return dq_no_memory(err, sizeof *packs, "the cache of packed weights");
    if (pthread_mutex_init(&packs->lock, NULL) != 0) {
        free(packs);
        return dq_fail(err, DQ_OUT_OF_MEMORY, "the system refused a lock for the cache of packed weights");
    }
    *out = packs;
    return DQ_OK;
}

void dq_packs_free(dq_packs *packs)
{
    if (!packs)
        return;
    for (form *f = packs->forms, *next; f; f = next) {
        next = f->next;
        free(f->memory);
        free(f);
    }
    pthread_mutex_destroy(&packs->lock);
    free(packs);
}

static form *find(dq_packs *packs, const void *data, dq_pack_fn make, const void *key, size_t key_size)
{
    for (form *f = packs->forms; f; f = f->next)
        if (f->data == data && f->make == make && f->key_size == key_size &&
            memcmp(f->key, key, key_size) == 0)
            return f;
    return NULL;
}

/* Of memory that a maker leaves untouched the system needs nothing: calloc clears only what is not clear.
 * Large pages are for forms that a run reads from end to end: in smaller ones, what a maker leaves of the
 * last page would count. */
static form *new_form(size_t key_size, size_t size)
{
    enum { LARGE = 1 << 23 };
    size_t bytes, align = size < LARGE ? 64 : DQ_LARGE_PAGE;
    form *f = calloc(1, sizeof *f + key_size);
    if (!f || !dq_add_size(size, align, &bytes) || !(f->memory = calloc(1, bytes))) {
        free(f);
        return NULL;
    }
    f->packed = (char *)f->memory + (align - (uintptr_t)f->memory % align) % align;
    if (size >= LARGE)
        dq_pages_advise(f->packed, size);
    return f;
}

/* Copies a mapped tensor's data, and gives the pages behind back as it goes: both are never there at once. */
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
            dq_file_forget_behind(bytes, &given_back, at + n);
    }
}

/* `make` for a loose tensor: from a copy that lives no longer. */
static bool make_from_copy(const dq_packs *packs, form *f, const dq_tensor *from)
{
    dq_tensor aligned = *from;
    const form *copied = NULL;
    for (const form *other = packs->forms; other && !copied; other = other->next)
        if (other->data == from->data && other->make == copy_out)
            copied = other;
    void *copy = copied ? NULL : malloc(from->size);
    if (!copied && !copy)
        return false;
    if (copy)
        copy_out(copy, from, NULL);
    aligned.data = copied ? copied->packed : copy;
    aligned.loose = aligned.mapped = false;
    f->make(f->packed, &aligned, f->key);
    free(copy);
    return true;
}

dq_status dq_packs_align(dq_packs *packs, dq_tensor *t, dq_error *err)
{
    const void *data = NULL;
    if (!t->loose)
        return DQ_OK;
    DQ_TRY(dq_packs_get(packs, t, true, copy_out, NULL, 0, t->size, &data, err));
    t->data = (void *)(uintptr_t)data; /* constants are const everywhere */
    t->loose = t->mapped = false;
    return DQ_OK;
}

static form *make_form(const dq_packs *packs, const dq_tensor *from, bool takes_loose, dq_pack_fn make,
                       const void *key, size_t key_size, size_t size)
{
    form *f = new_form(key_size, size);
    if (!f)
        return NULL;
    f->data = from->data;
    f->make = make;
    f->key_size = key_size;
    if (key_size)
        memcpy(f->key, key, key_size);
    if (!from->loose || takes_loose) {
        make(f->packed, from, f->key);
    } else if (!make_from_copy(packs, f, from)) {
        free(f->packed);
        free(f);
        return NULL;
    }
    return f;
}

dq_status dq_packs_get(dq_packs *packs, const dq_tensor *from, bool takes_loose, dq_pack_fn make,
                       const void *key, size_t key_size, size_t size, const void **packed, dq_error *err)
{
    dq_status status = DQ_OK;
    pthread_mutex_lock(&packs->lock);
    form *f = find(packs, from->data, make, key, key_size);
    if (!f) {
        f = make_form(packs, from, takes_loose, make, key, key_size, size);
        if (f) {
            /* the packed form stands for the original from now on */
            if (from->mapped && from->size >= WORTH_FORGETTING)
                dq_file_forget(from->data, from->size);
            f->next = packs->forms;
            packs->forms = f;
        } else {
            status = dq_no_memory(err, size, "packed weights");
        }
    }
    if (f)
        *packed = f->packed;
    pthread_mutex_unlock(&packs->lock);
    return status;
}
