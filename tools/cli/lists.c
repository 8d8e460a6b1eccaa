/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/lists.h"

#include "io/common.h"
#include "io/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- check --------------------------------------------------------------------------------------------- */

typedef struct findings {
    size_t count;
    bool quiet;
} findings;

static void report(void *arg, const dq_error *why)
{
    findings *f = arg;
    char line[sizeof why->message];
    f->count++;
    if (f->quiet)
        return;
    memcpy(line, why->message, sizeof line);
    printf("%s\n", io_printable(line));
}

dq_status cli_check(const dq_model *model, const cli_options *options, dq_error *err)
{
    findings f = {.quiet = options->quiet};
    err->message[0] = 0;
    dq_status status = dq_model_check(model, report, &f, err);
    if (f.count)
        err->message[0] = 0;
    if (options->quiet || (status != DQ_OK && !f.count))
        return status;
    if (!f.count)
        printf("%s: every node can run\n", options->model);
    else
        printf("%s: %zu node%s cannot run\n", options->model, f.count, f.count == 1 ? "" : "s");
    return status;
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

typedef struct listing {
    dq_schemas *schemas;
    bool json;
    size_t count;
    char domain[256]; /* of the last row */
    dq_error *err;
    dq_status status;
} listing;

static const char *domain_name(const char *domain)
{
    return *domain ? domain : "ai.onnx";
}

/* The text of the type constraints; malloc'ed. */
static char *types_of(listing *l, const dq_operator_info *info)
{
    size_t wanted = dq_schemas_types(l->schemas, info, NULL, 0);
    char *text = malloc(wanted + 1);
    if (text)
        dq_schemas_types(l->schemas, info, text, wanted + 1);
    else
        l->status = io_fail(l->err, DQ_OUT_OF_MEMORY, "out of memory");
    return text;
}

/* "float, int8" as a JSON list; `end` is past it. */
static void print_list(const char *text, const char *end)
{
    printf("[");
    for (const char *next; text < end; text = next + 2) {
        next = strstr(text, ", ");
        if (!next || next > end)
            next = end;
        io_print_json(text, (size_t)(next - text));
        if (next == end)
            break;
        printf(", ");
    }
    printf("]");
}

/* "T1: float, float16; T2: uint8" as a JSON object. */
static void print_types(const char *text)
{
    printf("{");
    while (*text) {
        const char *colon = strstr(text, ": "), *end = strstr(text, "; ");
        end = end ? end : text + strlen(text);
        if (!colon || colon > end)
            break;
        io_print_json(text, (size_t)(colon - text));
        printf(": ");
        print_list(colon + 2, end);
        text = *end ? end + 2 : end;
        if (*text)
            printf(", ");
    }
    printf("}");
}

static void print_json(listing *l, const dq_operator_info *info, const char *types)
{
    printf("%s\n  {\"domain\": ", l->count ? "," : "");
    io_print_json(domain_name(info->domain), strlen(domain_name(info->domain)));
    printf(", \"name\": ");
    io_print_json(info->name, strlen(info->name));
    printf(", \"since_version\": %d, \"deprecated\": %s, \"implemented\": %s, \"types\": ",
           info->since_version, info->deprecated ? "true" : "false", info->implemented ? "true" : "false");
    print_types(types);
    printf("}");
}

/* "T: tensor(float), seq(tensor(float))" as "T: float, seq(tensor(float))": plain tensors go without saying.
 */
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
        printf("%s%s\n", l->count ? "\n" : "", domain_name(info->domain));
    snprintf(l->domain, sizeof l->domain, "%s", info->domain);
    const char *note = info->deprecated ? "deprecated; " : info->implemented ? "" : "not implemented; ";
    shorten(types);
    printf("  %-32s %3d  %s%s\n", info->name, info->since_version, note, types);
}

static int list_one(void *arg, const dq_operator_info *info)
{
    listing *l = arg;
    char *types = types_of(l, info);
    if (!types)
        return 1;
    if (l->json)
        print_json(l, info, types);
    else
        print_row(l, info, types);
    l->count++;
    free(types);
    return 0;
}

dq_status cli_ops(dq_schemas *schemas, bool json, dq_error *err)
{
    listing l = {.schemas = schemas, .json = json, .err = err};
    if (json)
        printf("[");
    dq_status status = dq_schemas_list(schemas, list_one, &l, err);
    if (json)
        printf("\n]\n");
    return status == DQ_OK ? l.status : status;
}
