#include "npz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

/* 1980-01-01, the date that numpy gives to every member. */
enum { DOS_DATE = 0x21, DOS_TIME = 0 };

static dq_status zip_failure(zip_t *zip, dq_error *err)
{
    zip_error_t *why = zip_get_error(zip);
    bool memory = zip_error_code_zip(why) == ZIP_ER_MEMORY;
    if (zip_error_code_zip(why) == ZIP_ER_CANCELLED)
        return io_fail(err, DQ_IO, "was not written: interrupted");
    return io_fail(err, memory ? DQ_OUT_OF_MEMORY : DQ_IO, "cannot be written: %s", zip_error_strerror(why));
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
        return zip_failure(zip, err);
    }
    if (zip_set_file_compression(zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) ||
        zip_file_set_dostime(zip, (zip_uint64_t)index, DOS_TIME, DOS_DATE, 0))
        return zip_failure(zip, err);
    return DQ_OK;
}

static int is_cancelled(zip_t *zip, void *arg)
{
    (void)zip;
    return *(const volatile sig_atomic_t *)arg != 0;
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

/* libzip itself writes beside `path` and renames, and removes what it wrote when it fails or is cancelled. */
static dq_status write_archive(const char *path, size_t count, const char *const *names,
                               const dq_tensor *const *tensors, npy_image *images,
                               const volatile sig_atomic_t *cancel, dq_error *err)
{
    int code = 0;
    zip_t *zip = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!zip)
        return io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    union {
        const volatile sig_atomic_t *in;
        void *out;
    } state = {cancel};
    dq_status status = fill_archive(zip, count, names, tensors, images, err);
    if (status == DQ_OK && cancel &&
        zip_register_cancel_callback_with_state(zip, is_cancelled, NULL, state.out))
        status = zip_failure(zip, err);
    if (status == DQ_OK && zip_close(zip) == 0)
        return DQ_OK;
    if (status == DQ_OK)
        status = zip_failure(zip, err);
    zip_discard(zip);
    return status;
}

static dq_status flush(const char *path, dq_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && fsync(fd) == 0;
    int why = errno;
    if (fd >= 0)
        close(fd);
    return good ? DQ_OK : io_fail(err, DQ_IO, "cannot be written: %s", strerror(why));
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
static dq_status make_temporary(const char *path, char **temporary, dq_error *err)
{
    size_t room = strlen(path) + 16;
    char *name = malloc(room);
    if (!name)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    snprintf(name, room, "%s.tmp-XXXXXX", path);
    int fd = mkstemp(name);
    if (fd < 0) {
        dq_status status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
        free(name);
        return status;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    close(fd);
    *temporary = name;
    return DQ_OK;
}

dq_status npz_write(const char *path, size_t count, const char *const *names, const dq_tensor *const *tensors,
                    const volatile sig_atomic_t *cancel, dq_error *err)
{
    char *temporary = NULL;
    dq_status status = check_target(path, err);
    if (status == DQ_OK)
        status = make_temporary(path, &temporary, err);
    if (status != DQ_OK)
        return status;
    npy_image *images = calloc(count ? count : 1, sizeof *images);
    if (!images)
        status = io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    else
        status = write_archive(temporary, count, names, tensors, images, cancel, err);
    for (size_t i = 0; images && i < count; i++)
        npy_image_clear(&images[i]);
    free(images);
    if (status == DQ_OK)
        status = flush(temporary, err);
    if (status == DQ_OK && cancel && *cancel)
        status = io_fail(err, DQ_IO, "was not written: interrupted");
    if (status == DQ_OK && rename(temporary, path))
        status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
    if (status != DQ_OK)
        unlink(temporary);
    free(temporary);
    return status;
}
