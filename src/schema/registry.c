/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/fpenv.h"
#include "base/lock.h"
#include "base/namemap.h"
#include "schema/schema.h"
#include "schema/yaml_tree.h"

#define MAX_DOCUMENTS 4096u

/* All versions of an operator. */
typedef struct entry entry;
struct entry {
    const char *domain, *name;
    entry *next;                        /* Same name, another domain. */
    const dq_embedded_schema *embedded; /* First embedded version; since_version ascends. */
    uint32_t embedded_count;            /* 0 for an operator that only the user has. */
    uint64_t parsed;                    /* Bit i: row i of them is in `versions`. */
    const dq_schema **versions;         /* By ascending since_version. */
    uint32_t count, capacity;
};

struct dq_schemas {
    atomic_uint users; /* References: the caller's, and one of each model. */
    dq_lock lock;      /* Guards all fields below; rows themselves never change. */
    dq_arena arena;
    dq_namemap by_name; /* entry */
    entry **entries;
    size_t count, capacity;
};

/* ---- Entries ----------------------------------------------------------------------------------------- */

static dq_status no_memory(dq_error *err)
{
    return dq_no_memory(err, sizeof(dq_schema), "a schema");
}

static entry *find_entry(const dq_schemas *set, const char *domain, const char *name)
{
    entry *e = dq_namemap_get(&set->by_name, name);
    while (e && strcmp(e->domain, domain) != 0)
        e = e->next;
    return e;
}

/* The strings must live as long as the set. */
static dq_status add_entry(dq_schemas *set, const char *domain, const char *name, entry **out, dq_error *err)
{
    if (set->count == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 64;
        entry **larger = realloc(set->entries, capacity * sizeof(entry *));
        if (!larger)
            return no_memory(err);
        set->entries = larger;
        set->capacity = capacity;
    }
    entry *e = DQ_NEW(&set->arena, entry);
    if (!e)
        return no_memory(err);
    e->domain = domain;
    e->name = name;
    e->next = dq_namemap_get(&set->by_name, name);
    if (!dq_namemap_put(&set->by_name, name, e))
        return no_memory(err);
    set->entries[set->count++] = e;
    *out = e;
    return DQ_OK;
}

/* Inserts a row in order. Of two rows of one version, the user's stays. */
static dq_status add_version(dq_schemas *set, entry *e, const dq_schema *schema, bool replace, dq_error *err)
{
    uint32_t at = 0;
    while (at < e->count && e->versions[at]->since_version < schema->since_version)
        at++;
    if (at < e->count && e->versions[at]->since_version == schema->since_version) {
        if (replace)
            e->versions[at] = schema;
        return DQ_OK;
    }
    if (e->count == e->capacity) {
        uint32_t capacity = e->capacity ? e->capacity * 2 : 8;
        const dq_schema **larger = DQ_NEW_ARRAY(&set->arena, capacity, const dq_schema *);
        if (!larger)
            return no_memory(err);
        if (e->count)
            memcpy(larger, e->versions, e->count * sizeof *larger);
        e->versions = larger;
        e->capacity = capacity;
    }
    memmove(e->versions + at + 1, e->versions + at, (e->count - at) * sizeof *e->versions);
    e->versions[at] = schema;
    e->count++;
    return DQ_OK;
}

/* ---- Reading text ------------------------------------------------------------------------------------ */

typedef struct pending pending;
struct pending {
    dq_schema *schema;
    pending *next;
};

/* The rows of one text. They enter the set after the whole text is read. */
typedef struct text_reader {
    dq_schemas *set;
    dq_arena tree; /* YAML nodes and the list of rows, freed after reading. */
    const char *source;
    pending *first, **end;
    unsigned count;
} text_reader;

static dq_status take_document(void *arg, const dq_yaml *root, dq_error *err)
{
    text_reader *r = arg;
    if (root->kind == DQ_YAML_SCALAR && root->plain && !*root->text)
        return DQ_OK; /* Nothing between two document marks. */
    if (r->count++ == MAX_DOCUMENTS)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "%s:%u: too many documents, the limit is %u", r->source,
                       root->line, MAX_DOCUMENTS);
    pending *p = DQ_NEW(&r->tree, pending);
    if (!p)
        return no_memory(err);
    DQ_TRY(dq_schema_read(&r->set->arena, root, r->source, &p->schema, err));
    const dq_schema *s = p->schema;
    for (const pending *q = r->first; q; q = q->next)
        if (q->schema->since_version == s->since_version && strcmp(q->schema->name, s->name) == 0 &&
            strcmp(q->schema->domain, s->domain) == 0)
            return dq_fail(err, DQ_BAD_MODEL, "%s:%u: operator '%s' has since_version %d twice", r->source,
                           root->line, s->name, s->since_version);
    *r->end = p;
    r->end = &p->next;
    return DQ_OK;
}

static dq_status add_rows(dq_schemas *set, const pending *first, bool replace, dq_error *err)
{
    for (const pending *p = first; p; p = p->next) {
        entry *e = find_entry(set, p->schema->domain, p->schema->name);
        if (!e)
            DQ_TRY(add_entry(set, p->schema->domain, p->schema->name, &e, err));
        DQ_TRY(add_version(set, e, p->schema, replace, err));
    }
    return DQ_OK;
}

static dq_status read_text(dq_schemas *set, const char *text, size_t length, const char *source, bool replace,
                           dq_error *err)
{
    text_reader r = {.set = set, .source = source};
    r.end = &r.first;
    dq_status status = dq_yaml_read(&r.tree, text, length, source, take_document, &r, err);
    if (status == DQ_OK)
        status = add_rows(set, r.first, replace, err);
    dq_arena_free(&r.tree);
    return status;
}

/* ---- Embedded schemas -------------------------------------------------------------------------------- */

static const char *name_of(const dq_embedded_schema *row)
{
    const char *domain = dq_embedded_names + row->names;
    return domain + strlen(domain) + 1;
}

/* Inflates row->from + row->size bytes: the texts of newer versions, then that of the row. */
static dq_status inflate_row(const dq_embedded_schema *row, char *text, dq_error *err)
{
    uInt size = (uInt)row->from + row->size;
    z_stream stream = {.next_in = (unsigned char *)(uintptr_t)(dq_embedded_streams + row->stream),
                       .avail_in = row->compressed_size,
                       .next_out = (unsigned char *)text,
                       .avail_out = size};
    int result = inflateInit2(&stream, -MAX_WBITS);
    if (result != Z_OK)
        return dq_no_memory(err, size, "inflating a schema");
    result = inflateSetDictionary(&stream, dq_embedded_dictionary, (uInt)dq_embedded_dictionary_size);
    if (result == Z_OK)
        result = inflate(&stream, Z_SYNC_FLUSH);
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR)
        return dq_no_memory(err, size, "inflating a schema");
    if (stream.avail_out)
        return dq_fail(err, DQ_INTERNAL, "the schema of %s in the library is damaged", name_of(row));
    return DQ_OK;
}

static dq_status parse_row(dq_schemas *set, entry *e, uint32_t i, dq_error *err)
{
    const dq_embedded_schema *row = &e->embedded[i];
    if (e->parsed >> i & 1)
        return DQ_OK;
    size_t size = (size_t)row->from + row->size;
    char *text = malloc(size);
    if (!text)
        return dq_no_memory(err, size, "a schema's text");
    dq_status status = inflate_row(row, text, err);
    if (status == DQ_OK)
        status = read_text(set, text + row->from, row->size, name_of(row), false, err);
    free(text);
    if (status == DQ_OK && !e->count)
        status = dq_fail(err, DQ_INTERNAL, "the library's schema file of %s is for another operator",
                         name_of(row));
    if (status == DQ_BAD_MODEL) {
        dq_error_prefix(err, "a schema in the library is wrong: ");
        if (err)
            err->status = DQ_INTERNAL;
        status = DQ_INTERNAL;
    }
    if (status == DQ_OK)
        e->parsed |= UINT64_C(1) << i;
    return status;
}

static dq_status parse_all(dq_schemas *set, entry *e, dq_error *err)
{
    for (uint32_t i = 0; i < e->embedded_count; i++)
        DQ_TRY(parse_row(set, e, i, err));
    return DQ_OK;
}

/* Parses the newest embedded version up to opset_version, or all versions if each of them is newer. */
static dq_status parse_newest(dq_schemas *set, entry *e, int opset_version, dq_error *err)
{
    for (uint32_t i = e->embedded_count; i-- > 0;)
        if (e->embedded[i].since_version <= opset_version)
            return parse_row(set, e, i, err);
    return parse_all(set, e, err);
}

static dq_status list_embedded(dq_schemas *set, dq_error *err)
{
    entry *e = NULL;
    for (size_t i = 0; i < dq_embedded_schema_count; i++) {
        const dq_embedded_schema *row = &dq_embedded_schemas[i];
        if (!e || e->embedded->names != row->names) {
            const char *domain = dq_embedded_names + row->names;
            DQ_TRY(add_entry(set, domain, name_of(row), &e, err));
            e->embedded = row;
        }
        e->embedded_count++;
    }
    return DQ_OK;
}

/* ---- The set ----------------------------------------------------------------------------------------- */

dq_status dq_schemas_create(dq_schemas **out, dq_error *err)
{
    DQ_NOT_NULL(out);
    *out = NULL;
    dq_schemas *set = calloc(1, sizeof *set);
    if (!set)
        return dq_no_memory(err, sizeof *set, "a set of schemas");
    atomic_init(&set->users, 1);
    dq_status status = dq_lock_create(&set->lock, "a set of schemas", err);
    if (status != DQ_OK) {
        free(set);
        return status;
    }
    status = list_embedded(set, err);
    if (status == DQ_OK)
        *out = set;
    else
        dq_schemas_free(set);
    return status;
}

dq_schemas *dq_schemas_keep(dq_schemas *set)
{
    atomic_fetch_add(&set->users, 1);
    return set;
}

void dq_schemas_free(dq_schemas *set)
{
    if (!set || atomic_fetch_sub(&set->users, 1) != 1)
        return;
    dq_lock_destroy(&set->lock);
    dq_namemap_free(&set->by_name);
    free(set->entries);
    dq_arena_free(&set->arena);
    free(set);
}

dq_status dq_schemas_add_yaml(dq_schemas *schemas, const char *text, size_t length, const char *source,
                              dq_error *err)
{
    DQ_NOT_NULL(schemas);
    DQ_NOT_NULL(source);
    if (length)
        DQ_NOT_NULL(text);
    const dq_fpenv callers = dq_fpenv_enter();
    dq_lock_take(&schemas->lock);
    dq_status status = read_text(schemas, text ? text : "", length, source, true, err);
    dq_lock_release(&schemas->lock);
    dq_fpenv_leave(callers);
    return status;
}

static const char *domain_text(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}

static dq_status find_locked(dq_schemas *set, const char *domain, const char *name, int opset_version,
                             const dq_schema **out, dq_error *err)
{
    entry *e = find_entry(set, domain, name);
    if (!e)
        return dq_fail(err, DQ_UNSUPPORTED, "there is no schema for operator '%s' of domain '%s'", name,
                       domain_text(domain));
    DQ_TRY(parse_newest(set, e, opset_version, err));
    for (uint32_t i = e->count; i-- > 0;)
        if (e->versions[i]->since_version <= opset_version) {
            *out = e->versions[i];
            return DQ_OK;
        }
    return dq_fail(err, DQ_BAD_MODEL,
                   "operator '%s' came with version %d of domain '%s', the model imports version %d", name,
                   e->versions[0]->since_version, domain_text(domain), opset_version);
}

dq_status dq_schemas_find(dq_schemas *set, const char *domain, const char *name, int opset_version,
                          const dq_schema **out, dq_error *err)
{
    *out = NULL;
    domain = dq_domain_canonical(domain);
    if (opset_version <= 0)
        return dq_fail(err, DQ_BAD_MODEL, "operator '%s' is of domain '%s', which the model does not import",
                       name, domain_text(domain));
    dq_lock_take(&set->lock);
    dq_status status = find_locked(set, domain, name, opset_version, out, err);
    dq_lock_release(&set->lock);
    return status;
}

/* ---- Walking ----------------------------------------------------------------------------------------- */

static int compare_entries(const void *a, const void *b)
{
    const entry *x = *(entry *const *)a, *y = *(entry *const *)b;
    int domains = strcmp(x->domain, y->domain);
    return domains ? domains : strcmp(x->name, y->name);
}

/* Lists all rows in order, in a malloc'ed array. `visit` then runs without the lock, so that it may use the
 * set. */
static dq_status list_rows(dq_schemas *set, const dq_schema ***out, size_t *count, dq_error *err)
{
    for (size_t i = 0; i < set->count; i++)
        DQ_TRY(parse_all(set, set->entries[i], err));
    qsort(set->entries, set->count, sizeof *set->entries, compare_entries);
    *count = 0;
    for (size_t i = 0; i < set->count; i++)
        *count += set->entries[i]->count;
    const dq_schema **rows = malloc((*count + 1) * sizeof(const dq_schema *)), **next = rows;
    if (!rows)
        return no_memory(err);
    for (size_t i = 0; i < set->count; i++)
        for (uint32_t k = 0; k < set->entries[i]->count; k++)
            *next++ = set->entries[i]->versions[k];
    *out = rows;
    return DQ_OK;
}

dq_status dq_schemas_each(dq_schemas *set, int (*visit)(void *arg, const dq_schema *schema), void *arg,
                          dq_error *err)
{
    const dq_schema **rows = NULL;
    size_t count = 0;
    dq_lock_take(&set->lock);
    dq_status status = list_rows(set, &rows, &count, err);
    dq_lock_release(&set->lock);
    DQ_TRY(status);
    for (size_t i = 0; i < count; i++)
        if (visit(arg, rows[i]))
            break;
    free((void *)rows);
    return DQ_OK;
}
