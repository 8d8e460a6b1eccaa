/* SPDX-License-Identifier: Apache-2.0 */
#include "api/handles.h"
#include "api/structs.h"

#include "base/fpenv.h"
#include "base/memory.h"
#include "parser/parser.h"
#include "parser/writer.h"
#include "plan/inline_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STRING_OF(x) #x
#define VERSION_TEXT(major, minor, patch) STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *dq_version(void)
{
    return VERSION_TEXT(DQ_VERSION_MAJOR, DQ_VERSION_MINOR, DQ_VERSION_PATCH);
}

/* ---- Declarations of the model ------------------------------------------------------------------------ */

static dq_status describe_all(dq_model *model, dq_error *err)
{
    const dq_graph *g = model->program->ir->graph;
    model->inputs = DQ_NEW_ARRAY(&model->arena, g->input_count, dq_value_info);
    model->outputs = DQ_NEW_ARRAY(&model->arena, g->output_count, dq_value_info);
    model->input_at = DQ_NEW_ARRAY(&model->arena, g->input_count, uint32_t);
    if (!model->inputs || !model->outputs || !model->input_at)
        return dq_no_memory(err, g->input_count * sizeof(dq_value_info), "a model's declarations");
    for (int with_default = 0; with_default < 2; with_default++)
        for (uint32_t i = 0; i < g->input_count; i++) {
            if ((g->inputs[i]->constant != NULL) != with_default)
                continue;
            DQ_TRY(dq_describe_value(g->inputs[i], &model->inputs[model->input_count], err));
            model->input_at[model->input_count++] = i;
        }
    for (uint32_t i = 0; i < g->output_count; i++) {
        DQ_TRY(dq_describe_value(g->outputs[i], &model->outputs[i], err));
        model->outputs[i].name = g->output_names[i];
    }
    return DQ_OK;
}

/* Appends to `buffer`, truncated to its size. */
static size_t append(char *buffer, size_t size, size_t used, const char *text)
{
    size_t length = strlen(text);
    if (used + length + 1 > size)
        length = size > used + 1 ? size - used - 1 : 0;
    memcpy(buffer + used, text, length);
    buffer[used + length] = '\0';
    return used + length;
}

static void list_values(const dq_value_info *infos, size_t count, const char *none, char *buffer, size_t size)
{
    char shape[DQ_SHAPE_TEXT];
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        const dq_value_info *info = &infos[i];
        used = append(buffer, size, used, i ? ", " : "");
        used = append(buffer, size, used, info->name);
        used = append(buffer, size, used, ": ");
        used = append(buffer, size, used, info->dtype ? dq_dtype_name(info->dtype) : info->type);
        if (info->has_shape)
            used =
                append(buffer, size, used, dq_symbols_text(info->rank, info->dims, info->dim_names, shape));
        if (info->optional)
            used = append(buffer, size, used, " (has a default)");
    }
    if (!count)
        append(buffer, size, used, none);
}

void dq_model_wants(const dq_model *model, char *buffer, size_t size)
{
    list_values(model->inputs, model->input_count, "no inputs", buffer, size);
}

/* Finds the position of a name among values; NULL: the first. */
static dq_status find_value(const dq_model *model, const char *what, const char *name,
                            const dq_value_info *infos, size_t count, size_t *index, dq_error *err)
{
    char all[512], none[32];
    for (size_t i = 0; i < count; i++)
        if (!name || strcmp(infos[i].name, name) == 0) {
            *index = i;
            return DQ_OK;
        }
    snprintf(none, sizeof none, "no %ss", what);
    list_values(infos, count, none, all, sizeof all);
    return dq_fail(err, DQ_BAD_INPUT, "%s: has no %s%s%s%s; the model has %s", model->program->ir->path, what,
                   name ? " '" : "", name ? name : "", name ? "'" : "", all);
}

dq_status dq_model_find_input(const dq_model *model, const char *name, size_t *index, dq_error *err)
{
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(index);
    return find_value(model, "input", name, model->inputs, model->input_count, index, err);
}

dq_status dq_model_find_output(const dq_model *model, const char *name, size_t *index, dq_error *err)
{
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(index);
    return find_value(model, "output", name, model->outputs, dq_model_output_count(model), index, err);
}

size_t dq_model_input_count(const dq_model *model)
{
    return model->input_count;
}

dq_status dq_model_input(const dq_model *model, size_t i, dq_value_info *info, dq_error *err)
{
    DQ_NOT_NULL(model);
    const size_t count = model->input_count;
    if (i >= count)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "dq_model_input: i is %zu, expected less than %zu, the number of inputs", i, count);
    return dq_write_struct(DQ_STRUCT_VALUE_INFO, "dq_model_input: info", &model->inputs[i], info, err);
}

size_t dq_model_output_count(const dq_model *model)
{
    return model->program->ir->graph->output_count;
}

dq_status dq_model_output(const dq_model *model, size_t i, dq_value_info *info, dq_error *err)
{
    DQ_NOT_NULL(model);
    const size_t count = dq_model_output_count(model);
    if (i >= count)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "dq_model_output: i is %zu, expected less than %zu, the number of outputs", i, count);
    return dq_write_struct(DQ_STRUCT_VALUE_INFO, "dq_model_output: info", &model->outputs[i], info, err);
}

/* ---- Loading ------------------------------------------------------------------------------------------ */

static dq_status inline_and_link(dq_ir *ir, dq_error *err)
{
    dq_status status = dq_inline_functions(ir, err);
    if (status == DQ_OK)
        status = dq_graph_link(ir->graph, err);
    if (status != DQ_OK)
        dq_error_prefix(err, "%s: ", ir->path);
    return status;
}

static dq_status open_packed(const dq_model *model, const dq_load_options *options, dq_error *err)
{
    const dq_ir *ir = model->program->ir;
    dq_content *content = NULL;
    if (!options->packed_path)
        return DQ_OK;
    DQ_TRY(dq_content_create(ir, &model->allocator, &content, err));
    return dq_packs_open_file(model->program->packs, options->packed_path, ir->limits.file_bytes, content,
                              ir->path, err);
}

dq_status dq_model_from_ir(dq_ir *ir, const dq_load_options *options, dq_model **out, dq_error *err)
{
    dq_model *model = dq_memory_calloc(options->allocator, 1, sizeof *model);
    if (!model) {
        dq_ir_free(ir);
        return dq_no_memory(err, sizeof *model, "a model");
    }
    if (options->allocator)
        model->allocator = *options->allocator;
    model->arena.allocator = &model->allocator;
    atomic_init(&model->users, 1);
    dq_status status = DQ_OK;
    if (options->schemas)
        model->schemas = dq_schemas_keep(options->schemas);
    else
        status = dq_schemas_create(&model->schemas, err);
    if (status == DQ_OK)
        status = inline_and_link(ir, err);
    if (status == DQ_OK)
        status = dq_program_create(ir, model->schemas, &model->allocator, &model->program, err);
    if (status != DQ_OK)
        dq_ir_free(ir);
    else
        status = describe_all(model, err);
    if (status == DQ_OK)
        status = open_packed(model, options, err);
    if (status != DQ_OK)
        dq_model_free(model);
    else
        *out = model;
    return status;
}

dq_status dq_allocator_read(const char *where, const dq_allocator *allocator, dq_allocator *out,
                            dq_error *err)
{
    DQ_TRY(dq_read_struct(DQ_STRUCT_ALLOCATOR, where, allocator, out, err));
    if (allocator && (!out->allocate || !out->release))
        return dq_fail(err, DQ_INVALID_ARGUMENT, "%s.%s is NULL", where,
                       out->allocate ? "release" : "allocate");
    return DQ_OK;
}

dq_status dq_load_request_read(const char *function, const dq_load_options *options, dq_load_request *out,
                               dq_error *err)
{
    char where[64];
    snprintf(where, sizeof where, "%s: options", function);
    DQ_TRY(dq_read_struct(DQ_STRUCT_LOAD_OPTIONS, where, options, &out->options, err));
    snprintf(where, sizeof where, "%s: options.limits", function);
    DQ_TRY(dq_read_struct(DQ_STRUCT_LIMITS, where, out->options.limits, &out->limits, err));
    out->options.limits = &out->limits;
    snprintf(where, sizeof where, "%s: options.allocator", function);
    DQ_TRY(dq_allocator_read(where, out->options.allocator, &out->allocator, err));
    if (out->options.allocator)
        out->options.allocator = &out->allocator;
    return DQ_OK;
}

/* The source of a model's bytes: one of the following. */
typedef struct source {
    const char *path; /* A file. */
    const char *name; /* Else a name for messages, and one of: */
    const void *bytes;
    size_t size;
    dq_read_fn read;
    void *arg;
    int fd;
    dq_status (*parse)(const struct source *s, const dq_load_options *options, dq_ir **ir, dq_error *err);
} source;

static dq_status parse_path(const source *s, const dq_load_options *options, dq_ir **ir, dq_error *err)
{
    return dq_parse_file(s->path, options, ir, err);
}

static dq_status parse_memory(const source *s, const dq_load_options *options, dq_ir **ir, dq_error *err)
{
    return dq_parse_memory(s->bytes, s->size, s->name, options, ir, err);
}

static dq_status parse_fd(const source *s, const dq_load_options *options, dq_ir **ir, dq_error *err)
{
    return dq_parse_fd(s->fd, s->name, options, ir, err);
}

static dq_status parse_read(const source *s, const dq_load_options *options, dq_ir **ir, dq_error *err)
{
    return dq_parse_read(s->read, s->arg, s->name, options, ir, err);
}

static dq_status load(const char *function, const source *s, const dq_load_options *options, dq_model **out,
                      dq_error *err)
{
    dq_ir *ir = NULL;
    dq_load_request own;
    DQ_TRY(dq_load_request_read(function, options, &own, err));
    const dq_fpenv callers = dq_fpenv_enter();
    dq_status status = s->parse(s, &own.options, &ir, err);
    if (status == DQ_OK)
        status = dq_model_from_ir(ir, &own.options, out, err);
    dq_fpenv_leave(callers);
    return status;
}

dq_status dq_model_load(const char *path, const dq_load_options *options, dq_model **out, dq_error *err)
{
    DQ_NOT_NULL(path);
    DQ_NOT_NULL(out);
    return load("dq_model_load", &(source){.path = path, .parse = parse_path}, options, out, err);
}

dq_status dq_model_load_memory(const void *bytes, size_t size, const char *name,
                               const dq_load_options *options, dq_model **out, dq_error *err)
{
    if (size)
        DQ_NOT_NULL(bytes);
    DQ_NOT_NULL(name);
    DQ_NOT_NULL(out);
    const source s = {.bytes = bytes, .size = size, .name = name, .parse = parse_memory};
    return load("dq_model_load_memory", &s, options, out, err);
}

dq_status dq_model_load_fd(int fd, const char *name, const dq_load_options *options, dq_model **out,
                           dq_error *err)
{
    if (fd < 0)
        return dq_fail(err, DQ_INVALID_ARGUMENT, "dq_model_load_fd: fd is %d, expected an open descriptor",
                       fd);
    DQ_NOT_NULL(name);
    DQ_NOT_NULL(out);
    return load("dq_model_load_fd", &(source){.fd = fd, .name = name, .parse = parse_fd}, options, out, err);
}

dq_status dq_model_load_read(dq_read_fn read, void *arg, const char *name, const dq_load_options *options,
                             dq_model **out, dq_error *err)
{
    DQ_NOT_NULL(read);
    DQ_NOT_NULL(name);
    DQ_NOT_NULL(out);
    const source s = {.read = read, .arg = arg, .name = name, .parse = parse_read};
    return load("dq_model_load_read", &s, options, out, err);
}

/* Releases a reference to the model; the last one frees it. */
void dq_model_free(dq_model *model)
{
    if (!model || atomic_fetch_sub(&model->users, 1) != 1)
        return;
    const dq_allocator allocator = model->allocator;
    dq_program_free(model->program);
    dq_schemas_free(model->schemas);
    dq_arena_free(&model->arena);
    dq_memory_free(&allocator, model, sizeof *model);
}

/* ---- Saving ------------------------------------------------------------------------------------------- */

dq_status dq_model_save(const dq_model *model, const char *path, dq_error *err)
{
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(path);
    return dq_write_file(model->program->ir, path, err);
}

dq_status dq_model_save_memory(const dq_model *model, void **bytes, size_t *size, dq_error *err)
{
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(bytes);
    DQ_NOT_NULL(size);
    return dq_write_memory(model->program->ir, bytes, size, err);
}

dq_status dq_model_save_write(const dq_model *model, dq_write_fn write, void *arg, dq_error *err)
{
    DQ_NOT_NULL(model);
    DQ_NOT_NULL(write);
    return dq_write_pieces(model->program->ir, write, arg, err);
}

void dq_free(void *memory)
{
    free(memory);
}

dq_status dq_model_check(const dq_model *model, void (*report)(void *arg, const dq_error *why), void *arg,
                         dq_error *err)
{
    DQ_NOT_NULL(model);
    const dq_program *p = model->program;
    dq_status worst = DQ_OK;
    for (size_t i = 0; i < p->fault_count; i++) {
        if (report)
            report(arg, &p->faults[i]);
        /* An invalid model is a more severe error than an unsupported one. */
        if (worst == DQ_OK || p->faults[i].status == DQ_BAD_MODEL) {
            if (err && worst != p->faults[i].status)
                *err = p->faults[i];
            worst = p->faults[i].status;
        }
    }
    return worst;
}
