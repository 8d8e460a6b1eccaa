#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

dq_status dq_file_map_fd(int fd, const char *path, uint64_t limit, dq_status fault, dq_file *out,
                         dq_error *err)
{
    static const unsigned char nothing[1] = {0};
    struct stat info;
    if (fstat(fd, &info) != 0)
        return dq_fail(err, fault, "%s: cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return dq_fail(err, fault, "%s: is a folder, wanted a file", path);
    if (!S_ISREG(info.st_mode))
        return dq_fail(err, fault, "%s: is not a regular file", path);
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
