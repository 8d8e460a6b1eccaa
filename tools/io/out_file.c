/* SPDX-License-Identifier: Apache-2.0 */
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The number of symbolic links that Linux follows. */
enum { LINKS = 40 };

static dq_status not_written(dq_error *err)
{
    return io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
}

static dq_status no_memory(dq_error *err)
{
    return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
}

/* Bytes of the folder of a path, including its slash. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

static char *in_folder_of(const char *path, const char *name, size_t length)
{
    size_t folder = *name == '/' ? 0 : folder_length(path);
    char *joined = malloc(folder + length + 1);
    if (!joined)
        return NULL;
    memcpy(joined, path, folder);
    memcpy(joined + folder, name, length);
    joined[folder + length] = '\0';
    return joined;
}

/* Resolves all symbolic links of a path. The last may point to a file that does not exist yet. */
static dq_status follow_links(const char *path, char **end, dq_error *err)
{
    char *at = strdup(path);
    for (int links = 0; at; links++) {
        char name[PATH_MAX];
        ssize_t length = readlink(at, name, sizeof name);
        if (length < 0 && (errno == EINVAL || errno == ENOENT)) {
            *end = at;
            return DQ_OK;
        }
        if (links == LINKS)
            errno = ELOOP;
        if (length < 0 || links == LINKS) {
            free(at);
            return not_written(err);
        }
        char *next = in_folder_of(at, name, (size_t)length);
        free(at);
        at = next;
    }
    return no_memory(err);
}

/* ---- A temporary file, which a signal removes ---------------------------------------------------------- */

enum { ATTEMPTS = 100 }; /* Attempts to find an unused name. */
static char temporary[PATH_MAX];
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };
static struct sigaction before[SIGNALS];

static void on_signal(int number)
{
    unlink(temporary);
    raise(number); /* The default action: the process dies of the signal, as its parent expects. */
}

static void catch_signals(void)
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < SIGNALS; i++) {
        sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &ours, NULL);
    }
}

static void release_signals(void)
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
}

/* Opens a new file in the folder of `path` under an unused name, and writes that name to `temporary`. The
 * umask applies to `mode`, as to any new file. Returns -1 with errno set if it fails. */
static int open_temporary(const char *path, mode_t mode)
{
    int folder = (int)folder_length(path), fd = -1;
    for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        /* The name must not exceed the limit of file names. */
        int length = snprintf(temporary, sizeof temporary, "%.*s%.200s.tmp-%lx-%lx", folder, path,
                              path + folder, (unsigned long)getpid(), (unsigned long)now.tv_nsec);
        if (length >= (int)sizeof temporary) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* Creates an empty temporary file with the permissions of the old file, or those of any new one. */
static dq_status make_temporary(out_file *out, const struct stat *old, dq_error *err)
{
    catch_signals();
    int fd = open_temporary(out->path, old ? old->st_mode & 0777 : 0666);
    if (fd < 0) {
        release_signals();
        return not_written(err);
    }
    if (old)
        fchmod(fd, old->st_mode & 0777);
    out->file = fdopen(fd, "wb");
    if (out->file)
        return DQ_OK;
    dq_status status = not_written(err);
    close(fd);
    unlink(temporary);
    release_signals();
    return status;
}

/* ---- Opening and closing ------------------------------------------------------------------------------ */

/* Opens a stream. If the path is that of standard output, it duplicates the open descriptor: opening the file
 * by name would overwrite it from its beginning. */
static dq_status open_stream(out_file *out, const char *path, bool standard, dq_error *err)
{
    int fd = standard ? dup(STDOUT_FILENO) : open(path, O_WRONLY | O_NOCTTY);
    out->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (out->stream && (out->file = tmpfile()))
        return DQ_OK;
    dq_status status = not_written(err);
    if (out->stream)
        fclose(out->stream);
    else if (fd >= 0)
        close(fd);
    return status;
}

static bool is_standard_output(const struct stat *info)
{
    struct stat open;
    return !fstat(STDOUT_FILENO, &open) && open.st_dev == info->st_dev && open.st_ino == info->st_ino;
}

dq_status out_open(const char *path, out_file *out, dq_error *err)
{
    struct stat info;
    *out = (out_file){0};
    if (!strcmp(path, "-"))
        return open_stream(out, path, true, err);
    bool there = !stat(path, &info);
    if (there && S_ISDIR(info.st_mode))
        return io_fail(err, DQ_IO, "cannot be written: it is a folder");
    bool standard = there && is_standard_output(&info);
    if (standard || (there && !S_ISREG(info.st_mode)))
        return open_stream(out, path, standard, err);
    dq_status status = follow_links(path, &out->path, err);
    if (status == DQ_OK)
        status = make_temporary(out, there ? &info : NULL, err);
    if (status != DQ_OK)
        free(out->path);
    return status;
}

static dq_status copy_to_stream(const out_file *out, dq_error *err)
{
    char piece[1 << 14];
    size_t size;
    if (fseek(out->file, 0, SEEK_SET))
        return not_written(err);
    while ((size = fread(piece, 1, sizeof piece, out->file)))
        if (fwrite(piece, 1, size, out->stream) != size)
            return not_written(err);
    return ferror(out->file) || fflush(out->stream) ? not_written(err) : DQ_OK;
}

/* Completes the file, without closing it. */
static dq_status finish(const out_file *out, dq_error *err)
{
    if (fflush(out->file) || (out->path && fsync(fileno(out->file))))
        return not_written(err);
    return out->stream ? copy_to_stream(out, err) : DQ_OK;
}

dq_status out_close(out_file *out, dq_status status, dq_error *err)
{
    if (status == DQ_OK)
        status = finish(out, err);
    if (fclose(out->file) && status == DQ_OK)
        status = not_written(err);
    if (out->stream && fclose(out->stream) && status == DQ_OK)
        status = not_written(err);
    if (!out->path)
        return status;
    if (status == DQ_OK && rename(temporary, out->path))
        status = not_written(err);
    if (status != DQ_OK)
        unlink(temporary);
    release_signals();
    free(out->path);
    return status;
}
