/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/paths.h"

#include "cli/inputs.h"
#include "cli/model.h"
#include "cli/run.h"
#include "io/common.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

/* A folder of test data that holds an .npz too is one run. */
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

static dq_status add_path(cli_paths *b, const char *folder, const char *name, dq_error *err)
{
    char **grown = io_room(b->paths, b->count, &b->capacity, sizeof *grown);
    if (!grown)
        return io_no_memory(err);
    b->paths = grown;
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path)
        return io_no_memory(err);
    snprintf(path, size, "%s%s%s", folder, !*folder || ends_with(folder, "/") ? "" : "/", name);
    b->paths[b->count++] = path;
    return DQ_OK;
}

static dq_status add_folder(cli_paths *b, const char *folder, dq_error *err)
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

static dq_status list_all(const cli_options *o, cli_paths *b, dq_error *err)
{
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
        return io_fail(err, DQ_INVALID_ARGUMENT,
                       "%s needs inputs that are .npz files, or folders of .npz files or with input_0.pb…",
                       o->command == CLI_RUN ? "--batch" : "the command");
    return DQ_OK;
}

dq_status cli_paths_list(const cli_options *o, cli_paths *list, dq_error *err)
{
    *list = (cli_paths){0};
    list->arguments = calloc(o->input_count + 1, sizeof *list->arguments);
    return list->arguments ? list_all(o, list, err) : io_no_memory(err);
}

void cli_paths_clear(cli_paths *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    free(list->arguments);
    *list = (cli_paths){0};
}
