/* SPDX-License-Identifier: Apache-2.0 */
#include "common.h"

#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void cut(dq_error *err, int requested)
{
    if (requested < (int)sizeof err->message)
        return;
    /* Step back over a UTF-8 sequence that the truncation would leave incomplete. */
    size_t end = sizeof err->message - sizeof "…";
    while (end && ((unsigned char)err->message[end] & 0xC0) == 0x80)
        end--;
    memcpy(err->message + end, "…", sizeof "…");
}

dq_status io_fail(dq_error *err, dq_status status, const char *format, ...)
{
    if (!err)
        return status;
    va_list args;
    va_start(args, format);
    err->status = status;
    cut(err, vsnprintf(err->message, sizeof err->message, format, args));
    va_end(args);
    return status;
}

dq_status io_no_memory(dq_error *err)
{
    return io_fail(err, DQ_OUT_OF_MEMORY, "out of memory");
}

void *io_room(void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    const size_t more = count ? 2 * count : 64;
    void *grown = realloc(list, more * size);
    if (grown)
        *capacity = more;
    return grown;
}

dq_status io_prefix(dq_error *err, dq_status status, const char *where)
{
    if (!err)
        return status;
    char message[sizeof err->message];
    memcpy(message, err->message, sizeof message);
    return io_fail(err, status, "%s: %s", where, message);
}

bool io_count(size_t rank, const int64_t *dims, size_t *count)
{
    bool empty = false;
    size_t n = 1;
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return false;
        if (dims[i] == 0)
            empty = true;
        else if ((uint64_t)dims[i] > SIZE_MAX / n)
            return false;
        else
            n *= (size_t)dims[i];
    }
    *count = empty ? 0 : n;
    return true;
}

bool io_packed_size(dq_dtype dtype, size_t count, size_t *size)
{
    unsigned bits = dq_dtype_bits(dtype);
    if (count > SIZE_MAX / 16 - 1)
        return false;
    *size = count / 8 * bits + (count % 8 * bits + 7) / 8;
    return true;
}

dq_status io_check_shape(dq_dtype dtype, size_t rank, const int64_t *dims, uint64_t limit, dq_error *err)
{
    if (rank > DQ_MAX_RANK)
        return io_fail(err, DQ_BAD_INPUT, "has rank %zu, expected at most %d", rank, DQ_MAX_RANK);
    if (dtype <= DQ_UNDEFINED || dtype >= DQ_DTYPE_COUNT)
        return io_fail(err, DQ_BAD_INPUT, "has element type %d, expected 1 to %d", (int)dtype,
                       DQ_DTYPE_COUNT - 1);
    char text[IO_TYPE_TEXT];
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return io_fail(err, DQ_BAD_INPUT, "has dimension %" PRId64 ", expected 0 or more", dims[i]);
    }
    size_t count = 0, size = 0;
    bool fits = io_count(rank, dims, &count);
    if (fits && dtype == DQ_STRING) {
        fits = count <= SIZE_MAX / 16;
        size = fits ? count * 16 : 0;
    } else {
        fits = fits && io_packed_size(dtype, count, &size);
    }
    if (!fits || size > limit)
        return io_fail(err, DQ_OUT_OF_MEMORY,
                       "has type %s, over the limit of %" PRIu64 " bytes for one tensor",
                       io_type_text(dtype, rank, dims, text), limit);
    return DQ_OK;
}

/* Index of the byte with the lowest bit of element i, in a form in which i * bits cannot overflow. */
static size_t first_byte(unsigned bits, size_t i)
{
    return i / 8 * bits + i % 8 * bits / 8;
}

unsigned io_get_bits(const void *data, unsigned bits, size_t i)
{
    const uint8_t *bytes = data;
    size_t at = first_byte(bits, i);
    unsigned shift = (unsigned)(i % 8 * bits % 8);
    unsigned value = bytes[at];
    if (shift + bits > 8)
        value |= (unsigned)bytes[at + 1] << 8;
    return value >> shift & ((1u << bits) - 1);
}

void io_put_bits(void *data, unsigned bits, size_t i, unsigned value)
{
    uint8_t *bytes = data;
    size_t at = first_byte(bits, i);
    unsigned shift = (unsigned)(i % 8 * bits % 8);
    unsigned mask = ((1u << bits) - 1) << shift;
    unsigned put = value << shift & mask;
    bytes[at] = (uint8_t)((bytes[at] & ~mask) | put);
    if (shift + bits > 8)
        bytes[at + 1] = (uint8_t)((bytes[at + 1] & ~(mask >> 8)) | put >> 8);
}

bool io_is_signed(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_INT2:
    case DQ_INT4:
    case DQ_INT8:
    case DQ_INT16:
    case DQ_INT32:
    case DQ_INT64:
        return true;
    default:
        return false;
    }
}

bool io_is_integer(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_UINT2:
    case DQ_UINT4:
    case DQ_UINT8:
    case DQ_UINT16:
    case DQ_UINT32:
    case DQ_UINT64:
        return true;
    default:
        return io_is_signed(dtype);
    }
}

uint64_t io_get_int(const dq_tensor *tensor, size_t i)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    unsigned bits = dq_dtype_bits(dtype);
    const uint8_t *bytes = dq_tensor_data(tensor);
    uint64_t raw = 0;
    if (bits < 8)
        raw = io_get_bits(bytes, bits, i);
    else
        memcpy(&raw, bytes + i * (bits / 8), bits / 8);
    if (!io_is_signed(dtype) || bits == 64)
        return raw;
    unsigned unused = 64 - bits;
    return (uint64_t)((int64_t)(raw << unused) >> unused);
}

dq_status io_open_file(const char *path, FILE **file, uint64_t *size, dq_error *err)
{
    /* O_NONBLOCK: do not wait for a writer if the path is a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat info;
    if (fd < 0)
        return io_fail(err, DQ_BAD_INPUT, "cannot be opened: %s", strerror(errno));
    dq_status status = DQ_OK;
    if (fstat(fd, &info))
        status = io_fail(err, DQ_BAD_INPUT, "cannot be read: %s", strerror(errno));
    else if (!S_ISREG(info.st_mode))
        status = io_fail(err, DQ_BAD_INPUT, "is not a regular file");
    *file = status == DQ_OK ? fdopen(fd, "rb") : NULL;
    if (*file) {
        *size = (uint64_t)info.st_size;
        return DQ_OK;
    }
    close(fd);
    return status == DQ_OK ? io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is") : status;
}

dq_status io_read_exactly(FILE *file, void *buffer, size_t size, dq_error *err)
{
    if (fread(buffer, 1, size, file) == size)
        return DQ_OK;
    return io_fail(err, DQ_BAD_INPUT, "cannot be read: %s",
                   ferror(file) ? strerror(errno) : "it became shorter");
}

dq_status io_read_file(const char *path, uint64_t limit, void **bytes, size_t *size, dq_error *err)
{
    FILE *file = NULL;
    uint64_t length = 0;
    dq_status status = io_open_file(path, &file, &length, err);
    if (status != DQ_OK)
        return status;
    void *data = NULL;
    if (length > limit || length > SIZE_MAX - 1)
        status = io_fail(err, DQ_OUT_OF_MEMORY, "has %" PRIu64 " bytes, over the limit of %" PRIu64, length,
                         limit);
    else if (!(data = malloc((size_t)length + 1)))
        status = io_fail(err, DQ_OUT_OF_MEMORY, "needs %" PRIu64 " bytes, more memory than there is", length);
    else
        status = io_read_exactly(file, data, (size_t)length, err);
    fclose(file);
    if (status != DQ_OK) {
        free(data);
        return status;
    }
    *bytes = data;
    *size = (size_t)length;
    return DQ_OK;
}

dq_status io_read_stream(FILE *stream, uint64_t limit, void **bytes, size_t *size, dq_error *err)
{
    enum { FIRST_BYTES = 1 << 16 };
    size_t capacity = 0, used = 0;
    char *data = NULL;
    dq_status status = DQ_OK;
    while (status == DQ_OK && !feof(stream)) {
        if (used == capacity) {
            capacity = capacity ? 2 * capacity : FIRST_BYTES;
            char *grown = capacity > used ? realloc(data, capacity) : NULL;
            if (!grown) {
                status =
                    io_fail(err, DQ_OUT_OF_MEMORY, "needs %zu bytes, more memory than there is", capacity);
                break;
            }
            data = grown;
        }
        used += fread(data + used, 1, capacity - used, stream);
        if (ferror(stream))
            status = io_fail(err, DQ_BAD_INPUT, "cannot be read: %s", strerror(errno));
        else if (used > limit)
            status = io_fail(err, DQ_OUT_OF_MEMORY, "has more bytes than the limit of %" PRIu64, limit);
    }
    if (status != DQ_OK) {
        free(data);
        return status;
    }
    *bytes = data;
    *size = used;
    return DQ_OK;
}
