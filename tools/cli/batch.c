/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: one run for each file or folder, as defined by cli_batch_text in cli/table.c. */
#include "cli/run.h"

#include "cli/interrupt.h"
#include "cli/paths.h"
#include "cli/terminal.h"
#include "io/common.h"
#include "io/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct batch {
    cli_runner *runner;
    cli_paths list;
    size_t failed, different;
    dq_status status;         /* Of the first run that failed. */
    cli_json document, *json; /* json NULL: text. */
} batch;

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
    char **names = calloc(b->list.count + 1, sizeof *names);
    if (!names)
        return io_no_memory(err);
    for (size_t i = 0; i < b->list.count && status == DQ_OK; i++) {
        names[i] = file_of("", b->list.paths[i], true);
        if (!names[i])
            status = io_no_memory(err);
    }
    if (status == DQ_OK)
        qsort(names, b->list.count, sizeof *names, by_text);
    for (size_t i = 1; i < b->list.count && status == DQ_OK; i++) {
        if (!strcmp(names[i - 1], names[i]))
            status =
                io_fail(err, DQ_INVALID_ARGUMENT,
                        "two inputs of the batch are named '%s', expected different names with --output or "
                        "--expect",
                        names[i] + 1);
    }
    for (size_t i = 0; i < b->list.count; i++)
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
    dq_status status = !folder || !file ? io_no_memory(err) : DQ_OK;
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
        cli_show_json(&b->runner->outputs, o->hash, b->json);
    if (b->runner->output) {
        written = file_of(b->runner->output, path, true);
        status = written ? cli_write_outputs(written, &b->runner->outputs, err) : io_no_memory(err);
    }
    if (status == DQ_OK && o->expect)
        status = compare(b, path, &comparison, err);
    b->different += status == DQ_OK && comparison.different;
    if (status == DQ_OK && o->hash && !b->json) {
        cli_progress_end();
        cli_show_hashes(&b->runner->outputs, path);
    }
    if (status == DQ_OK && !o->quiet && !b->json && (!o->hash || comparison.compared))
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
    b->runner->runs = b->list.count;
    for (size_t i = 0; i < b->list.count && status != DQ_CANCELLED; i++) {
        b->runner->run = i;
        cli_progress((double)i / (double)b->list.count);
        b->list.arguments[b->list.shared] = b->list.paths[i];
        if (b->json) {
            cli_json_begin_object(b->json, NULL);
            cli_json_text(b->json, "input", b->list.paths[i]);
        }
        status = cli_run_once(b->runner, b->list.arguments, b->list.shared + 1, err);
        if (status == DQ_OK)
            status = use_outputs(b, b->list.paths[i], err);
        if (status != DQ_OK && status != DQ_CANCELLED)
            note_failure(b, b->list.paths[i], status, err);
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
    printf("%zu run%s", b->list.count, b->list.count == 1 ? "" : "s");
    if (b->runner->options->expect)
        printf(": %zu equal, %zu different, %zu failed\n", b->list.count - b->different - b->failed,
               b->different, b->failed);
    else
        printf(", %zu failed\n", b->failed);
}

dq_status cli_batch(cli_runner *runner, bool *differ, dq_error *err)
{
    batch b = {.runner = runner};
    dq_status status = cli_paths_list(runner->options, &b.list, err);
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
    cli_paths_clear(&b.list);
    return status;
}
