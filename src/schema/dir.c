/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "schema/schema.h"
#include "schema/yaml_tree.h"

#define MAX_FOLDERS_DEEP 8
#define MAX_ENTRIES 10000u

typedef struct walk {
    dq_schemas *set;
    dq_arena arena;
    unsigned seen, files;
    dq_error *err;
} walk;

static dq_status read_folder(walk *w, const char *path, unsigned depth);

static bool is_yaml(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".yaml") == 0;
}

static dq_status read_file(walk *w, const char *path)
{
    dq_file file = {0};
    DQ_TRY(dq_file_map(path, DQ_YAML_MAX_BYTES, NULL, DQ_BAD_MODEL, &file, w->err));
    dq_status status = dq_schemas_add_yaml(w->set, (const char *)file.bytes, file.size, path, w->err);
    dq_file_unmap(&file);
    w->files++;
    return status;
}

static dq_status read_entry(walk *w, const char *folder, const char *name, unsigned depth)
{
    char *path = dq_arena_printf(&w->arena, "%s/%s", folder, name);
    if (!path)
        return dq_no_memory(w->err, strlen(folder) + strlen(name) + 2, "a path");
    struct stat about;
    if (stat(path, &about))
        return is_yaml(name) ? dq_fail(w->err, DQ_INVALID_ARGUMENT, "%s: %s", path, strerror(errno)) : DQ_OK;
    if (S_ISDIR(about.st_mode))
        return read_folder(w, path, depth + 1);
    return is_yaml(name) ? read_file(w, path) : DQ_OK;
}

static int not_hidden(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Reads a folder in the order of names, so that the result is deterministic if two files define one schema.
 */
static dq_status read_folder(walk *w, const char *path, unsigned depth)
{
    if (depth > MAX_FOLDERS_DEEP)
        return dq_fail(w->err, DQ_OUT_OF_MEMORY, "%s: folders nested too deep, the limit is %d", path,
                       MAX_FOLDERS_DEEP);
    struct dirent **names = NULL;
    int count = scandir(path, &names, not_hidden, alphasort);
    if (count < 0)
        return dq_fail(w->err, DQ_INVALID_ARGUMENT, "schema folder '%s': %s", path, strerror(errno));
    dq_status status = DQ_OK;
    for (int i = 0; i < count; i++) {
        if (status == DQ_OK && ++w->seen > MAX_ENTRIES)
            status =
                dq_fail(w->err, DQ_OUT_OF_MEMORY, "%s: too many files, the limit is %u", path, MAX_ENTRIES);
        if (status == DQ_OK)
            status = read_entry(w, path, names[i]->d_name, depth);
        free(names[i]);
    }
    free(names);
    return status;
}

dq_status dq_schemas_add_dir(dq_schemas *schemas, const char *directory, dq_error *err)
{
    DQ_NOT_NULL(schemas);
    DQ_NOT_NULL(directory);
    walk w = {.set = schemas, .err = err};
    dq_status status = read_folder(&w, directory, 0);
    if (status == DQ_OK && !w.files)
        status = dq_fail(err, DQ_INVALID_ARGUMENT, "schema folder '%s' holds no .yaml file", directory);
    dq_arena_free(&w.arena);
    return status;
}
