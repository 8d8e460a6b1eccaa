/* SPDX-License-Identifier: Apache-2.0 */
/* --expect. */
#include "cli/inputs.h"
#include "cli/outputs.h"
#include "cli/suggest.h"
#include "cli/terminal.h"
#include "compare.h"
#include "io/common.h"
#include "io/npz.h"
#include "io/pb.h"
#include "io/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct comparison {
    const cli_outputs *outputs;
    const cli_options *options;
    const char *path;
    bool *seen; /* Per output. */
    cli_comparison *result;
    dq_error *err;
} comparison;

static void print_line(const char *name, const dq_tensor *want, const compare_result *result)
{
    cli_style style = result->same ? CLI_STYLE_GOOD : CLI_STYLE_BAD;
    printf("%s: %s%s%s", name, cli_style_on(stdout, style), result->message, cli_style_off(stdout));
    if (result->same)
        printf(" (%zu %s%s)", result->count, dq_tensor_kind(want) == DQ_KIND_TENSOR ? "element" : "item",
               result->count == 1 ? "" : "s");
    printf("\n");
}

static void print_json(cli_json *json, const char *name, const compare_result *result)
{
    cli_json_begin_object(json, NULL);
    cli_json_text(json, "name", name);
    cli_json_bool(json, "equal", result->same);
    cli_json_size(json, "count", result->count);
    cli_json_text(json, "message", result->message);
    cli_json_end_object(json);
}

static void compare_one(comparison *c, size_t output, const dq_tensor *want)
{
    compare_tolerance tolerance = {c->options->rtol, c->options->atol};
    compare_result result;
    cli_comparison *to = c->result;
    char name[256];
    compare_tensors(c->outputs->tensors[output], want, &tolerance, &result);
    snprintf(name, sizeof name, "%s", c->outputs->names[output]);
    io_printable(name);
    to->compared++;
    if (!result.same && !to->different++)
        snprintf(to->first, sizeof to->first, "%s: %s", name, result.message);
    if (to->lines)
        print_line(name, want, &result);
    if (to->json)
        print_json(to->json, c->outputs->names[output], &result);
}

/* Finds the output for which an array or file is the expected value. Each output may have one. */
static dq_status claim(comparison *c, const char *what, const char *name, bool positional, size_t position,
                       size_t *output)
{
    const cli_outputs *outputs = c->outputs;
    size_t i = 0;
    while (i < outputs->count && strcmp(outputs->names[i], name) != 0)
        i++;
    if (i == outputs->count && positional && position < outputs->count)
        i = position;
    if (i == outputs->count) {
        char list[512] = "", text[CLI_SUGGEST_TEXT];
        size_t used = 0;
        cli_suggestion suggestion = cli_suggest_for(name);
        for (size_t k = 0; k < outputs->count; k++) {
            if (used < sizeof list)
                used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", k ? ", " : "",
                                         outputs->names[k]);
            cli_suggest_try(&suggestion, outputs->names[k]);
        }
        return io_fail(c->err, DQ_BAD_INPUT, "%s: %s '%s' is none of the outputs, which are %s%s", c->path,
                       what, name, list, cli_suggest_text(&suggestion, "", text));
    }
    if (c->seen[i])
        return io_fail(c->err, DQ_BAD_INPUT, "%s: holds output '%s' twice", c->path, outputs->names[i]);
    c->seen[i] = true;
    *output = i;
    return DQ_OK;
}

static dq_status expect_array(comparison *c, npz *archive, size_t member)
{
    const char *name = npz_name(archive, member);
    size_t position = 0, output = 0;
    bool positional = cli_position(name, "arr_", "", &position);
    dq_status status = claim(c, "array", name, positional, position, &output);
    if (status != DQ_OK)
        return status;
    dq_tensor *want = NULL;
    status = npz_read(archive, member, dq_tensor_dtype(c->outputs->tensors[output]), IO_TENSOR_LIMIT, &want,
                      c->err);
    if (status != DQ_OK) {
        io_prefix(c->err, status, name);
        return io_prefix(c->err, status, c->path);
    }
    compare_one(c, output, want);
    dq_tensor_free(want);
    return DQ_OK;
}

static dq_status expect_npz(comparison *c)
{
    npz *archive = NULL;
    dq_status status = npz_open(c->path, &archive, c->err);
    if (status != DQ_OK)
        return io_prefix(c->err, status, c->path);
    for (size_t i = 0; i < npz_count(archive) && status == DQ_OK; i++)
        status = expect_array(c, archive, i);
    npz_close(archive);
    return status;
}

/* The declaration that a file must match to be compared with that output. */
static dq_value_info declared_as(const dq_tensor *output)
{
    const dq_tensor *item = dq_tensor_item(output, 0);
    return (dq_value_info){.size = sizeof(dq_value_info),
                           .kind = dq_tensor_kind(output),
                           .item_kind = item ? dq_tensor_kind(item) : DQ_KIND_TENSOR,
                           .item_dtype = dq_tensor_dtype(output)};
}

static dq_status expect_pb(comparison *c, const char *file, const char *name, size_t position)
{
    size_t output = 0;
    dq_status status = claim(c, "file", name, true, position, &output);
    if (status != DQ_OK)
        return status;
    char *inner = NULL;
    dq_tensor *want = NULL;
    dq_value_info declared = declared_as(c->outputs->tensors[output]);
    status = pb_read_value_file(file, &declared, IO_TENSOR_LIMIT, &inner, &want, c->err);
    if (status != DQ_OK)
        return io_prefix(c->err, status, file);
    free(inner);
    compare_one(c, output, want);
    dq_tensor_free(want);
    return DQ_OK;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
    size_t x = 0, y = 0;
    cli_position((*a)->d_name, "output_", ".pb", &x);
    cli_position((*b)->d_name, "output_", ".pb", &y);
    return x < y ? -1 : x > y;
}

static int is_output(const struct dirent *entry)
{
    size_t position;
    return cli_position(entry->d_name, "output_", ".pb", &position);
}

static dq_status expect_folder(comparison *c)
{
    struct dirent **entries = NULL;
    int count = scandir(c->path, &entries, is_output, by_number);
    if (count < 0)
        return io_fail(c->err, DQ_BAD_INPUT, "%s: cannot be read: %s", c->path, strerror(errno));
    dq_status status = DQ_OK;
    size_t capacity = strlen(c->path) + 300;
    char *file = malloc(capacity);
    if (!file)
        status = io_no_memory(c->err);
    if (!count)
        status = io_fail(c->err, DQ_BAD_INPUT, "%s: holds no output_0.pb, output_1.pb…", c->path);
    for (int i = 0; i < count; i++) {
        size_t position = 0;
        if (status == DQ_OK && cli_position(entries[i]->d_name, "output_", ".pb", &position)) {
            snprintf(file, capacity, "%s/%s", c->path, entries[i]->d_name);
            status = expect_pb(c, file, entries[i]->d_name, position);
        }
        free(entries[i]);
    }
    free(entries);
    free(file);
    return status;
}

dq_status cli_expect(const cli_outputs *outputs, const char *path, const cli_options *options,
                     cli_comparison *result, dq_error *err)
{
    comparison c = {.outputs = outputs, .options = options, .path = path, .result = result, .err = err};
    c.seen = calloc(outputs->count + 1, sizeof *c.seen);
    if (!c.seen)
        return io_no_memory(err);
    struct stat info;
    bool folder = !stat(c.path, &info) && S_ISDIR(info.st_mode);
    dq_status status = folder ? expect_folder(&c) : expect_npz(&c);
    for (size_t i = 0; i < outputs->count && status == DQ_OK; i++) {
        if (!c.seen[i])
            status =
                io_fail(err, DQ_BAD_INPUT, "%s: holds nothing for output '%s'", c.path, outputs->names[i]);
    }
    free(c.seen);
    return status;
}
