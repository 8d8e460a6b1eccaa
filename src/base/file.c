/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* madvise, realpath */
#include "base/file.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static dq_status need_regular(mode_t mode, const char *path, dq_status fault, dq_error *err)
{
    if (S_ISDIR(mode))
        return dq_fail(err, fault, "%s: is a folder, expected a file", path);
    return S_ISREG(mode) ? DQ_OK : dq_fail(err, fault, "%s: is not a regular file", path);
}

/* Reads a small file. Unlike a mapping, the copy does not change with the file. */
static dq_status read_whole(int fd, size_t size, const char *path, const dq_allocator *allocator,
                            dq_status fault, dq_file *out, dq_error *err)
{
    unsigned char *bytes = dq_memory_alloc(allocator, size);
    if (!bytes)
        return dq_no_memory(err, size, path);
    for (size_t at = 0; at < size;) {
        const ssize_t got = pread(fd, bytes + at, size - at, (off_t)at);
        if (got > 0) {
            at += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            const int why = got ? errno : 0;
            dq_memory_free(allocator, bytes, size);
            return why ? dq_fail(err, fault, "%s: cannot be read: %s", path, strerror(why))
                       : dq_fail(err, fault, "%s: was cut off while it was read, at %zu of %zu bytes", path,
                                 at, size);
        }
    }
    *out = (dq_file){.bytes = bytes, .size = size, .capacity = size, .owned = true, .allocator = allocator};
    return DQ_OK;
}

/* Reads a file of up to `read_up_to` bytes; maps a larger one. */
static dq_status read_or_map(int fd, const char *path, uint64_t limit, uint64_t read_up_to,
                             const dq_allocator *allocator, dq_status fault, dq_file *out, dq_error *err)
{
    static const unsigned char nothing[1] = {0};
    struct stat info;
    if (fstat(fd, &info) != 0)
        return dq_fail(err, fault, "%s: cannot be read: %s", path, strerror(errno));
    DQ_TRY(need_regular(info.st_mode, path, fault, err));
    uint64_t size = (uint64_t)info.st_size;
    if (size > limit || size > SIZE_MAX)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "%s: has %" PRIu64 " bytes, over the limit of %" PRIu64, path,
                       size, limit);
    if (size == 0) {
        *out = (dq_file){.bytes = nothing};
        return DQ_OK;
    }
    if (size <= read_up_to)
        return read_whole(fd, (size_t)size, path, allocator, fault, out, err);
    void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return dq_fail(err, errno == ENOMEM ? DQ_OUT_OF_MEMORY : fault, "%s: cannot be mapped: %s", path,
                       strerror(errno));
    *out = (dq_file){.bytes = bytes, .size = (size_t)size, .mapped = true};
    return DQ_OK;
}

dq_status dq_file_map_fd(int fd, const char *path, uint64_t limit, const dq_allocator *allocator,
                         dq_status fault, dq_file *out, dq_error *err)
{
    return read_or_map(fd, path, limit, DQ_FILE_READ, allocator, fault, out, err);
}

static dq_status open_and_map(const char *path, uint64_t limit, uint64_t read_up_to,
                              const dq_allocator *allocator, dq_status fault, dq_file *out, dq_error *err)
{
    /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return dq_fail(err, fault, "%s: cannot be opened: %s", path, strerror(errno));
    dq_status status = read_or_map(fd, path, limit, read_up_to, allocator, fault, out, err);
    close(fd);
    return status;
}

dq_status dq_file_map(const char *path, uint64_t limit, const dq_allocator *allocator, dq_status fault,
                      dq_file *out, dq_error *err)
{
    return open_and_map(path, limit, DQ_FILE_READ, allocator, fault, out, err);
}

dq_status dq_file_map_pages(const char *path, uint64_t limit, dq_status fault, dq_file *out, dq_error *err)
{
    return open_and_map(path, limit, 0, NULL, fault, out, err);
}

/* ---- Streams ------------------------------------------------------------------------------------------ */

/* Doubles the capacity. */
static bool grow(dq_file *file)
{
    enum { FIRST = 1 << 16 };
    const size_t new_capacity = file->capacity ? 2 * file->capacity : FIRST;
    void *grown =
        new_capacity > file->capacity
            ? dq_memory_grow(file->allocator, (void *)(uintptr_t)file->bytes, file->capacity, new_capacity)
            : NULL;
    if (!grown)
        return false;
    file->bytes = grown;
    file->capacity = new_capacity;
    return true;
}

static dq_status read_all(dq_read_fn read, void *arg, const char *path, uint64_t limit, dq_status fault,
                          dq_file *file, dq_error *err)
{
    for (;;) {
        if (file->size == file->capacity && !grow(file))
            return dq_no_memory(err, file->capacity, path);
        const size_t free_bytes = file->capacity - file->size;
        const ptrdiff_t got = read(arg, (void *)(uintptr_t)(file->bytes + file->size), free_bytes);
        if (got == 0)
            return DQ_OK;
        if (got < 0)
            return dq_fail(err, fault, "%s: cannot be read: the read function returned %td at byte %zu", path,
                           got, file->size);
        if ((size_t)got > free_bytes)
            return dq_fail(err, DQ_INVALID_ARGUMENT,
                           "%s: the read function returned %td for a buffer of %zu bytes", path, got,
                           free_bytes);
        file->size += (size_t)got;
        if (file->size > limit)
            return dq_fail(err, DQ_OUT_OF_MEMORY, "%s: has more bytes than the limit of %" PRIu64, path,
                           limit);
    }
}

dq_status dq_file_read(dq_read_fn read, void *arg, const char *path, uint64_t limit,
                       const dq_allocator *allocator, dq_status fault, dq_file *out, dq_error *err)
{
    dq_file file = {.owned = true, .allocator = allocator};
    dq_status status = read_all(read, arg, path, limit, fault, &file, err);
    if (status != DQ_OK)
        dq_file_unmap(&file);
    else
        *out = file;
    return status;
}

typedef struct descriptor {
    int fd, fault; /* errno of a failed read, or 0. */
} descriptor;

static ptrdiff_t read_descriptor(void *arg, void *buffer, size_t size)
{
    descriptor *d = arg;
    for (;;) {
        const ssize_t got = read(d->fd, buffer, size);
        if (got >= 0)
            return got;
        struct pollfd ready = {.fd = d->fd, .events = POLLIN};
        if (errno == EAGAIN)
            poll(&ready, 1, -1);
        else if (errno != EINTR)
            break;
    }
    d->fault = errno;
    return -1;
}

dq_status dq_file_load_fd(int fd, const char *path, uint64_t limit, const dq_allocator *allocator,
                          dq_status fault, dq_file *out, dq_error *err)
{
    descriptor d = {.fd = fd};
    struct stat info;
    if (fstat(fd, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
        return dq_file_map_fd(fd, path, limit, allocator, fault, out, err);
    const dq_status status = dq_file_read(read_descriptor, &d, path, limit, allocator, fault, out, err);
    return d.fault ? dq_fail(err, status, "%s: cannot be read: %s", path, strerror(d.fault)) : status;
}

void dq_file_unmap(dq_file *file)
{
    if (file->mapped)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    if (file->owned)
        dq_memory_free(file->allocator, file->bytes, file->capacity);
    *file = (dq_file){0};
}

void dq_file_populate(const void *bytes, size_t size)
{
#ifdef MADV_POPULATE_READ
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)bytes & ~(page - 1);
    if (size) /* An old kernel refuses; pages then come by faults. */
        madvise((void *)begin, (uintptr_t)bytes + size - begin, MADV_POPULATE_READ);
#else
    (void)bytes;
    (void)size;
#endif
}

void dq_file_forget(const void *bytes, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)bytes + page - 1) & ~(page - 1),
              end = ((uintptr_t)bytes + size) & ~(page - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void dq_file_drop_pages(const void *data, size_t *given_back, size_t end)
{
    enum { AT_ONCE = 1 << 21 };
    if (end < *given_back + AT_ONCE)
        return;
    dq_file_forget((const char *)data + *given_back, end - *given_back);
    *given_back = end;
}

enum { SUFFIX_SIZE = 32, ATTEMPTS = 100 };

/* Opens a new file with the name in `temporary`, which has space for SUFFIX_SIZE more bytes, plus a unique
 * suffix. Unlike mkstemp, open sets the permissions by the umask; reading the umask would change it for other
 * threads. O_EXCL refuses an existing name, symbolic links included. The suffix need not be secret. */
static int open_unique(char *temporary)
{
    static atomic_uint opened;
    const size_t length = strlen(temporary);
    int fd = -1;
    for (int i = 0; i < ATTEMPTS && fd < 0; i++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        snprintf(temporary + length, SUFFIX_SIZE, ".%lx-%x-%lx", (unsigned long)getpid(),
                 atomic_fetch_add(&opened, 1), (unsigned long)now.tv_nsec);
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

dq_status dq_file_create(const char *path, dq_file_out *out, dq_error *err)
{
    struct stat info;
    *out = (dq_file_out){0};
    if (stat(path, &info) == 0) /* A device must not be replaced. */
        DQ_TRY(need_regular(info.st_mode, path, DQ_IO, err));
    out->path = realpath(path, NULL); /* The target of links: the links stay. */
    if (!out->path)
        out->path = strdup(path);
    out->temporary = out->path ? malloc(strlen(out->path) + SUFFIX_SIZE) : NULL;
    if (!out->temporary) {
        free(out->path);
        return dq_no_memory(err, strlen(path) + SUFFIX_SIZE, "the name of a file");
    }
    strcpy(out->temporary, out->path);
    int fd = open_unique(out->temporary);
    if (fd >= 0)
        out->stream = fdopen(fd, "wb");
    if (out->stream)
        return DQ_OK;
    dq_fail(err, DQ_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(out->temporary);
    }
    free(out->path);
    free(out->temporary);
    return DQ_IO;
}

void dq_file_write(dq_file_out *out, const void *bytes, size_t size)
{
    if (!out->fault && size && fwrite(bytes, 1, size, out->stream) != size)
        out->fault = errno ? errno : EIO;
}

dq_status dq_file_commit(dq_file_out *out, dq_error *err)
{
    dq_status status = DQ_OK;
    if (!out->fault && (fflush(out->stream) || fsync(fileno(out->stream))))
        out->fault = errno;
    if (fclose(out->stream) && !out->fault)
        out->fault = errno;
    if (!out->fault && rename(out->temporary, out->path))
        out->fault = errno;
    if (out->fault) {
        status = dq_fail(err, DQ_IO, "%s: cannot be written: %s", out->path, strerror(out->fault));
        unlink(out->temporary);
    }
    free(out->path);
    free(out->temporary);
    return status;
}
