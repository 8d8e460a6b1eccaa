/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/external.h"

#include "base/namemap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct mapped {
    dq_file file;
    const char *location;
    const void *given; /* Memory from the callback, to be released with it. */
    struct mapped *next;
} mapped;

struct dq_externals {
    dq_arena *arena;
    const char *base_dir;
    dq_load_options callbacks; /* Only external_data, release_external_data and their argument are used. */
    uint64_t file_limit;
    dq_namemap by_location;
    mapped *first;
};

dq_status dq_externals_create(dq_arena *arena, const char *base_dir, const dq_load_options *options,
                              uint64_t file_limit, dq_externals **out, dq_error *err)
{
    dq_externals *x = DQ_NEW(arena, dq_externals);
    if (!x)
        return dq_no_memory(err, sizeof *x, "external data");
    x->arena = arena;
    x->by_location.allocator = arena->allocator;
    x->file_limit = file_limit;
    if (options)
        x->callbacks = *options;
    if (base_dir) {
        x->base_dir = dq_arena_string(arena, base_dir, strlen(base_dir));
        if (!x->base_dir)
            return dq_no_memory(err, strlen(base_dir) + 1, "external data");
    }
    *out = x;
    return DQ_OK;
}

void dq_externals_close(dq_externals *externals)
{
    const dq_load_options *callbacks = &externals->callbacks;
    for (mapped *m = externals->first; m; m = m->next) {
        if (callbacks->external_data && callbacks->release_external_data)
            callbacks->release_external_data(callbacks->external_data_arg, m->location, m->given,
                                             m->file.size);
        dq_file_unmap(&m->file);
    }
    dq_namemap_free(&externals->by_location);
    externals->first = NULL;
}

static dq_status cannot_open(const char *location, dq_error *err)
{
    if (errno == ELOOP || errno == EMLINK)
        return dq_fail(
            err, DQ_BAD_MODEL,
            "external data '%s' is or passes a symbolic link, expected a file inside the model's folder",
            location);
    return dq_fail(err, DQ_BAD_MODEL, "external data '%s' cannot be opened: %s", location, strerror(errno));
}

/* Whether a path has a component "..". */
static bool climbs(const char *path)
{
    while (*path) {
        size_t length = strcspn(path, "/");
        if (length == 2 && memcmp(path, "..", 2) == 0)
            return true;
        path += length + (path[length] == '/');
    }
    return false;
}

/* Opens one component of the path, and closes the folder that contains it. O_NONBLOCK: a named pipe must not
 * block the caller. */
static int open_step(int folder, const char *step, bool last)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | (last ? O_NONBLOCK : O_DIRECTORY);
    struct stat info;
    int saved, fd = openat(folder, step, flags);
    saved = errno;
    /* A link in the position of a folder gives ENOTDIR. */
    if (fd < 0 && fstatat(folder, step, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode))
        saved = ELOOP;
    close(folder);
    errno = saved;
    return fd;
}

/* Opens a path inside the model's folder component by component; it temporarily splits the path at its
 * slashes. Returns a descriptor, or a negative value with errno set. */
static int open_inside(const char *base_dir, char *path)
{
    int fd = open(base_dir, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    while (fd >= 0) {
        path += strspn(path, "/");
        size_t length = strcspn(path, "/");
        char *rest = path + length + strspn(path + length, "/");
        bool last = *rest == '\0';
        char end = path[length];
        path[length] = '\0';
        fd = open_step(fd, path, last);
        path[length] = end;
        if (last)
            break;
        path = rest;
    }
    return fd;
}

static dq_status map_inside(const dq_externals *x, char *location, dq_file *out, dq_error *err)
{
    int fd = open_inside(x->base_dir, location);
    if (fd < 0)
        return cannot_open(location, err);
    struct stat info;
    dq_status status;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1)
        status = dq_fail(err, DQ_BAD_MODEL,
                         "external data '%s' has %" PRIu64 " names (hard links), expected a file of its own",
                         location, (uint64_t)info.st_nlink);
    else {
        status = dq_file_map_fd(fd, location, x->file_limit, x->arena->allocator, DQ_BAD_MODEL, out, err);
        if (status != DQ_OK)
            dq_error_prefix(err, "external data ");
    }
    close(fd);
    return status;
}

/* Takes memory from the callback, and releases it if it is refused. */
static dq_status take_bytes(const dq_externals *x, mapped *m, dq_error *err)
{
    static const unsigned char nothing[1] = {0};
    const dq_load_options *callbacks = &x->callbacks;
    size_t size = 0;
    const dq_status status =
        callbacks->external_data(callbacks->external_data_arg, m->location, &m->given, &size);
    if (status != DQ_OK)
        return dq_fail(err, status, "external data '%s': the external_data callback returned status %d",
                       m->location, (int)status);
    if (size && !m->given)
        return dq_fail(err, DQ_INVALID_ARGUMENT,
                       "external data '%s': the external_data callback returned NULL for %zu bytes",
                       m->location, size);
    m->file = (dq_file){.bytes = m->given ? m->given : nothing, .size = size};
    return DQ_OK;
}

/* Opens a file inside the model's folder. */
static dq_status open_file(const dq_externals *x, char *location, dq_file *out, dq_error *err)
{
    if (!x->base_dir)
        return dq_fail(err, DQ_BAD_MODEL,
                       "wants external data '%s', and a model in memory has none without a folder for it",
                       location);
    if (!*location || *location == '/' || climbs(location) || location[strlen(location) - 1] == '/')
        return dq_fail(err, DQ_BAD_MODEL,
                       "external data '%s' is not the path of a file inside the model's folder", location);
    return map_inside(x, location, out, err);
}

static dq_status check_size(const dq_externals *x, const mapped *m, dq_error *err)
{
    if (m->file.size <= x->file_limit)
        return DQ_OK;
    return dq_fail(err, DQ_OUT_OF_MEMORY, "external data '%s' has %zu bytes, over the limit of %" PRIu64,
                   m->location, m->file.size, x->file_limit);
}

dq_status dq_externals_map(dq_externals *x, const char *location, const dq_file **out, dq_error *err)
{
    mapped *m = dq_namemap_get(&x->by_location, location);
    if (m) {
        *out = &m->file;
        return DQ_OK;
    }
    m = DQ_NEW(x->arena, mapped);
    char *key = dq_arena_string(x->arena, location, strlen(location));
    if (!m || !key)
        return dq_no_memory(err, sizeof *m, "external data");
    m->location = key;
    DQ_TRY(x->callbacks.external_data ? take_bytes(x, m, err) : open_file(x, key, &m->file, err));
    m->next = x->first;
    x->first = m;
    DQ_TRY(check_size(x, m, err));
    if (!dq_namemap_put(&x->by_location, key, m))
        return dq_no_memory(err, sizeof *m, "external data");
    *out = &m->file;
    return DQ_OK;
}
