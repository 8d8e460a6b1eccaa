#include "npz.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

/* No deflated stream is smaller than a 1032th of what it unpacks to. */
enum { DEFLATE_BEST = 1032 };

typedef struct member {
    char *name; /* without ".npy" */
    zip_uint64_t index;
} member;

struct npz {
    zip_t *zip;
    member *members; /* in the archive's order */
    size_t count;
};

/* "<what>: <why>", and the status that fits it. */
static dq_status zip_failure(zip_error_t *why, const char *what, dq_error *err)
{
    if (zip_error_code_zip(why) == ZIP_ER_MEMORY)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    return io_fail(err, DQ_BAD_INPUT, "%s: %s", what, zip_error_strerror(why));
}

static dq_status no_archive(zip_error_t *why, dq_error *err)
{
    dq_status status = zip_failure(why, "is no .npz archive", err);
    zip_error_fini(why);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static dq_status refuse_duplicates(const npz *archive, dq_error *err)
{
    const char **names = malloc(archive->count * sizeof *names);
    if (!names)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is for its names");
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

static dq_status add_member(npz *archive, zip_uint64_t index, dq_error *err)
{
    const char *name = zip_get_name(archive->zip, index, 0);
    size_t length = name ? strlen(name) : 0;
    if (length < 4 || strcmp(name + length - 4, ".npy") != 0)
        return DQ_OK;
    char *copy = malloc(length - 3);
    if (!copy)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is for its names");
    memcpy(copy, name, length - 4);
    copy[length - 4] = 0;
    archive->members[archive->count++] = (member){copy, index};
    return DQ_OK;
}

static dq_status list_members(npz *archive, dq_error *err)
{
    zip_int64_t entries = zip_get_num_entries(archive->zip, 0);
    archive->members = calloc(entries > 0 ? (size_t)entries : 1, sizeof *archive->members);
    if (!archive->members)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is for its names");
    dq_status status = DQ_OK;
    for (zip_int64_t i = 0; i < entries && status == DQ_OK; i++)
        status = add_member(archive, (zip_uint64_t)i, err);
    if (status == DQ_OK && !archive->count)
        return io_fail(err, DQ_BAD_INPUT, "holds no .npy array");
    return status == DQ_OK ? refuse_duplicates(archive, err) : status;
}

/* Takes the zip handle over. */
static dq_status open_archive(zip_t *zip, npz **out, dq_error *err)
{
    npz *archive = calloc(1, sizeof *archive);
    if (!archive) {
        zip_discard(zip);
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is");
    }
    archive->zip = zip;
    dq_status status = list_members(archive, err);
    if (status == DQ_OK)
        *out = archive;
    else
        npz_close(archive);
    return status;
}

dq_status npz_open(const char *path, npz **out, dq_error *err)
{
    int code = 0;
    zip_t *zip = zip_open(path, ZIP_RDONLY, &code);
    if (zip)
        return open_archive(zip, out, err);
    zip_error_t why;
    zip_error_init_with_code(&why, code);
    if (code != ZIP_ER_NOENT && code != ZIP_ER_OPEN)
        return no_archive(&why, err);
    dq_status status = zip_failure(&why, "cannot be opened", err);
    zip_error_fini(&why);
    return status;
}

dq_status npz_open_memory(const void *bytes, size_t size, npz **out, dq_error *err)
{
    zip_error_t why;
    zip_error_init(&why);
    zip_source_t *source = zip_source_buffer_create(bytes, size, 0, &why);
    if (!source)
        return no_archive(&why, err);
    zip_t *zip = zip_open_from_source(source, ZIP_RDONLY, &why);
    if (!zip) {
        zip_source_free(source);
        return no_archive(&why, err);
    }
    zip_error_fini(&why);
    return open_archive(zip, out, err);
}

void npz_close(npz *archive)
{
    if (!archive)
        return;
    for (size_t i = 0; i < archive->count; i++)
        free(archive->members[i].name);
    free(archive->members);
    zip_discard(archive->zip);
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
    zip_file_t *file = arg;
    char *to = buffer;
    while (size) {
        zip_int64_t n = zip_fread(file, to, size);
        if (n < 0)
            return zip_failure(zip_file_get_error(file), "cannot be unpacked", err);
        if (n == 0)
            return io_fail(err, DQ_BAD_INPUT, "is cut off: it unpacks to %zu bytes less than it declares",
                           size);
        to += n;
        size -= (size_t)n;
    }
    return DQ_OK;
}

static dq_status open_member(npz *archive, size_t i, io_source *source, dq_error *err)
{
    zip_stat_t info;
    zip_uint64_t index = archive->members[i].index;
    const zip_uint64_t need = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
    if (zip_stat_index(archive->zip, index, 0, &info) || (info.valid & need) != need)
        return zip_failure(zip_get_error(archive->zip), "is a member without a size", err);
    if (info.comp_method == ZIP_CM_DEFLATE && info.size / DEFLATE_BEST > info.comp_size)
        return io_fail(err, DQ_BAD_INPUT,
                       "declares %" PRIu64 " bytes, which its %" PRIu64 " packed ones cannot unpack to",
                       (uint64_t)info.size, (uint64_t)info.comp_size);
    zip_file_t *file = zip_fopen_index(archive->zip, index, 0);
    if (!file)
        return zip_failure(zip_get_error(archive->zip), "cannot be unpacked", err);
    *source = (io_source){.read = read_member, .arg = file, .size = info.size};
    return DQ_OK;
}

dq_status npz_header(npz *archive, size_t i, npy_header *header, dq_error *err)
{
    io_source source;
    dq_status status = open_member(archive, i, &source, err);
    if (status != DQ_OK)
        return status;
    status = npy_read_header(&source, header, err);
    zip_fclose(source.arg);
    return status;
}

dq_status npz_read(npz *archive, size_t i, dq_dtype wanted, uint64_t limit, dq_tensor **out, dq_error *err)
{
    io_source source;
    npy_header header;
    dq_status status = open_member(archive, i, &source, err);
    if (status != DQ_OK)
        return status;
    dq_tensor *tensor = NULL;
    status = npy_read_header(&source, &header, err);
    if (status == DQ_OK)
        status = npy_read_data(&source, &header, wanted, limit, &tensor, err);
    char more;
    /* libzip compares the checksum where the member ends, which this read reaches. */
    if (status == DQ_OK && zip_fread(source.arg, &more, 1) != 0)
        status = zip_failure(zip_file_get_error(source.arg), "is damaged", err);
    zip_fclose(source.arg);
    if (status == DQ_OK)
        *out = tensor;
    else
        dq_tensor_free(tensor);
    return status;
}
