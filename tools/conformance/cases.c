/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Maximum depth of folders: a link to an outer folder would recurse without end. */
#define MAX_DEPTH 16

cf_case *cf_add(cf_list *list, char *name)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity == 0 ? 256 : list->capacity * 2;
        list->items = cf_realloc(list->items, list->capacity, sizeof *list->items);
    }
    cf_case *item = &list->items[list->count++];
    memset(item, 0, sizeof *item);
    item->name = name;
    return item;
}

static void free_case(cf_case *item)
{
    free(item->name);
    free(item->folder);
    free(item->message);
    free(item->skip_reason);
}

void cf_free_list(cf_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_case(&list->items[i]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool holds_model(const char *folder)
{
    char *path = cf_format("%s/model.onnx", folder);
    struct stat info;
    bool found = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    free(path);
    return found;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* `name` is the path relative to the folder that the user named, empty for that folder itself. */
static bool search(const char *path, const char *name, int depth, cf_list *list)
{
    if (holds_model(path)) {
        cf_add(list, cf_strdup(name))->folder = cf_strdup(path);
        return true;
    }
    if (depth == MAX_DEPTH)
        return cf_complain("%s: folders go deeper than %d, is there a link in a circle?", path, MAX_DEPTH);
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, visible, alphasort);
    if (count < 0)
        return cf_complain("%s: %s", path, strerror(errno));
    bool good = true;
    for (int i = 0; i < count; i++) {
        char *below = cf_format("%s/%s", path, entries[i]->d_name);
        if (good && is_folder(below)) {
            char *full = cf_format("%s%s%s", name, name[0] == '\0' ? "" : "/", entries[i]->d_name);
            good = search(below, full, depth + 1, list);
            free(full);
        }
        free(below);
        free(entries[i]);
    }
    free(entries);
    return good;
}

bool cf_find_cases(const char *dir, cf_list *list)
{
    errno = ENOTDIR;
    if (!is_folder(dir))
        return cf_complain("%s: %s; expected a folder of cases", dir, strerror(errno));
    char *path = cf_strdup(dir);
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
    size_t before = list->count;
    bool good;
    if (holds_model(path)) {
        const char *slash = strrchr(path, '/');
        cf_add(list, cf_strdup(slash != NULL && slash[1] != '\0' ? slash + 1 : path))->folder =
            cf_strdup(path);
        good = true;
    } else {
        good = search(path, "", 0, list);
    }
    if (good && list->count == before)
        good = cf_complain("%s: no folder below it holds a model.onnx", dir);
    free(path);
    return good;
}

static bool matches(const char *name, char *const *globs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fnmatch(globs[i], name, 0) == 0)
            return true;
    return count == 0;
}

void cf_filter(cf_list *list, char *const *globs, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (matches(list->items[i].name, globs, count))
            list->items[kept++] = list->items[i];
        else
            free_case(&list->items[i]);
    }
    list->count = kept;
}
