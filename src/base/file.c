#define _DEFAULT_SOURCE /* madvise, realpath */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static dq_status need_regular(mode_t mode, const char *path, dq_status fault, dq_error *err)
{
    if (S_ISDIR(mode))
        return dq_fail(err, fault, "%s: is a folder, wanted a file", path);
    return S_ISREG(mode) ? DQ_OK : dq_fail(err, fault, "%s: is not a regular file", path);
}

dq_status dq_file_map_fd(int fd, const char *path, uint64_t limit, dq_status fault, dq_file *out,
                         dq_error *err)
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
    void *bytes = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return dq_fail(err, errno == ENOMEM ? DQ_OUT_OF_MEMORY : fault, "%s: cannot be mapped: %s", path,
                       strerror(errno));
    *out = (dq_file){.bytes = bytes, .size = (size_t)size, .mapped = true};
    return DQ_OK;
}

dq_status dq_file_map(const char *path, uint64_t limit, dq_status fault, dq_file *out, dq_error *err)
{
    /* O_NONBLOCK: opening a named pipe must not wait for a writer that never comes. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return dq_fail(err, fault, "%s: cannot be opened: %s", path, strerror(errno));
    dq_status status = dq_file_map_fd(fd, path, limit, fault, out, err);
    close(fd);
    return status;
}

void dq_file_unmap(dq_file *file)
{
    if (file->mapped)
        munmap((void *)(uintptr_t)file->bytes, file->size);
    *file = (dq_file){0};
}

void dq_file_forget(const void *bytes, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)bytes + page - 1) & ~(page - 1),
              end = ((uintptr_t)bytes + size) & ~(page - 1);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void dq_file_forget_behind(const void *data, size_t *given_back, size_t end)
{
    enum { AT_ONCE = 1 << 21 };
    if (end < *given_back + AT_ONCE)
        return;
    dq_file_forget((const char *)data + *given_back, end - *given_back);
    *given_back = end;
}

dq_status dq_file_create(const char *path, dq_file_out *out, dq_error *err)
{
    static const char suffix[] = ".XXXXXX";
    struct stat info;
    *out = (dq_file_out){0};
    if (stat(path, &info) == 0) /* a device must not be renamed over */
        DQ_TRY(need_regular(info.st_mode, path, DQ_IO, err));
    out->path = realpath(path, NULL); /* where links lead: they stay */
    if (!out->path)
        out->path = strdup(path);
    out->temporary = out->path ? malloc(strlen(out->path) + sizeof suffix) : NULL;
    if (!out->temporary) {
        free(out->path);
        return dq_no_memory(err, strlen(path) + sizeof suffix, "the name of a file");
    }
    strcpy(out->temporary, out->path);
    strcat(out->temporary, suffix);
    int fd = mkstemp(out->temporary);
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
    mode_t mask = umask(0);
    umask(mask);
    /* mkstemp makes files that only their owner can read */
    if (!out->fault &&
        (fchmod(fileno(out->stream), 0666 & ~mask) || fflush(out->stream) || fsync(fileno(out->stream))))
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
