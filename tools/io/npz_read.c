/* SPDX-License-Identifier: Apache-2.0 */
#include "npz.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unzip.h>

enum {
    STORED = 0,
    DEFLATED = 8,
    ENCRYPTED = 1,      /* A flag of members. */
    END_RECORD = 22,    /* Bytes of the end record. */
    DEFLATE_BEST = 1032 /* Maximum compression ratio of deflate. */
};

typedef struct member {
    char *name; /* Without ".npy". */
    unz64_file_pos position;
} member;

struct npz {
    unzFile zip;
    uint64_t size;   /* Of the file. */
    member *members; /* In the archive's order. */
    size_t count;
};

static dq_status out_of_memory(dq_error *err)
{
    return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
}

static dq_status no_archive(dq_error *err)
{
    return io_fail(err, DQ_BAD_INPUT, "is no .npz archive: its zip directory is missing or damaged");
}

/* Whether a file consists only of an end record: an archive without members, as numpy.savez writes for no
 * arrays. minizip refuses it. */
static bool holds_nothing(FILE *file, uint64_t size)
{
    char head[4];
    bool nothing = size == END_RECORD && fread(head, 1, sizeof head, file) == sizeof head &&
                   memcmp(head, "PK\5\6", sizeof head) == 0;
    rewind(file);
    return nothing;
}

/* minizip before 1.2 does not read the sizes and offsets of a zip64 entry, which numpy writes from 2 GiB on.
 * It uses their placeholder values instead. */
static dq_status too_large(dq_error *err)
{
    return io_fail(
        err, DQ_BAD_INPUT,
        "is too large for this version of minizip, which reads no zip64 entries; expected as a .npy file");
}

/* Converts minizip's result of reading a member to a status. */
static dq_status member_failure(int code, dq_error *err)
{
    if (code == UNZ_INTERNALERROR || code == Z_MEM_ERROR)
        return out_of_memory(err);
    if (code == UNZ_CRCERROR)
        return io_fail(err, DQ_BAD_INPUT, "is damaged: its checksum differs");
    return io_fail(err, DQ_BAD_INPUT, "is damaged: it cannot be unpacked");
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static dq_status refuse_duplicates(const npz *archive, dq_error *err)
{
    const char **names = malloc((archive->count + 1) * sizeof *names);
    if (!names)
        return out_of_memory(err);
    for (size_t i = 0; i < archive->count; i++)
        names[i] = archive->members[i].name;
    qsort(names, archive->count, sizeof *names, by_name);
    dq_status status = DQ_OK;
    for (size_t i = 1; i < archive->count && status == DQ_OK; i++) {
        if (!strcmp(names[i - 1], names[i]))
            status = io_fail(err, DQ_BAD_INPUT, "holds two arrays named '%s'", names[i]);
    }
    free(names);
    return status;
}

/* Adds the archive's current member, unless it is no array. Takes ownership of the name. */
static dq_status add_member(npz *archive, char *name, dq_error *err)
{
    size_t length = strlen(name);
    if (length < 4 || strcmp(name + length - 4, ".npy") != 0) {
        free(name);
        return DQ_OK;
    }
    name[length - 4] = 0;
    member *grown = realloc(archive->members, (archive->count + 1) * sizeof *grown);
    if (!grown) {
        free(name);
        return out_of_memory(err);
    }
    archive->members = grown;
    member *added = &grown[archive->count++];
    added->name = name;
    return unzGetFilePos64(archive->zip, &added->position) == UNZ_OK ? DQ_OK : no_archive(err);
}

static dq_status read_member_entry(npz *archive, dq_error *err)
{
    unz_file_info64 info;
    if (unzGetCurrentFileInfo64(archive->zip, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK)
        return no_archive(err);
    char *name = calloc(1, info.size_filename + 1);
    if (!name)
        return out_of_memory(err);
    if (unzGetCurrentFileInfo64(archive->zip, &info, name, info.size_filename + 1, NULL, 0, NULL, 0) !=
        UNZ_OK) {
        free(name);
        return no_archive(err);
    }
    return add_member(archive, name, err);
}

static dq_status list_members(npz *archive, dq_error *err)
{
    unz_global_info64 info;
    if (unzGetGlobalInfo64(archive->zip, &info) != UNZ_OK)
        return no_archive(err);
    int code = info.number_entry ? unzGoToFirstFile(archive->zip) : UNZ_END_OF_LIST_OF_FILE;
    while (code == UNZ_OK) {
        dq_status status = read_member_entry(archive, err);
        if (status != DQ_OK)
            return status;
        code = unzGoToNextFile(archive->zip);
    }
    if (code != UNZ_END_OF_LIST_OF_FILE)
        return no_archive(err);
    return refuse_duplicates(archive, err);
}

/* minizip "opens" the file that is already open, and finally closes it. */
static voidpf same_file(voidpf file, const void *name, int mode)
{
    (void)name, (void)mode;
    return file;
}

/* Takes ownership of the file. */
static dq_status open_archive(FILE *file, uint64_t size, npz **out, dq_error *err)
{
    npz *archive = calloc(1, sizeof *archive);
    if (!archive) {
        fclose(file);
        return out_of_memory(err);
    }
    archive->size = size;
    bool nothing = holds_nothing(file, size);
    zlib_filefunc64_def calls;
    fill_fopen64_filefunc(&calls);
    calls.zopen64_file = same_file;
    calls.opaque = file;
    errno = 0;
    archive->zip = unzOpen2_64(NULL, &calls);
    dq_status status = DQ_OK;
    if (archive->zip)
        status = list_members(archive, err);
    else if (!nothing)
        status = errno == ENOMEM ? out_of_memory(err) : no_archive(err);
    if (status == DQ_OK)
        *out = archive;
    else
        npz_close(archive);
    return status;
}

dq_status npz_open(const char *path, npz **out, dq_error *err)
{
    FILE *file = NULL;
    uint64_t size = 0;
    dq_status status = io_open_file(path, &file, &size, err);
    return status == DQ_OK ? open_archive(file, size, out, err) : status;
}

dq_status npz_open_memory(const void *bytes, size_t size, npz **out, dq_error *err)
{
    union {
        const void *in;
        void *out;
    } memory = {bytes}; /* A stream for reading does not write to it, but its type is not const. */
    FILE *file = fmemopen(memory.out, size, "rb");
    return file ? open_archive(file, size, out, err) : out_of_memory(err);
}

void npz_close(npz *archive)
{
    if (!archive)
        return;
    for (size_t i = 0; i < archive->count; i++)
        free(archive->members[i].name);
    free(archive->members);
    unzClose(archive->zip);
    free(archive);
}

size_t npz_count(const npz *archive)
{
    return archive->count;
}

const char *npz_name(const npz *archive, size_t i)
{
    return archive->members[i].name;
}

size_t npz_find(const npz *archive, const char *name)
{
    size_t i = 0;
    while (i < archive->count && strcmp(archive->members[i].name, name) != 0)
        i++;
    return i;
}

static dq_status read_member(void *arg, void *buffer, size_t size, dq_error *err)
{
    char *to = buffer;
    while (size) {
        int n = unzReadCurrentFile(arg, to, size < INT_MAX ? (unsigned)size : INT_MAX);
        if (n < 0)
            return member_failure(n, err);
        if (n == 0)
            return io_fail(err, DQ_BAD_INPUT, "is cut off: it unpacks to %zu bytes less than it declares",
                           size);
        to += n;
        size -= (size_t)n;
    }
    return DQ_OK;
}

static dq_status check_member(const unz_file_info64 *info, dq_error *err)
{
    if (info->uncompressed_size == UINT32_MAX || info->compressed_size == UINT32_MAX)
        return too_large(err);
    if (info->flag & ENCRYPTED)
        return io_fail(err, DQ_BAD_INPUT, "is encrypted");
    if (info->compression_method != STORED && info->compression_method != DEFLATED)
        return io_fail(err, DQ_BAD_INPUT,
                       "is packed by zip's method %lu, expected 0 (stored) or 8 (deflated)",
                       info->compression_method);
    if (info->compression_method == DEFLATED &&
        info->uncompressed_size / DEFLATE_BEST > info->compressed_size)
        return io_fail(err, DQ_BAD_INPUT,
                       "declares %" PRIu64 " bytes, which its %" PRIu64 " packed ones cannot unpack to",
                       (uint64_t)info->uncompressed_size, (uint64_t)info->compressed_size);
    return DQ_OK;
}

/* Opens a member. One can be open at a time, until unzCloseCurrentFile. */
static dq_status open_member(npz *archive, size_t i, io_source *source, dq_error *err)
{
    unz_file_info64 info;
    if (unzGoToFilePos64(archive->zip, &archive->members[i].position) != UNZ_OK ||
        unzGetCurrentFileInfo64(archive->zip, &info, NULL, 0, NULL, 0, NULL, 0) != UNZ_OK)
        return no_archive(err);
    dq_status status = check_member(&info, err);
    if (status != DQ_OK)
        return status;
    int code = unzOpenCurrentFile(archive->zip);
    if (code == UNZ_BADZIPFILE && archive->size > UINT32_MAX)
        return too_large(err);
    if (code != UNZ_OK)
        return member_failure(code, err);
    *source = (io_source){.read = read_member, .arg = archive->zip, .size = info.uncompressed_size};
    return DQ_OK;
}

dq_status npz_header(npz *archive, size_t i, npy_header *header, dq_error *err)
{
    io_source source;
    dq_status status = open_member(archive, i, &source, err);
    if (status != DQ_OK)
        return status;
    status = npy_read_header(&source, header, err);
    unzCloseCurrentFile(archive->zip);
    return status;
}

dq_status npz_read(npz *archive, size_t i, dq_dtype requested, uint64_t limit, dq_tensor **out, dq_error *err)
{
    io_source source;
    npy_header header;
    dq_status status = open_member(archive, i, &source, err);
    if (status != DQ_OK)
        return status;
    dq_tensor *tensor = NULL;
    status = npy_read_header(&source, &header, err);
    if (status == DQ_OK)
        status = npy_read_data(&source, &header, requested, limit, &tensor, err);
    /* minizip compares the checksum of a member that was read to its end. */
    int code = unzCloseCurrentFile(archive->zip);
    if (status == DQ_OK && code != UNZ_OK)
        status = member_failure(code, err);
    if (status == DQ_OK)
        *out = tensor;
    else
        dq_tensor_free(tensor);
    return status;
}
