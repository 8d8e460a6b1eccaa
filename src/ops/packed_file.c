/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/packed_file.h"

#include "base/checked.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = 24, PAGE = 4096 };
#define BYTE_ORDER_MARK UINT32_C(0x01020304)

static const char magic[8] = "dqpacked";

/* Head of the file. After it: an entry for each form, their keys, and the forms in the same order. */
typedef struct header {
    char magic[8];
    uint32_t byte_order, format;
    char version[NAME_BYTES], isa_name[NAME_BYTES];
    uint32_t isa, count;     /* mask of dq_isa; number of forms */
    uint64_t keys_end, size; /* offset of the end of keys; bytes of the file */
    dq_hash types;           /* of all constants of the model, with their shapes */
    dq_hash checksum;        /* of all fields before, and of the bytes from the header to keys_end */
} header;

typedef struct entry {
    dq_hash source, checksum; /* of the tensor's data, and of the form */
    char packer[NAME_BYTES];
    uint32_t constant; /* number of a constant of the model with the tensor's data, or DQ_NO_CONSTANT */
    uint16_t dtype, key_size;
    uint64_t key, packed, size; /* offsets of the key and of the form; bytes of the form in the file */
    uint64_t full;              /* bytes of the form in memory */
} entry;

/* Nothing in the file is padding of the compiler's. */
_Static_assert(sizeof(header) == 120 && sizeof(entry) == 96, "layout of the file");

struct dq_packed_file {
    const dq_allocator *allocator;
    dq_file file;
    const header *header;
    const entry *entries;
    char isa_name[NAME_BYTES];
    size_t path_size;
    char path[];
};

/* Large forms begin at pages, so that they can share large pages of the system. */
static bool align_form(size_t size, size_t *at)
{
    return dq_align_size(*at, size < PAGE ? DQ_ALIGN : PAGE, at);
}

static dq_hash checksum_of(const header *h, const void *table, size_t size)
{
    struct {
        char fields[offsetof(header, checksum)];
        dq_hash table;
    } all;
    memcpy(all.fields, h, sizeof all.fields);
    all.table = dq_hash_bytes(table, size);
    return dq_hash_bytes(&all, sizeof all);
}

/* ---- Packers ------------------------------------------------------------------------------------------- */

static const dq_packer packers[] = {
#define DQ_PACKER(name, function, pointers, used) {name, function, pointers, used},
#include "ops/packers.def"
#undef DQ_PACKER
};

size_t dq_packed_numbers(const void *packed, size_t size, size_t full, const void *key)
{
    (void)packed;
    (void)key;
    return size == full ? full : 0;
}

size_t dq_packed_panels_used(const dq_packed_panels *panels, const void *packed, size_t size, size_t full,
                             const void *key)
{
    const char *bytes = packed;
    const size_t *starts = (const size_t *)(const void *)(bytes + panels->starts);
    size_t end = panels->first;
    if (size > full || size < panels->first)
        return 0;
    for (size_t i = 0; i < panels->count; i++) {
        if (starts[i] % DQ_ALIGN || starts[i] < panels->first || starts[i] > size)
            return 0;
        const size_t used = panels->used(bytes + starts[i], size - starts[i], key);
        if (used == 0)
            return 0;
        end = starts[i] + used > end ? starts[i] + used : end;
    }
    return end;
}

const dq_packer *dq_packer_of(dq_pack_fn make)
{
    for (size_t i = 0; i < sizeof packers / sizeof *packers; i++)
        if (packers[i].make == make)
            return &packers[i];
    return NULL;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* The order of forms in a file: by source first. */
static int compare(const dq_packed_form *a, const dq_packed_form *b)
{
    int order = dq_hash_compare(a->source, b->source);
    if (!order)
        order = strcmp(a->packer->name, b->packer->name);
    if (!order)
        order = (a->dtype > b->dtype) - (a->dtype < b->dtype);
    if (!order)
        order = (a->full > b->full) - (a->full < b->full);
    if (!order)
        order = (a->key_size > b->key_size) - (a->key_size < b->key_size);
    return order || !a->key_size ? order : memcmp(a->key, b->key, a->key_size);
}

static int by_identity(const void *a, const void *b)
{
    return compare(a, b);
}

static size_t drop_equal(dq_packed_form *forms, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare(&forms[kept - 1], &forms[i]) != 0)
            forms[kept++] = forms[i];
    return kept;
}

/* Fills the entries and keys of a table for these forms, and the sizes in the header. */
static void fill_table(const dq_packed_form *forms, header *h, entry *entries)
{
    char *table = (char *)entries;
    size_t key = sizeof *h + h->count * sizeof *entries, at = h->keys_end;
    for (size_t i = 0; i < h->count; i++) {
        const dq_packed_form *f = &forms[i];
        align_form(f->size, &at);
        entries[i] = (entry){.source = f->source,
                             .checksum = dq_hash_bytes(f->packed, f->size),
                             .constant = f->constant,
                             .dtype = (uint16_t)f->dtype,
                             .key_size = (uint16_t)f->key_size,
                             .key = key,
                             .packed = at,
                             .size = f->size,
                             .full = f->full};
        memcpy(entries[i].packer, f->packer->name, strlen(f->packer->name));
        if (f->key_size)
            memcpy(table + key - sizeof *h, f->key, f->key_size);
        key += f->key_size;
        at += f->size;
    }
    h->size = at;
    h->checksum = checksum_of(h, table, h->keys_end - sizeof *h);
}

/* Calls a dq_write_fn until it fails. */
typedef struct target {
    dq_write_fn write;
    void *arg;
    int fault; /* its first result other than 0 */
    size_t written;
} target;

static void put(target *t, const void *bytes, size_t size)
{
    if (size && !t->fault && !(t->fault = t->write(t->arg, bytes, size)))
        t->written += size;
}

static void put_file(target *t, const header *h, const entry *entries, const dq_packed_form *forms)
{
    static const char zeros[PAGE];
    put(t, h, sizeof *h);
    put(t, entries, h->keys_end - sizeof *h);
    for (size_t i = 0; i < h->count && !t->fault; i++) {
        put(t, zeros, entries[i].packed - t->written);
        put(t, forms[i].packed, forms[i].size);
    }
}

dq_status dq_packed_file_write(dq_write_fn write, void *arg, unsigned isa, dq_hash types,
                               dq_packed_form *forms, size_t count, dq_error *err)
{
    header h = {.byte_order = BYTE_ORDER_MARK, .format = DQ_PACKED_FORMAT, .isa = isa, .types = types};
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.version, dq_version(), strlen(dq_version()));
    memcpy(h.isa_name, dq_isa_highest(isa), strlen(dq_isa_highest(isa)));
    if (count)
        qsort(forms, count, sizeof *forms, by_identity);
    h.count = (uint32_t)drop_equal(forms, count);
    size_t table = h.count * sizeof(entry);
    for (size_t i = 0; i < h.count; i++)
        table += forms[i].key_size;
    h.keys_end = sizeof h + table;
    entry *entries = calloc(1, table + 1);
    if (!entries)
        return dq_no_memory(err, table, "a table of packed weights");
    fill_table(forms, &h, entries);
    target t = {.write = write, .arg = arg};
    put_file(&t, &h, entries, forms);
    free(entries);
    if (t.fault)
        return dq_fail(err, DQ_IO, "the write function returned %d at byte %zu of packed weights", t.fault,
                       t.written);
    return DQ_OK;
}

/* ---- Verification -------------------------------------------------------------------------------------- */

/* Copies a name of the file, printable and terminated. */
static void copy_name(char to[NAME_BYTES], const char from[NAME_BYTES])
{
    size_t i = 0;
    for (; i < NAME_BYTES - 1 && from[i]; i++)
        to[i] = from[i] < ' ' || from[i] > '~' ? '?' : from[i];
    to[i] = '\0';
}

static dq_status check_header(const dq_packed_file *f, dq_error *err)
{
    const header *h = f->header;
    if (f->file.size < sizeof magic || memcmp(h->magic, magic, sizeof magic) != 0)
        return dq_fail(err, DQ_BAD_INPUT, "%s: is not a file of packed weights", f->path);
    if (f->file.size < sizeof *h)
        return dq_fail(err, DQ_BAD_INPUT, "%s: has %zu bytes, expected a header of %zu: the file was cut off",
                       f->path, f->file.size, sizeof *h);
    if (h->byte_order != BYTE_ORDER_MARK)
        return dq_fail(err, DQ_BAD_INPUT, "%s: has byte order mark 0x%08" PRIx32 ", expected 0x%08" PRIx32,
                       f->path, h->byte_order, BYTE_ORDER_MARK);
    if (h->format != DQ_PACKED_FORMAT)
        return dq_fail(err, DQ_BAD_INPUT,
                       "%s: has version %" PRIu32 " of the format, expected %d: pack the model again",
                       f->path, h->format, DQ_PACKED_FORMAT);
    if (h->size != f->file.size)
        return dq_fail(err, DQ_BAD_INPUT, "%s: has %zu bytes, expected %" PRIu64 ": the file was %s", f->path,
                       f->file.size, h->size, h->size > f->file.size ? "cut off" : "changed");
    return DQ_OK;
}

static dq_status damaged(const dq_packed_file *f, const char *part, size_t i, dq_error *err)
{
    return dq_fail(err, DQ_BAD_INPUT, "%s: %s %zu of %" PRIu32 " is damaged: pack the model again", f->path,
                   part, i, f->header->count);
}

static dq_status check_table(dq_packed_file *f, dq_error *err)
{
    const header *h = f->header;
    size_t entries_end;
    if (!dq_mul_size(h->count, sizeof(entry), &entries_end) ||
        !dq_add_size(entries_end, sizeof *h, &entries_end) || entries_end > h->keys_end ||
        h->keys_end > h->size ||
        dq_hash_compare(h->checksum, checksum_of(h, f->file.bytes + sizeof *h, h->keys_end - sizeof *h)) != 0)
        return dq_fail(err, DQ_BAD_INPUT, "%s: the table is damaged: pack the model again", f->path);
    f->entries = (const entry *)(const void *)(f->file.bytes + sizeof *h);
    return DQ_OK;
}

/* Forms follow each other without gaps but for zeros before aligned ones, so that every byte is verified. */
static dq_status check_forms(const dq_packed_file *f, dq_error *err)
{
    const header *h = f->header;
    size_t key = sizeof *h + h->count * sizeof(entry), at = h->keys_end;
    for (size_t i = 0; i < h->count; i++) {
        const entry *e = &f->entries[i];
        const size_t end = at;
        if (e->key != key || !dq_add_size(key, e->key_size, &key) || key > h->keys_end ||
            e->packer[NAME_BYTES - 1] || !align_form(e->size, &at) || e->packed != at ||
            !dq_add_size(at, e->size, &at) || at > h->size)
            return damaged(f, "entry", i, err);
        for (size_t gap = end; gap < e->packed; gap++)
            if (f->file.bytes[gap])
                return damaged(f, "the gap before form", i, err);
        if (dq_hash_compare(dq_hash_bytes(f->file.bytes + e->packed, e->size), e->checksum) != 0)
            return damaged(f, "form", i, err);
    }
    return key == h->keys_end && at == h->size ? DQ_OK : damaged(f, "the end of entry", h->count, err);
}

static dq_status check_version(const dq_packed_file *f, dq_error *err)
{
    char version[NAME_BYTES];
    copy_name(version, f->header->version);
    if (strcmp(version, dq_version()) == 0)
        return DQ_OK;
    return dq_fail(err, DQ_BAD_INPUT, "%s: was packed by dqrun %s, expected %s: pack the model again",
                   f->path, version, dq_version());
}

static dq_status check_model(const dq_packed_file *f, dq_content *content, const char *model_path,
                             dq_error *err)
{
    const header *h = f->header;
    const dq_hash types = dq_content_types(content);
    if (dq_hash_compare(h->types, types) != 0)
        return dq_fail(err, DQ_BAD_INPUT,
                       "%s: was packed for another model: hash %016" PRIx64 " of the types of its constants, "
                       "expected %016" PRIx64 " of %s",
                       f->path, h->types.high, types.high, model_path);
    for (size_t i = 0; i < h->count; i++) {
        const entry *e = &f->entries[i];
        dq_hash hash;
        if (e->constant == DQ_NO_CONSTANT)
            continue;
        if (!dq_content_at(content, e->constant, &hash))
            return damaged(f, "entry", i, err);
        if (dq_hash_compare(hash, e->source) != 0)
            return dq_fail(err, DQ_BAD_INPUT,
                           "%s: was packed for another model: hash %016" PRIx64
                           " of '%s', expected %016" PRIx64 " of %s",
                           f->path, e->source.high, dq_content_name(content, e->constant), hash.high,
                           model_path);
    }
    return DQ_OK;
}

dq_status dq_packed_file_open(const char *path, uint64_t limit, dq_content *content, const char *model_path,
                              const dq_allocator *allocator, dq_packed_file **out, dq_error *err)
{
    const size_t path_size = strlen(path) + 1;
    dq_packed_file *f = dq_memory_calloc(allocator, 1, sizeof *f + path_size);
    if (!f)
        return dq_no_memory(err, sizeof *f, "a file of packed weights");
    f->allocator = allocator;
    f->path_size = path_size;
    memcpy(f->path, path, path_size);
    dq_status status = dq_file_map_pages(path, limit, DQ_BAD_INPUT, &f->file, err);
    f->header = (const header *)(const void *)f->file.bytes;
    if (status == DQ_OK)
        status = check_header(f, err);
    if (status == DQ_OK)
        status = check_table(f, err);
    if (status == DQ_OK)
        status = check_version(f, err);
    if (status == DQ_OK)
        status = check_forms(f, err);
    if (status == DQ_OK)
        status = check_model(f, content, model_path, err);
    if (status != DQ_OK) {
        dq_packed_file_close(f);
        return status;
    }
    copy_name(f->isa_name, f->header->isa_name);
    *out = f;
    return DQ_OK;
}

void dq_packed_file_close(dq_packed_file *file)
{
    if (!file)
        return;
    dq_file_unmap(&file->file);
    dq_memory_free(file->allocator, file, sizeof *file + file->path_size);
}

/* ---- Look-up ------------------------------------------------------------------------------------------- */

const char *dq_packed_file_path(const dq_packed_file *file)
{
    return file->path;
}

unsigned dq_packed_file_isa(const dq_packed_file *file)
{
    return file->header->isa;
}

const char *dq_packed_file_isa_name(const dq_packed_file *file)
{
    return file->isa_name;
}

/* The first entry whose source is not less. */
static size_t first_of(const dq_packed_file *file, dq_hash source)
{
    size_t first = 0, count = file->header->count;
    while (count) {
        const size_t half = count / 2;
        const bool less = dq_hash_compare(file->entries[first + half].source, source) < 0;
        first = less ? first + half + 1 : first;
        count = less ? count - half - 1 : half;
    }
    return first;
}

void dq_packed_file_find(const dq_packed_file *file, dq_packed_form *form)
{
    form->packed = NULL;
    form->size = 0;
    for (size_t i = first_of(file, form->source); i < file->header->count; i++) {
        const entry *e = &file->entries[i];
        if (dq_hash_compare(e->source, form->source) != 0)
            break;
        if (strcmp(e->packer, form->packer->name) == 0 && e->dtype == (uint16_t)form->dtype &&
            e->key_size == form->key_size && e->full == form->full &&
            (!form->key_size || memcmp(file->file.bytes + e->key, form->key, form->key_size) == 0)) {
            form->packed = file->file.bytes + e->packed;
            form->size = e->size;
            break;
        }
    }
}
