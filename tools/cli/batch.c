/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: one run for each file or folder, as defined by cli_batch_text in cli/table.c. */
#include "cli/run.h"

#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "io/common.h"
#include "io/text.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct batch {
    cli_runner *runner;
    char **paths; /* malloc'ed, one per run. */
    size_t count, capacity;
    const char **arguments; /* Arguments of a run: the common ones, then its own path. */
    size_t shared;          /* Number of common arguments. */
    size_t failed, different;
    dq_status status;         /* Of the first run that failed. */
    cli_json document, *json; /* json NULL: text. */
} batch;

/* ---- The list of runs ---------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

static int is_npz(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_with(entry->d_name, ".npz");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_input(const struct dirent *entry)
{
    size_t position;
    return cli_position(entry->d_name, "input_", ".pb", &position);
}

static void free_entries(struct dirent **entries, int count)
{
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
}

static bool holds(const char *path, int (*filter)(const struct dirent *))
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, filter, NULL);
    if (count > 0)
        free_entries(entries, count);
    return count > 0;
}

/* Whether the path is a folder of .npz files. A folder of test data that also contains an .npz is one run. */
static bool is_folder_of_npz(const char *path)
{
    return is_folder(path) && !holds(path, is_input) && holds(path, is_npz);
}

bool cli_is_batch(const cli_options *options)
{
    bool found = options->batch;
    for (size_t i = 0; i < options->input_count && !found; i++)
        found = is_folder_of_npz(options->inputs[i]);
    return found;
}

static dq_status out_of_memory(dq_error *err)
{
    return io_fail(err, DQ_OUT_OF_MEMORY, "out of memory");
}

static dq_status add_path(batch *b, const char *folder, const char *name, dq_error *err)
{
    if (b->count == b->capacity) {
        size_t capacity = b->capacity ? 2 * b->capacity : 64;
        char **grown = realloc(b->paths, capacity * sizeof *grown);
        if (!grown)
            return out_of_memory(err);
        b->paths = grown;
        b->capacity = capacity;
    }
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path)
        return out_of_memory(err);
    snprintf(path, size, "%s%s%s", folder, !*folder || ends_with(folder, "/") ? "" : "/", name);
    b->paths[b->count++] = path;
    return DQ_OK;
}

static dq_status add_folder(batch *b, const char *folder, dq_error *err)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_npz, by_name);
    if (count < 0)
        return io_fail(err, DQ_BAD_INPUT, "%s: cannot be read: %s", folder, strerror(errno));
    dq_status status = DQ_OK;
    for (int i = 0; i < count && status == DQ_OK; i++)
        status = add_path(b, folder, entries[i]->d_name, err);
    free_entries(entries, count);
    return status;
}

static dq_status list_runs(batch *b, dq_error *err)
{
    const cli_options *o = b->runner->options;
    for (size_t i = 0; i < o->input_count; i++) {
        const char *argument = o->inputs[i];
        dq_status status = DQ_OK;
        if (cli_is_standard_input(argument))
            status = io_fail(err, DQ_INVALID_ARGUMENT, "'-' cannot be an input of a batch, expected files");
        else if (is_folder_of_npz(argument))
            status = add_folder(b, argument, err);
        else if (ends_with(argument, ".npz") || is_folder(argument))
            status = add_path(b, "", argument, err);
        else
            b->arguments[b->shared++] = argument;
        if (status != DQ_OK)
            return status;
    }
    if (!b->count)
        return io_fail(
            err, DQ_INVALID_ARGUMENT,
            "--batch needs inputs that are .npz files, or folders of .npz files or with input_0.pb…");
    return DQ_OK;
}

/* ---- Files of a run ------------------------------------------------------------------------------------ */

/* The last name of a path, without slashes at its end: its first byte and length. */
static const char *last_name(const char *path, size_t *length)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t begin = end;
    while (begin && path[begin - 1] != '/')
        begin--;
    *length = end - begin;
    return path + begin;
}

/* "FOLDER/a.npz" for the run of DIR/a.npz or of the folder DIR/a, malloc'ed; "FOLDER/a" unless `npz`. */
static char *file_of(const char *folder, const char *path, bool npz)
{
    size_t length = 0;
    const char *name = last_name(path, &length);
    if (length > 4 && !memcmp(name + length - 4, ".npz", 4))
        length -= 4;
    size_t size = strlen(folder) + length + 6;
    char *file = malloc(size);
    if (file)
        snprintf(file, size, "%s%s%.*s%s", folder, ends_with(folder, "/") ? "" : "/", (int)length, name,
                 npz ? ".npz" : "");
    return file;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Refuses two runs that write, or are compared with, the same file. */
static dq_status check_names(const batch *b, dq_error *err)
{
    dq_status status = DQ_OK;
    char **names = calloc(b->count + 1, sizeof *names);
    if (!names)
        return out_of_memory(err);
    for (size_t i = 0; i < b->count && status == DQ_OK; i++) {
        names[i] = file_of("", b->paths[i], true);
        if (!names[i])
            status = out_of_memory(err);
    }
    if (status == DQ_OK)
        qsort(names, b->count, sizeof *names, by_text);
    for (size_t i = 1; i < b->count && status == DQ_OK; i++) {
        if (!strcmp(names[i - 1], names[i]))
            status =
                io_fail(err, DQ_INVALID_ARGUMENT,
                        "two inputs of the batch are named '%s', expected different names with --output or "
                        "--expect",
                        names[i] + 1);
    }
    for (size_t i = 0; i < b->count; i++)
        free(names[i]);
    free(names);
    return status;
}

static dq_status check_options(const batch *b, dq_error *err)
{
    const cli_options *o = b->runner->options;
    const char *output = b->runner->output;
    if (o->labels)
        return io_fail(err, DQ_INVALID_ARGUMENT, "--labels is for one run, and these inputs are a batch");
    if (o->expect && !is_folder(o->expect))
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "--expect is '%s', expected a folder, as these inputs are a batch", o->expect);
    if (output && (ends_with(output, ".npz") || ends_with(output, ".npy") || !strcmp(output, "-")))
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "--output is '%s', expected a folder, as these inputs are a batch", output);
    if (output && mkdir(output, 0777) && !(errno == EEXIST && is_folder(output)))
        return io_fail(err, DQ_IO, "%s: cannot be made as a folder: %s", output, strerror(errno));
    return o->expect || output ? check_names(b, err) : DQ_OK;
}

/* ---- Runs ---------------------------------------------------------------------------------------------- */

static dq_status compare(batch *b, const char *path, cli_comparison *comparison, dq_error *err)
{
    const cli_options *o = b->runner->options;
    char *folder = file_of(o->expect, path, false), *file = file_of(o->expect, path, true);
    dq_status status = !folder || !file ? out_of_memory(err) : DQ_OK;
    if (status == DQ_OK) {
        comparison->json = b->json;
        if (b->json) {
            cli_json_begin_object(b->json, "comparison");
            cli_json_begin_array(b->json, "outputs");
        }
        status = cli_expect(&b->runner->outputs, is_folder(folder) ? folder : file, o, comparison, err);
        if (b->json) {
            cli_json_end_array(b->json);
            cli_json_bool(b->json, "equal", status == DQ_OK && !comparison->different);
            cli_json_end_object(b->json);
        }
    }
    free(folder);
    free(file);
    return status;
}

/* Prints the line of a successful run, with the result of its comparison, if any. */
static void print_line(const batch *b, const char *path, const cli_comparison *comparison,
                       const char *written)
{
    char name[512];
    cli_progress_end();
    snprintf(name, sizeof name, "%s", path);
    printf("%s: ", io_printable(name));
    if (comparison->different)
        printf("%s%s%s", cli_style_on(stdout, CLI_STYLE_BAD), comparison->first, cli_style_off(stdout));
    else if (comparison->compared)
        printf("%sequal%s (%zu output%s)", cli_style_on(stdout, CLI_STYLE_GOOD), cli_style_off(stdout),
               comparison->compared, comparison->compared == 1 ? "" : "s");
    else if (written)
        printf("written to %s", written);
    else
        cli_show_line(&b->runner->outputs);
    printf("\n");
}

static dq_status use_outputs(batch *b, const char *path, dq_error *err)
{
    const cli_options *o = b->runner->options;
    cli_comparison comparison = {0};
    dq_status status = DQ_OK;
    char *written = NULL;
    if (b->json)
        cli_show_json(&b->runner->outputs, b->json);
    if (b->runner->output) {
        written = file_of(b->runner->output, path, true);
        status = written ? cli_write_outputs(written, &b->runner->outputs, err) : out_of_memory(err);
    }
    if (status == DQ_OK && o->expect)
        status = compare(b, path, &comparison, err);
    b->different += status == DQ_OK && comparison.different;
    if (status == DQ_OK && !o->quiet && !b->json)
        print_line(b, path, &comparison, written);
    free(written);
    return status;
}

/* Reports a failed run: prints a line, or adds an object to the JSON. */
static void note_failure(batch *b, const char *path, dq_status status, const dq_error *err)
{
    dq_error copy = *err;
    if (!b->failed++)
        b->status = status;
    if (b->json) {
        cli_json_begin_object(b->json, "error");
        cli_json_text(b->json, "status", dq_status_name(status));
        cli_json_text(b->json, "message", err->message);
        cli_json_end_object(b->json);
        return;
    }
    if (strncmp(copy.message, path, strlen(path)) != 0)
        io_prefix(&copy, status, path);
    cli_complain(copy.message);
}

static dq_status run_all(batch *b, dq_error *err)
{
    dq_status status = DQ_OK;
    cli_progress_begin("runs");
    b->runner->runs = b->count;
    for (size_t i = 0; i < b->count && status != DQ_CANCELLED; i++) {
        b->runner->run = i;
        cli_progress((double)i / (double)b->count);
        b->arguments[b->shared] = b->paths[i];
        if (b->json) {
            cli_json_begin_object(b->json, NULL);
            cli_json_text(b->json, "input", b->paths[i]);
        }
        status = cli_run_once(b->runner, b->arguments, b->shared + 1, err);
        if (status == DQ_OK)
            status = use_outputs(b, b->paths[i], err);
        if (status != DQ_OK && status != DQ_CANCELLED)
            note_failure(b, b->paths[i], status, err);
        if (b->json)
            cli_json_end_object(b->json);
    }
    cli_progress_end();
    return status == DQ_CANCELLED ? status : DQ_OK;
}

static dq_status run_json(batch *b, dq_error *err)
{
    dq_status status = cli_json_start(&b->document, err);
    if (status != DQ_OK)
        return status;
    b->json = &b->document;
    cli_json_begin_object(b->json, NULL);
    cli_run_json(b->runner, b->json);
    cli_json_begin_array(b->json, "runs");
    status = run_all(b, err);
    cli_json_end_array(b->json);
    cli_json_size(b->json, "failed", b->failed);
    cli_json_size(b->json, "different", b->different);
    cli_json_end_object(b->json);
    return cli_json_finish(b->json, status, err);
}

static void print_summary(const batch *b)
{
    printf("%zu run%s", b->count, b->count == 1 ? "" : "s");
    if (b->runner->options->expect)
        printf(": %zu equal, %zu different, %zu failed\n", b->count - b->different - b->failed, b->different,
               b->failed);
    else
        printf(", %zu failed\n", b->failed);
}

dq_status cli_batch(cli_runner *runner, bool *differ, dq_error *err)
{
    batch b = {.runner = runner};
    b.arguments = calloc(runner->options->input_count + 1, sizeof *b.arguments);
    dq_status status = b.arguments ? list_runs(&b, err) : out_of_memory(err);
    if (status == DQ_OK)
        status = check_options(&b, err);
    if (status == DQ_OK) {
        cli_interrupt_watch(runner->session);
        status = runner->options->json ? run_json(&b, err) : run_all(&b, err);
        status = cli_interrupt_end(status, err);
        if (status == DQ_OK && !runner->options->json && !runner->options->quiet)
            print_summary(&b);
    }
    *differ = b.different != 0;
    if (status == DQ_OK && b.failed) {
        status = b.status;
        err->message[0] = 0; /* Each message is already printed. */
    }
    for (size_t i = 0; i < b.count; i++)
        free(b.paths[i]);
    free(b.paths);
    free(b.arguments);
    return status;
}
