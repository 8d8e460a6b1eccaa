/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target of files of packed weights: a file that the library packs for a small model is changed, gets
 * checksums that are right, and is loaded beside the model, which then runs.
 *
 * An input is a list of changes, no file, so that the corpus serves every format, version and processor. What
 * must hold: no byte outside of the table and the forms is read; a refusal has its status and a message; a
 * file without a change gives the same results as none. */
#define _GNU_SOURCE
#include "support/packed_bytes.h"

#include <dqrun/dqrun.h>

#include <inttypes.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHANGES_MAX = 64, LEVELS_MAX = 16, CONSTANTS_MAX = 3, LONGER_MAX = 4096 };

typedef enum change_kind {
    IN_TABLE,       /* Writes to the header, the entries or the keys. */
    IN_FORM,        /* Writes to a form. */
    NEAR_END,       /* Writes to a form; `where` counts from its end. */
    ANOTHER_LENGTH, /* Gives a form another length, up to LONGER_MAX bytes more than it has. */
} change_kind;

typedef struct change {
    uint8_t how; /* Bits 0 and 1: a change_kind; 2 and 3: the logarithm of the bytes to write; others: the
                    form. */
    uint8_t where[2]; /* The low byte first, modulo the bytes that there are. */
    uint8_t bytes[8];
} change;

/* An input: its first two bytes, then changes. */
typedef struct choice {
    uint8_t level, sample; /* ISA level and model, modulo those that there are. */
} choice;

/* ---- Models ------------------------------------------------------------------------------------------- */

typedef struct shape {
    dq_dtype dtype;
    int64_t dims[4]; /* Until the first 0. */
} shape;

/* A node of an input and constants. */
typedef struct sample {
    const char *op, *domain, *algorithm;
    shape x, constants[CONSTANTS_MAX];
    dq_attribute attributes[4]; /* Until the first without a name. */
} sample;

#define INT(n, value)                                                                                        \
    {                                                                                                        \
        .size = sizeof(dq_attribute), .name = (n), .kind = DQ_ATTRIBUTE_INT, .i = (value)                    \
    }

static const sample samples[] = {
    {"MatMulInteger", "", "matmul_s8=gemm_packed", {DQ_UINT8, {5, 72}}, {{DQ_INT8, {72, 40}}}, {{0}}},
    {"MatMulInteger", "", "matmul_s8=few_rows_packed", {DQ_UINT8, {1, 72}}, {{DQ_INT8, {72, 40}}}, {{0}}},
    {"ConvInteger", "", "conv_s8=nc4hw4", {DQ_UINT8, {1, 8, 18, 18}}, {{DQ_INT8, {16, 8, 3, 3}}}, {{0}}},
    {"ConvInteger", "", "conv_s8=gemm_indirect", {DQ_UINT8, {1, 8, 6, 6}}, {{DQ_INT8, {16, 8, 3, 3}}}, {{0}}},
    {"ConvInteger", "", "conv_s8=winograd_2d", {DQ_UINT8, {1, 8, 6, 6}}, {{DQ_INT8, {16, 8, 3, 3}}}, {{0}}},
    {"ConvInteger",
     "",
     "conv_s8=depthwise_nchwc",
     {DQ_UINT8, {1, 16, 6, 6}},
     {{DQ_INT8, {16, 1, 3, 3}}},
     {INT("group", 16)}},
    {"MatMulInteger16", "com.microsoft", NULL, {DQ_INT16, {5, 72}}, {{DQ_INT16, {72, 40}}}, {{0}}},
    {"MatMul", "", "matmul_f32=gemm_packed", {DQ_FLOAT, {5, 72}}, {{DQ_FLOAT, {72, 40}}}, {{0}}},
    {"Conv", "", "conv_f32=winograd_2d", {DQ_FLOAT, {1, 16, 8, 8}}, {{DQ_FLOAT, {16, 16, 3, 3}}}, {{0}}},
    {"MatMulNBits",
     "com.microsoft",
     NULL,
     {DQ_FLOAT, {1, 96}},
     {{DQ_UINT8, {40, 3, 16}}, {DQ_FLOAT, {120}}, {DQ_UINT8, {80}}},
     {INT("K", 96), INT("N", 40), INT("bits", 4), INT("block_size", 32)}},
    {"LSTM",
     "",
     NULL,
     {DQ_FLOAT, {3, 2, 8}},
     {{DQ_FLOAT, {1, 64, 8}}, {DQ_FLOAT, {1, 64, 16}}},
     {INT("hidden_size", 16)}},
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static dq_error err;

static void must(bool holds)
{
    if (!holds) {
        fprintf(stderr, "fuzz_packed: %s\n", err.message);
        abort();
    }
}

static size_t rank_of(const shape *s)
{
    size_t rank = 0;
    while (rank < 4 && s->dims[rank])
        rank++;
    return rank;
}

/* A tensor of small numbers with a few large ones, so that kernels with limits on pairs of weights split
 * some.
 */
static dq_tensor *tensor_of(const shape *s)
{
    dq_tensor *t = NULL;
    must(dq_tensor_create(s->dtype, rank_of(s), s->dims, &t, &err) == DQ_OK);
    void *data = dq_tensor_mutable_data(t);
    for (size_t i = 0; i < dq_tensor_count(t); i++) {
        const int value = i % 23 == 0 ? 120 : (int)(i * (i * 7 + 13) % 41) - 20;
        if (s->dtype == DQ_FLOAT)
            ((float *)data)[i] = (float)value / 64;
        else if (s->dtype == DQ_INT16)
            ((int16_t *)data)[i] = (int16_t)(value * 99);
        else
            ((int8_t *)data)[i] = (int8_t)value;
    }
    return t;
}

static dq_status make_model(const sample *m, const char *packed_path, dq_model **out)
{
    static dq_schemas *schemas; /* Of all models: an operator's schema is read on its first use. */
    static const char *const names[] = {"x", "a", "b", "c"};
    must(schemas || dq_schemas_create(&schemas, &err) == DQ_OK);
    const dq_load_options options = {.size = sizeof options, .schemas = schemas, .packed_path = packed_path};
    const char *ins[5] = {"x"}, *outs[] = {"y"};
    dq_node_spec node = {.size = sizeof node,
                         .domain = m->domain,
                         .op_type = m->op,
                         .input_count = 1,
                         .inputs = ins,
                         .output_count = 1,
                         .outputs = outs,
                         .attributes = m->attributes};
    dq_builder *b = NULL;
    must(dq_builder_create("m", &b, &err) == DQ_OK && dq_builder_opset(b, "", 21, &err) == DQ_OK &&
         dq_builder_opset(b, "com.microsoft", 1, &err) == DQ_OK &&
         dq_builder_input(b, "x", m->x.dtype, rank_of(&m->x), m->x.dims, NULL, &err) == DQ_OK);
    for (size_t i = 0; i < CONSTANTS_MAX && m->constants[i].dtype; i++) {
        dq_tensor *t = tensor_of(&m->constants[i]);
        ins[node.input_count] = names[node.input_count];
        must(dq_builder_initializer(b, ins[node.input_count++], t, &err) == DQ_OK);
        dq_tensor_free(t);
    }
    while (node.attribute_count < 4 && m->attributes[node.attribute_count].name)
        node.attribute_count++;
    must(dq_builder_node(b, &node, NULL, &err) == DQ_OK &&
         dq_builder_output(b, "y", DQ_UNDEFINED, DQ_ANY_SHAPE, NULL, NULL, &err) == DQ_OK);
    return dq_builder_finish(b, &options, out, &err);
}

/* ---- Files -------------------------------------------------------------------------------------------- */

/* What is known of a model at a level: its file, and the hash of its results. */
typedef struct reference {
    bool made;
    packed_bytes file; /* Without bytes: the algorithm is not one of the level's. */
    dq_hash results;
} reference;

static int append(void *arg, const void *bytes, size_t size)
{
    packed_bytes *to = arg;
    to->bytes = realloc(to->bytes, to->size + size);
    must(to->bytes != NULL);
    memcpy(to->bytes + to->size, bytes, size);
    to->size += size;
    return 0;
}

static dq_status open_session(dq_model *model, const sample *m, const char *isa, dq_session **out)
{
    const dq_session_options options = {
        .size = sizeof options, .threads = 1, .isa = isa, .algorithms = m->algorithm};
    return dq_session_create(model, &options, out, &err);
}

/* Runs the model; gives the hash of its results, and the file that the session would write. */
static dq_status run(dq_session *session, const sample *m, dq_hash *results, packed_bytes *file)
{
    dq_tensor *x = tensor_of(&m->x);
    const dq_tensor *y = NULL;
    must(dq_session_set_input(session, "x", x, &err) == DQ_OK);
    const dq_status status = dq_session_run(session, &err);
    if (status == DQ_OK) {
        must(dq_session_get_output(session, "y", &y, &err) == DQ_OK &&
             dq_session_save_packed_write(session, append, file, &err) == DQ_OK);
        *results = dq_hash_bytes(dq_tensor_data(y), dq_tensor_size(y));
    }
    dq_session_free(session);
    dq_tensor_free(x);
    return status;
}

static void make_reference(const sample *m, const char *isa, reference *r)
{
    dq_model *model = NULL;
    dq_session *session = NULL;
    must(make_model(m, NULL, &model) == DQ_OK && open_session(model, m, isa, &session) == DQ_OK);
    r->made = true;
    const dq_status status = run(session, m, &r->results, &r->file);
    must(status == DQ_OK || strstr(err.message, "is not applicable"));
    dq_model_free(model);
}

static change_kind kind_of(const change *c)
{
    return (change_kind)(c->how & 3);
}

/* Writes the bytes of a change to to[0 … size-1]. */
static void write_bytes(const change *c, unsigned char *to, size_t size)
{
    const size_t where = (c->where[0] | (size_t)c->where[1] << 8) % size,
                 width = (size_t)1 << (c->how >> 2 & 3);
    const size_t at = kind_of(c) == NEAR_END ? size - 1 - where : where;
    memcpy(to + at, c->bytes, width < size - at ? width : size - at);
}

static void change_form(packed_bytes *file, const change *c)
{
    const size_t i = (c->how >> 4) % packed_number(file, AT_COUNT, 4);
    size_t length, at = packed_form(file, i, &length);
    if (kind_of(c) != ANOTHER_LENGTH) {
        if (length)
            write_bytes(c, file->bytes + at, length);
        return;
    }
    /* Forms may move to the next page, or away from one. */
    packed_bytes to = {.bytes = calloc(1, file->size + 2 * LONGER_MAX)};
    must(to.bytes != NULL);
    packed_resize(file, i, (c->where[0] | (size_t)c->where[1] << 8) % (length + LONGER_MAX + 1), &to);
    free(file->bytes);
    *file = to;
}

/* Applies the changes: those of forms first, because entries say where the forms are. */
static void apply(packed_bytes *file, const change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (kind_of(&changes[i]) != IN_TABLE)
            change_form(file, &changes[i]);
    const size_t table = packed_number(file, AT_KEYS_END, 8);
    for (size_t i = 0; i < count; i++)
        if (kind_of(&changes[i]) == IN_TABLE)
            write_bytes(&changes[i], file->bytes, table);
    packed_seal(file);
}

/* Lets AddressSanitizer refuse reads of the mapped file outside of its table and forms, until the mapping
 * that it returns is unpoisoned. */
static packed_bytes watch(const packed_bytes *file, const char *name)
{
    packed_bytes mapping = {0};
    char line[512];
    uintptr_t first, end;
    FILE *maps = fopen("/proc/self/maps", "r");
    must(maps != NULL);
    while (fgets(line, sizeof line, maps))
        if (strstr(line, name) && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &first, &end) == 2)
            mapping = (packed_bytes){(unsigned char *)first, end - first};
    fclose(maps);
    must(mapping.bytes != NULL);
    ASAN_POISON_MEMORY_REGION(mapping.bytes, mapping.size);
    ASAN_UNPOISON_MEMORY_REGION(mapping.bytes, packed_number(file, AT_KEYS_END, 8));
    for (size_t i = 0; i < packed_number(file, AT_COUNT, 4); i++) {
        size_t length, at = packed_form(file, i, &length);
        ASAN_UNPOISON_MEMORY_REGION(mapping.bytes + at, length);
    }
    return mapping;
}

/* Loads the file beside the model, and runs it. */
static dq_status load_and_run(const sample *m, const char *isa, const packed_bytes *file, dq_hash *results)
{
    static const char name[] = "fuzz_packed";
    dq_model *model = NULL;
    dq_session *session = NULL;
    packed_bytes again = {0}, mapping = {0};
    char path[64];
    const int fd = memfd_create(name, 0);
    must(fd >= 0 && write(fd, file->bytes, file->size) == (ssize_t)file->size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    dq_status status = make_model(m, path, &model);
    if (status == DQ_OK) {
        mapping = watch(file, name);
        status = open_session(model, m, isa, &session);
    }
    if (status == DQ_OK)
        status = run(session, m, results, &again);
    free(again.bytes);
    ASAN_UNPOISON_MEMORY_REGION(mapping.bytes, mapping.size);
    dq_model_free(model);
    close(fd);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static reference references[LEVELS_MAX][SAMPLES];
    const choice *chosen = (const choice *)data;
    size_t levels = 0;
    bool available = false;
    while (dq_isa_name(levels, NULL))
        levels++;
    if (size < sizeof *chosen)
        return 0;
    const size_t level = chosen->level % levels, count = (size - sizeof *chosen) / sizeof(change);
    const char *isa = dq_isa_name(level, &available);
    const sample *m = &samples[chosen->sample % SAMPLES];
    reference *r = &references[level][m - samples];
    if (available && !r->made)
        make_reference(m, isa, r);
    if (!r->file.bytes)
        return 0;
    packed_bytes file = {.bytes = malloc(r->file.size), .size = r->file.size};
    must(file.bytes != NULL);
    memcpy(file.bytes, r->file.bytes, file.size);
    apply(&file, (const change *)(chosen + 1), count < CHANGES_MAX ? count : CHANGES_MAX);
    dq_hash results = {0};
    const dq_status status = load_and_run(m, isa, &file, &results);
    must(status == DQ_OK || (count && status == DQ_BAD_INPUT && err.status == status && err.message[0]));
    must(count || dq_hash_compare(results, r->results) == 0);
    free(file.bytes);
    return 0;
}
