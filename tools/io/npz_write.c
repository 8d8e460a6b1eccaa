#include "npz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

/* What every member gets: numpy's date (1980-01-01), a name in UTF-8, no packing, and the version of zip that
 * knows sizes over 32 bits. */
enum { DOS_DATE = 0x210000, NAME_IS_UTF_8 = 0x800, STORED = 0, ZIP_VERSION = 45 };

/* Bytes between two looks at whether the writing failed. */
enum { PIECE = 16 << 20 };

/* The temporary file. */
typedef struct target {
    FILE *file;
    const volatile sig_atomic_t *cancel;
    bool cancelled;
    int error; /* errno of the first write that failed; 0 while none did */
} target;

static voidpf target_open(voidpf opaque, const void *name, int mode)
{
    (void)name, (void)mode;
    return ((target *)opaque)->file;
}

static bool failed(const target *to)
{
    return to->cancelled || to->error;
}

/* minizip 1.1 loses memory when it is told of a write that failed, so that it is told of none: who calls it
 * looks at `failed`. */
static uLong target_write(voidpf opaque, voidpf stream, const void *bytes, uLong size)
{
    target *to = opaque;
    to->cancelled = to->cancelled || (to->cancel && *to->cancel);
    if (!failed(to) && fwrite(bytes, 1, size, stream) != size)
        to->error = errno;
    return size;
}

/* The caller flushes and closes the file. */
static int target_close(voidpf opaque, voidpf stream)
{
    (void)opaque, (void)stream;
    return 0;
}

static dq_status write_failure(const target *to, dq_error *err)
{
    if (to->cancelled)
        return io_fail(err, DQ_IO, "was not written: interrupted");
    if (to->error)
        return io_fail(err, DQ_IO, "cannot be written: %s", strerror(to->error));
    return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
}

static bool add_bytes(zipFile zip, const target *to, const void *bytes, size_t size)
{
    for (const char *at = bytes; size && !failed(to);) {
        unsigned piece = size < PIECE ? (unsigned)size : PIECE;
        if (zipWriteInFileInZip(zip, at, piece) != ZIP_OK)
            return false;
        at += piece;
        size -= piece;
    }
    return !failed(to);
}

static bool add_member(zipFile zip, const target *to, const char *name, const npy_image *image)
{
    char *member = malloc(strlen(name) + 5);
    if (!member)
        return false;
    strcpy(member, name);
    strcat(member, ".npy");
    zip_fileinfo info = {.dosDate = DOS_DATE};
    bool large = image->data_size >= UINT32_MAX - image->header_size;
    int code = zipOpenNewFileInZip4_64(zip, member, &info, NULL, 0, NULL, 0, NULL, STORED, 0, 0, -MAX_WBITS,
                                       DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0, ZIP_VERSION, NAME_IS_UTF_8,
                                       large);
    free(member);
    if (code != ZIP_OK)
        return false;
    bool added = add_bytes(zip, to, image->header, image->header_size) &&
                 add_bytes(zip, to, image->data, image->data_size);
    return zipCloseFileInZip(zip) == ZIP_OK && added;
}

static dq_status fill_archive(zipFile zip, const target *to, size_t count, const char *const *names,
                              const dq_tensor *const *tensors, dq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        npy_image image;
        dq_status status = npy_encode(tensors[i], &image, err);
        if (status != DQ_OK)
            return status;
        bool added = add_member(zip, to, names[i], &image);
        npy_image_clear(&image);
        if (!added)
            return write_failure(to, err);
    }
    return DQ_OK;
}

static dq_status write_archive(target *to, size_t count, const char *const *names,
                               const dq_tensor *const *tensors, dq_error *err)
{
    zlib_filefunc64_def calls;
    fill_fopen64_filefunc(&calls);
    calls.zopen64_file = target_open;
    calls.zwrite_file = target_write;
    calls.zclose_file = target_close;
    calls.opaque = to;
    zipFile zip = zipOpen2_64(NULL, APPEND_STATUS_CREATE, NULL, &calls);
    if (!zip)
        return write_failure(to, err);
    dq_status status = fill_archive(zip, to, count, names, tensors, err);
    bool closed = zipClose(zip, NULL) == ZIP_OK && !failed(to);
    if (status == DQ_OK && !closed)
        status = write_failure(to, err);
    return status;
}

/* An existing device or folder must not be renamed over. */
static dq_status check_target(const char *path, dq_error *err)
{
    struct stat info;
    if (stat(path, &info))
        return DQ_OK;
    if (S_ISDIR(info.st_mode))
        return io_fail(err, DQ_IO, "cannot be written: it is a folder");
    if (!S_ISREG(info.st_mode))
        return io_fail(err, DQ_IO, "cannot be written: it is not a regular file");
    return DQ_OK;
}

/* A new empty file beside `path`, with the permissions that a plain new file would have. */
static dq_status make_temporary(const char *path, char **temporary, FILE **file, dq_error *err)
{
    size_t room = strlen(path) + 16;
    char *name = malloc(room);
    if (!name)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    snprintf(name, room, "%s.tmp-XXXXXX", path);
    int fd = mkstemp(name);
    *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!*file) {
        dq_status status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
        if (fd >= 0) {
            close(fd);
            unlink(name);
        }
        free(name);
        return status;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    *temporary = name;
    return DQ_OK;
}

/* Up to the disk. Closes the file. */
static dq_status write_temporary(target *to, size_t count, const char *const *names,
                                 const dq_tensor *const *tensors, dq_error *err)
{
    dq_status status = write_archive(to, count, names, tensors, err);
    if (status == DQ_OK && (fflush(to->file) || fsync(fileno(to->file))))
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    if (fclose(to->file) && status == DQ_OK)
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    if (status == DQ_OK && to->cancel && *to->cancel)
        status = io_fail(err, DQ_IO, "was not written: interrupted");
    return status;
}

dq_status npz_write(const char *path, size_t count, const char *const *names, const dq_tensor *const *tensors,
                    const volatile sig_atomic_t *cancel, dq_error *err)
{
    char *temporary = NULL;
    target to = {.cancel = cancel};
    dq_status status = check_target(path, err);
    if (status == DQ_OK)
        status = make_temporary(path, &temporary, &to.file, err);
    if (status != DQ_OK)
        return status;
    status = write_temporary(&to, count, names, tensors, err);
    if (status == DQ_OK && rename(temporary, path))
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    if (status != DQ_OK)
        unlink(temporary);
    free(temporary);
    return status;
}
