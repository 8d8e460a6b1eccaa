/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lists.h"

#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/model.h"
#include "cli/suggest.h"
#include "cli/terminal.h"
#include "io/common.h"
#include "io/text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- check --------------------------------------------------------------------------------------------- */

typedef struct findings {
    size_t count;
    bool quiet;
    cli_json *json; /* NULL: text */
} findings;

static void report(void *arg, const dq_error *why)
{
    findings *f = arg;
    char line[sizeof why->message];
    f->count++;
    if (f->json) {
        cli_json_begin_object(f->json, NULL);
        cli_json_text(f->json, "status", dq_status_name(why->status));
        cli_json_text(f->json, "message", why->message);
        cli_json_end_object(f->json);
    } else if (!f->quiet) {
        memcpy(line, why->message, sizeof line);
        printf("%s\n", io_printable(line));
    }
}

static void put_declaration(const dq_value_info *info, cli_json *json)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", info->name);
    cli_json_text(json, "type", info->type);
    if (info->has_shape && info->kind == DQ_KIND_TENSOR) {
        cli_json_begin_array(json, "shape");
        for (size_t i = 0; i < info->rank; i++) {
            if (info->dims[i] >= 0)
                cli_json_int(json, NULL, info->dims[i]);
            else
                cli_json_text(json, NULL, info->dim_names ? info->dim_names[i] : NULL);
        }
        cli_json_end_array(json);
    } else {
        cli_json_null(json, "shape");
    }
    cli_json_bool(json, "optional", info->optional);
    cli_json_end_object(json);
}

static void put_declarations(const dq_model *model, cli_json *json)
{
    dq_value_info info = DQ_VALUE_INFO_INIT;
    cli_json_begin_array(json, "inputs");
    for (size_t i = 0; i < dq_model_input_count(model); i++) {
        if (dq_model_input(model, i, &info, NULL) == DQ_OK)
            put_declaration(&info, json);
    }
    cli_json_end_array(json);
    cli_json_begin_array(json, "outputs");
    for (size_t i = 0; i < dq_model_output_count(model); i++) {
        if (dq_model_output(model, i, &info, NULL) == DQ_OK)
            put_declaration(&info, json);
    }
    cli_json_end_array(json);
}

static dq_status check_json(const dq_model *model, const cli_options *options, dq_error *err)
{
    cli_json json;
    findings f = {.json = &json};
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    cli_json_begin_object(&json, NULL);
    cli_json_text(&json, "model", options->model);
    cli_json_begin_array(&json, "problems");
    status = dq_model_check(model, report, &f, err);
    cli_json_end_array(&json);
    cli_json_bool(&json, "can_run", status == DQ_OK);
    put_declarations(model, &json);
    cli_json_end_object(&json);
    /* Without a finding, the check itself has failed. */
    dq_status printed = cli_json_finish(&json, f.count ? DQ_OK : status, err);
    if (f.count && printed == DQ_OK)
        err->message[0] = 0;
    return printed == DQ_OK ? status : printed;
}

dq_status cli_check(const dq_model *model, const cli_options *options, dq_error *err)
{
    findings f = {.quiet = options->quiet};
    const char *name = cli_is_standard_input(options->model) ? cli_standard_input : options->model;
    if (options->json)
        return check_json(model, options, err);
    err->message[0] = 0;
    dq_status status = dq_model_check(model, report, &f, err);
    if (f.count)
        err->message[0] = 0;
    if (options->quiet || (status != DQ_OK && !f.count))
        return status;
    if (!f.count)
        printf("%s: %severy node can run%s\n", name, cli_style_on(stdout, CLI_STYLE_GOOD),
               cli_style_off(stdout));
    else
        printf("%s: %s%zu node%s cannot run%s\n", name, cli_style_on(stdout, CLI_STYLE_BAD), f.count,
               f.count == 1 ? "" : "s", cli_style_off(stdout));
    return status;
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

typedef struct listing {
    dq_schemas *schemas;
    const char *filter; /* NULL: all */
    cli_json *json;     /* NULL: text */
    size_t count;
    char domain[256]; /* Of the last row. */
    cli_suggestion suggestion;
    dq_error *err;
    dq_status status;
} listing;

static const char *domain_name(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}

static bool contains(const char *text, const char *part)
{
    for (; *text; text++) {
        size_t i = 0;
        while (part[i] && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (!part[i])
            return true;
    }
    return !*part;
}

/* The text of the type constraints, malloc'ed. */
static char *types_of(listing *l, const dq_operator_info *info)
{
    size_t length = dq_schemas_types(l->schemas, info, NULL, 0);
    char *text = malloc(length + 1);
    if (text)
        dq_schemas_types(l->schemas, info, text, length + 1);
    else
        l->status = io_no_memory(l->err);
    return text;
}

/* Writes "float, int8" as items of an array; `end` is the end of the text. */
static void put_list(cli_json *json, const char *text, const char *end)
{
    while (text < end) {
        const char *next = strstr(text, ", ");
        if (!next || next > end)
            next = end;
        cli_json_text_of(json, NULL, text, (size_t)(next - text));
        text = next + 2;
    }
}

/* Writes "T1: float, float16; T2: uint8" as members. */
static void put_types(cli_json *json, const char *text)
{
    char name[128];
    while (*text) {
        const char *colon = strstr(text, ": "), *end = strstr(text, "; ");
        end = end ? end : text + strlen(text);
        if (!colon || colon > end)
            break;
        snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
        cli_json_begin_array(json, name);
        put_list(json, colon + 2, end);
        cli_json_end_array(json);
        text = *end ? end + 2 : end;
    }
}

static void put_json(cli_json *json, const dq_operator_info *info, const char *types)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "domain", domain_name(info->domain));
    cli_json_text(json, "name", info->name);
    cli_json_int(json, "since_version", info->since_version);
    cli_json_bool(json, "deprecated", info->deprecated);
    cli_json_bool(json, "implemented", info->implemented);
    cli_json_begin_object(json, "types");
    put_types(json, types);
    cli_json_end_object(json);
    cli_json_end_object(json);
}

/* Shortens "T: tensor(float), seq(tensor(float))" to "T: float, seq(tensor(float))": tensors are implied. */
static void shorten(char *types)
{
    char *to = types;
    for (const char *from = types; *from;) {
        bool starts = to == types || to[-1] == ' ';
        size_t length = strcspn(from, ",;");
        if (starts && !strncmp(from, "tensor(", 7) && from[length - 1] == ')') {
            memmove(to, from + 7, length - 8);
            to += length - 8;
            from += length;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
}

static void print_row(listing *l, const dq_operator_info *info, char *types)
{
    if (!l->count || strcmp(l->domain, info->domain) != 0)
        printf("%s%s%s%s\n", l->count ? "\n" : "", cli_style_on(stdout, CLI_STYLE_TITLE),
               domain_name(info->domain), cli_style_off(stdout));
    snprintf(l->domain, sizeof l->domain, "%s", info->domain);
    const char *note = info->deprecated ? "deprecated; " : info->implemented ? "" : "not implemented; ";
    shorten(types);
    printf("  %-32s %3d  %s%s\n", info->name, info->since_version, note, types);
}

static int list_one(void *arg, const dq_operator_info *info)
{
    listing *l = arg;
    if (l->filter) {
        cli_suggest_try(&l->suggestion, info->name);
        cli_suggest_try(&l->suggestion, domain_name(info->domain));
        if (!contains(info->name, l->filter) && !contains(domain_name(info->domain), l->filter))
            return 0;
    }
    char *types = types_of(l, info);
    if (!types)
        return 1;
    if (l->json)
        put_json(l->json, info, types);
    else
        print_row(l, info, types);
    l->count++;
    free(types);
    return 0;
}

static dq_status list_all(listing *l, dq_error *err)
{
    char text[CLI_SUGGEST_TEXT];
    dq_status status = dq_schemas_list(l->schemas, list_one, l, err);
    if (status == DQ_OK)
        status = l->status;
    if (status == DQ_OK && !l->count && l->filter)
        status = io_fail(err, DQ_INVALID_ARGUMENT, "no operator or domain has '%s' in its name%s", l->filter,
                         cli_suggest_text(&l->suggestion, "", text));
    return status;
}

dq_status cli_ops(dq_schemas *schemas, const cli_options *options, dq_error *err)
{
    cli_json json;
    listing l = {.schemas = schemas,
                 .filter = options->argument,
                 .suggestion = cli_suggest_for(options->argument ? options->argument : ""),
                 .err = err};
    if (!options->json)
        return list_all(&l, err);
    dq_status status = cli_json_start(&json, err);
    if (status != DQ_OK)
        return status;
    l.json = &json;
    cli_json_begin_array(&json, NULL);
    status = list_all(&l, err);
    cli_json_end_array(&json);
    return cli_json_finish(&json, status, err);
}
