/* SPDX-License-Identifier: Apache-2.0 */
#include "npz.h"
#include "out_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* Properties of every member: numpy's date (1980-01-01), a name in UTF-8, no compression, and the version of
 * zip with 64-bit sizes. */
enum { DOS_DATE = 0x210000, NAME_IS_UTF_8 = 0x800, STORED = 0, ZIP_VERSION = 45 };

/* Zip stores the length of a member's name, ".npy" included, in 16 bits. Some versions of minizip overflow a
 * buffer for longer names (CVE-2023-45853). */
enum { NAME_BYTES_MAX = UINT16_MAX - 4 };

/* Bytes between two checks for a write error. */
enum { PIECE = 16 << 20 };

/* The temporary file. */
typedef struct target {
    FILE *file;
    int error; /* errno of the first failed write; 0: none. */
} target;

static voidpf target_open(voidpf opaque, const void *name, int mode)
{
    (void)name, (void)mode;
    return ((target *)opaque)->file;
}

/* minizip 1.1 leaks memory after a failed write, so this function always reports success; its caller checks
 * `error`. */
static uLong target_write(voidpf opaque, voidpf stream, const void *bytes, uLong size)
{
    target *to = opaque;
    if (!to->error && fwrite(bytes, 1, size, stream) != size)
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
    if (to->error)
        return io_fail(err, DQ_IO, "cannot be written: %s", strerror(to->error));
    return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
}

static bool add_bytes(zipFile zip, const target *to, const void *bytes, size_t size)
{
    for (const char *at = bytes; size && !to->error;) {
        unsigned piece = size < PIECE ? (unsigned)size : PIECE;
        if (zipWriteInFileInZip(zip, at, piece) != ZIP_OK)
            return false;
        at += piece;
        size -= piece;
    }
    return !to->error;
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
        size_t length = strlen(names[i]);
        if (length > NAME_BYTES_MAX)
            return io_fail(err, DQ_UNSUPPORTED, "an array's name has %zu bytes, .npz holds at most %d",
                           length, NAME_BYTES_MAX);
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
    bool closed = zipClose(zip, NULL) == ZIP_OK && !to->error;
    if (status == DQ_OK && !closed)
        status = write_failure(to, err);
    return status;
}

dq_status npz_write(const char *path, size_t count, const char *const *names, const dq_tensor *const *tensors,
                    dq_error *err)
{
    out_file out;
    dq_status status = out_open(path, &out, err);
    if (status != DQ_OK)
        return status;
    target to = {.file = out.file};
    return out_close(&out, write_archive(&to, count, names, tensors, err), err);
}
