#include "npz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

/* 1980-01-01, the date that numpy gives to every member. */
enum { DOS_DATE = 0x21, DOS_TIME = 0 };

/* The temporary file as libzip sees it. libzip could make one itself, but its names come from OpenSSL, which
 * does not survive memory that runs out. */
typedef struct target {
    int fd;
    zip_int64_t at, size;
    const volatile sig_atomic_t *cancel;
    zip_error_t error;
} target;

static zip_int64_t target_write(target *t, const char *bytes, zip_uint64_t length)
{
    if (t->cancel && *t->cancel) {
        zip_error_set(&t->error, ZIP_ER_CANCELLED, 0);
        return -1;
    }
    for (zip_uint64_t done = 0; done < length;) {
        ssize_t n = pwrite(t->fd, bytes + done, length - done, t->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            zip_error_set(&t->error, ZIP_ER_WRITE, errno);
            return -1;
        }
        done += (zip_uint64_t)n;
        t->at += n;
    }
    t->size = t->at > t->size ? t->at : t->size;
    return (zip_int64_t)length;
}

static zip_int64_t target_seek(target *t, void *data, zip_uint64_t length)
{
    zip_int64_t to =
        zip_source_seek_compute_offset((zip_uint64_t)t->at, (zip_uint64_t)t->size, data, length, &t->error);
    if (to < 0)
        return -1;
    t->at = to;
    return 0;
}

/* A source that can be written; for reading it is a file that is not there yet. */
static zip_int64_t target_command(void *state, void *data, zip_uint64_t length, zip_source_cmd_t command)
{
    target *t = state;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE,
            ZIP_SOURCE_REMOVE, ZIP_SOURCE_WRITE, -1);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&t->error, data, length);
    case ZIP_SOURCE_WRITE:
        return target_write(t, data, length);
    case ZIP_SOURCE_SEEK_WRITE:
        return target_seek(t, data, length);
    case ZIP_SOURCE_TELL_WRITE:
        return t->at;
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE:
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        zip_error_set(&t->error, ZIP_ER_READ, ENOENT);
        return -1;
    }
}

static dq_status zip_failure(zip_error_t *why, dq_error *err)
{
    switch (zip_error_code_zip(why)) {
    case ZIP_ER_OK: /* libzip forgets the reason of some allocations that fail, and only of those */
    case ZIP_ER_MEMORY:
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    case ZIP_ER_CANCELLED:
        return io_fail(err, DQ_IO, "was not written: interrupted");
    default:
        return io_fail(err, DQ_IO, "cannot be written: %s", zip_error_strerror(why));
    }
}

/* The member borrows the image until the archive is closed. */
static dq_status add_member(zip_t *zip, const char *name, npy_image *image, dq_error *err)
{
    char *member = malloc(strlen(name) + 5);
    if (!member)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    strcpy(member, name);
    strcat(member, ".npy");
    union {
        const void *in;
        zip_uint8_t *out;
    } data = {image->data}; /* libzip only reads it, but its type does not say so */
    zip_buffer_fragment_t parts[2] = {{(zip_uint8_t *)image->header, image->header_size},
                                      {data.out, image->data_size}};
    zip_source_t *source = zip_source_buffer_fragment(zip, parts, image->data_size ? 2 : 1, 0);
    zip_int64_t index = source ? zip_file_add(zip, member, source, ZIP_FL_ENC_UTF_8) : -1;
    free(member);
    if (index < 0) {
        zip_source_free(source);
        return zip_failure(zip_get_error(zip), err);
    }
    if (zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) ||
        zip_file_set_dostime(zip, (zip_uint64_t)index, DOS_TIME, DOS_DATE, 0))
        return zip_failure(zip_get_error(zip), err);
    return DQ_OK;
}

static dq_status fill_archive(zip_t *zip, size_t count, const char *const *names,
                              const dq_tensor *const *tensors, npy_image *images, dq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        dq_status status = npy_encode(tensors[i], &images[i], err);
        if (status == DQ_OK)
            status = add_member(zip, names[i], &images[i], err);
        if (status != DQ_OK)
            return status;
    }
    return DQ_OK;
}

static dq_status open_archive(target *to, zip_t **zip, dq_error *err)
{
    zip_error_t why;
    zip_error_init(&why);
    zip_source_t *source = zip_source_function_create(target_command, to, &why);
    *zip = source ? zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &why) : NULL;
    dq_status status = *zip ? DQ_OK : zip_failure(&why, err);
    if (source && !*zip)
        zip_source_free(source);
    zip_error_fini(&why);
    return status;
}

static dq_status write_archive(target *to, size_t count, const char *const *names,
                               const dq_tensor *const *tensors, npy_image *images, dq_error *err)
{
    zip_t *zip = NULL;
    dq_status status = open_archive(to, &zip, err);
    if (status != DQ_OK)
        return status;
    status = fill_archive(zip, count, names, tensors, images, err);
    if (status == DQ_OK && zip_close(zip) == 0)
        return DQ_OK;
    if (status == DQ_OK)
        status = zip_failure(zip_get_error(zip), err);
    zip_discard(zip);
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
static dq_status make_temporary(const char *path, char **temporary, int *fd, dq_error *err)
{
    size_t room = strlen(path) + 16;
    char *name = malloc(room);
    if (!name)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    snprintf(name, room, "%s.tmp-XXXXXX", path);
    *fd = mkstemp(name);
    if (*fd < 0) {
        dq_status status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
        free(name);
        return status;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(*fd, 0666 & ~mask);
    *temporary = name;
    return DQ_OK;
}

/* Everything up to the rename. */
static dq_status write_temporary(target *to, size_t count, const char *const *names,
                                 const dq_tensor *const *tensors, dq_error *err)
{
    npy_image *images = calloc(count ? count : 1, sizeof *images);
    if (!images)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    dq_status status = write_archive(to, count, names, tensors, images, err);
    for (size_t i = 0; i < count; i++)
        npy_image_clear(&images[i]);
    free(images);
    if (status == DQ_OK && fsync(to->fd))
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    return status;
}

dq_status npz_write(const char *path, size_t count, const char *const *names, const dq_tensor *const *tensors,
                    const volatile sig_atomic_t *cancel, dq_error *err)
{
    char *temporary = NULL;
    target to = {.cancel = cancel};
    dq_status status = check_target(path, err);
    if (status == DQ_OK)
        status = make_temporary(path, &temporary, &to.fd, err);
    if (status != DQ_OK)
        return status;
    zip_error_init(&to.error);
    status = write_temporary(&to, count, names, tensors, err);
    zip_error_fini(&to.error);
    if (close(to.fd) && status == DQ_OK)
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    if (status == DQ_OK && cancel && *cancel)
        status = io_fail(err, DQ_IO, "was not written: interrupted");
    if (status == DQ_OK && rename(temporary, path))
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    if (status != DQ_OK)
        unlink(temporary);
    free(temporary);
    return status;
}
