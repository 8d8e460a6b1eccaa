/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the elements of a .npy array. */
#include "npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_small_integer(dq_dtype dtype)
{
    return dtype == DQ_INT4 || dtype == DQ_UINT4 || dtype == DQ_INT2 || dtype == DQ_UINT2;
}

/* Bytes of one raw element of a type that numpy lacks; 0 for types that it has. */
static size_t raw_size(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_BFLOAT16:
        return 2;
    case DQ_FLOAT8E4M3FN:
    case DQ_FLOAT8E4M3FNUZ:
    case DQ_FLOAT8E5M2:
    case DQ_FLOAT8E5M2FNUZ:
    case DQ_FLOAT8E8M0:
        return 1;
    default:
        return dq_dtype_bits(dtype) && dq_dtype_bits(dtype) < 8;
    }
}

dq_dtype npy_type(const npy_header *header, dq_dtype requested)
{
    if (header->kind == 'V')
        return raw_size(requested) == header->itemsize ? requested : DQ_UNDEFINED;
    bool byte = header->dtype == DQ_INT8 || header->dtype == DQ_UINT8;
    return byte && is_small_integer(requested) ? requested : header->dtype;
}

/* Size of the unit whose bytes are swapped when the byte order differs. */
static size_t swap_unit(const npy_header *h)
{
    if (!h->big_endian || h->kind == 'S')
        return 1;
    return h->kind == 'U' ? 4 : h->kind == 'c' ? h->itemsize / 2 : h->itemsize;
}

static void swap_bytes(uint8_t *data, size_t size, size_t unit)
{
    for (size_t at = 0; unit > 1 && at < size; at += unit) {
        for (size_t i = 0, j = unit - 1; i < j; i++, j--) {
            uint8_t b = data[at + i];
            data[at + i] = data[at + j];
            data[at + j] = b;
        }
    }
}

/* Copies elements from column-major to row-major order. */
static void from_fortran(const npy_header *h, const uint8_t *from, uint8_t *to)
{
    size_t stride[DQ_MAX_RANK] = {0}, next = 1, at = 0;
    int64_t index[DQ_MAX_RANK] = {0};
    for (size_t axis = 0; axis < h->rank; axis++) {
        stride[axis] = next;
        next *= (size_t)h->dims[axis];
    }
    for (size_t i = 0; i < h->count; i++) {
        memcpy(to + i * h->itemsize, from + at * h->itemsize, h->itemsize);
        for (size_t axis = h->rank; axis-- > 0;) {
            at += stride[axis];
            if (++index[axis] < h->dims[axis])
                break;
            at -= stride[axis] * (size_t)h->dims[axis];
            index[axis] = 0;
        }
    }
}

static dq_status pack(const npy_header *h, const uint8_t *from, dq_tensor *tensor, dq_error *err)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    unsigned bits = dq_dtype_bits(dtype);
    void *to = dq_tensor_mutable_data(tensor);
    for (size_t i = 0; i < h->count; i++) {
        int value = h->dtype == DQ_INT8 ? (int8_t)from[i] : from[i];
        /* A raw byte of a signed type may be sign-extended or not. */
        int low = io_is_signed(dtype) && h->dtype != DQ_UINT8 ? -(1 << (bits - 1)) : 0;
        int high = (1 << (io_is_signed(dtype) && h->kind != 'V' ? bits - 1 : bits)) - 1;
        if (h->kind == 'V' && io_is_signed(dtype) && value >= 128)
            value -= 256;
        if (value < low || value > high)
            return io_fail(err, DQ_BAD_INPUT, "has the value %d as element %zu, which is no %s", value, i,
                           dq_dtype_name(dtype));
        io_put_bits(to, bits, i, (unsigned)value);
    }
    return DQ_OK;
}

/* Writes a code point as UTF-8 to `text`. Returns 0 if it is no character. */
static size_t put_utf8(uint32_t c, char *text)
{
    if (c < 0x80)
        return text[0] = (char)c, 1;
    if (c >= 0xD800 && c < 0xE000)
        return 0;
    if (c > 0x10FFFF)
        return 0;
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        text[i] = (char)(0x80 | (c & 0x3F));
    text[0] = (char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | c);
    return n;
}

static dq_status set_unicode(const npy_header *h, const uint8_t *from, dq_tensor *tensor, size_t i,
                             char *text, dq_error *err)
{
    size_t chars = h->itemsize / 4, length = 0;
    uint32_t c;
    for (; chars; chars--) {
        memcpy(&c, from + (chars - 1) * 4, 4);
        if (c)
            break;
    }
    for (size_t k = 0; k < chars; k++) {
        memcpy(&c, from + k * 4, 4);
        size_t n = put_utf8(c, text + length);
        if (!n)
            return io_fail(err, DQ_BAD_INPUT, "has U+%04" PRIX32 " in string %zu, which is no character", c,
                           i);
        length += n;
    }
    return dq_tensor_set_string(tensor, i, text, length, err);
}

/* Fixed-size strings are padded with zeros, which numpy does not count as part of them either. */
static dq_status set_strings(const npy_header *h, const uint8_t *from, dq_tensor *tensor, dq_error *err)
{
    char *text = h->kind == 'U' ? malloc(h->itemsize + 1) : NULL;
    if (h->kind == 'U' && !text)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is for a string");
    dq_status status = DQ_OK;
    for (size_t i = 0; i < h->count && status == DQ_OK; i++, from += h->itemsize) {
        if (h->kind == 'U') {
            status = set_unicode(h, from, tensor, i, text, err);
            continue;
        }
        size_t length = h->itemsize;
        while (length && !from[length - 1])
            length--;
        status = dq_tensor_set_string(tensor, i, (const char *)from, length, err);
    }
    free(text);
    return status;
}

static dq_status check_bools(const dq_tensor *tensor, dq_error *err)
{
    const uint8_t *bytes = dq_tensor_data(tensor);
    for (size_t i = 0; i < dq_tensor_count(tensor); i++) {
        if (bytes[i] > 1)
            return io_fail(err, DQ_BAD_INPUT, "has the byte %u as element %zu, which is no bool", bytes[i],
                           i);
    }
    return DQ_OK;
}

static dq_status set_data(const npy_header *h, const uint8_t *from, dq_tensor *tensor, dq_error *err)
{
    if (dq_tensor_dtype(tensor) == DQ_STRING)
        return set_strings(h, from, tensor, err);
    if (dq_dtype_bits(dq_tensor_dtype(tensor)) < 8)
        return pack(h, from, tensor, err);
    memcpy(dq_tensor_mutable_data(tensor), from, h->data_size);
    return DQ_OK;
}

/* Reads elements that need conversion, through a buffer in the file's form. */
static dq_status read_indirect(io_source *source, const npy_header *h, dq_tensor *tensor, dq_error *err)
{
    bool reorder = h->fortran && h->rank > 1;
    uint8_t *data = malloc(h->data_size), *ordered = reorder ? malloc(h->data_size) : NULL;
    dq_status status = DQ_OK;
    if (!data || (reorder && !ordered))
        status = io_fail(err, DQ_OUT_OF_MEMORY, "needs %zu bytes, more memory than there is", h->data_size);
    if (status == DQ_OK)
        status = source->read(source->arg, data, h->data_size, err);
    if (status == DQ_OK) {
        swap_bytes(data, h->data_size, swap_unit(h));
        if (reorder)
            from_fortran(h, data, ordered);
        status = set_data(h, reorder ? ordered : data, tensor, err);
    }
    free(data);
    free(ordered);
    return status;
}

static dq_status read_elements(io_source *source, const npy_header *h, dq_tensor *tensor, dq_error *err)
{
    if (!h->data_size)
        return DQ_OK;
    dq_dtype dtype = dq_tensor_dtype(tensor);
    bool direct =
        dtype != DQ_STRING && dq_dtype_bits(dtype) >= 8 && swap_unit(h) == 1 && (!h->fortran || h->rank < 2);
    dq_status status = direct ? source->read(source->arg, dq_tensor_mutable_data(tensor), h->data_size, err)
                              : read_indirect(source, h, tensor, err);
    return status == DQ_OK && dtype == DQ_BOOL ? check_bools(tensor, err) : status;
}

dq_status npy_read_data(io_source *source, const npy_header *header, dq_dtype requested, uint64_t limit,
                        dq_tensor **out, dq_error *err)
{
    dq_dtype dtype = npy_type(header, requested);
    if (dtype == DQ_UNDEFINED && requested == DQ_UNDEFINED)
        return io_fail(err, DQ_BAD_INPUT, "has raw elements ('%s'), and nothing says their type",
                       header->descr);
    if (dtype == DQ_UNDEFINED)
        return io_fail(err, DQ_BAD_INPUT, "has raw elements ('%s'), which cannot be %s", header->descr,
                       dq_dtype_name(requested));
    dq_status status = io_check_shape(dtype, header->rank, header->dims, limit, err);
    if (status != DQ_OK)
        return status;
    if (header->data_size > limit)
        return io_fail(err, DQ_OUT_OF_MEMORY,
                       "has %zu bytes of data, over the limit of %" PRIu64 " for one tensor",
                       header->data_size, limit);
    dq_tensor *tensor = NULL;
    status = dq_tensor_create(dtype, header->rank, header->dims, &tensor, err);
    if (status == DQ_OK)
        status = read_elements(source, header, tensor, err);
    if (status != DQ_OK) {
        dq_tensor_free(tensor);
        return status;
    }
    *out = tensor;
    return DQ_OK;
}

static dq_status read_from_file(void *arg, void *buffer, size_t size, dq_error *err)
{
    return io_read_exactly(arg, buffer, size, err);
}

static dq_status open_source(const char *path, io_source *source, dq_error *err)
{
    FILE *file = NULL;
    *source = (io_source){.read = read_from_file};
    dq_status status = io_open_file(path, &file, &source->size, err);
    source->arg = file;
    return status;
}

dq_status npy_file_header(const char *path, npy_header *header, dq_error *err)
{
    io_source source;
    dq_status status = open_source(path, &source, err);
    if (status != DQ_OK)
        return status;
    status = npy_read_header(&source, header, err);
    fclose(source.arg);
    return status;
}

dq_status npy_file_read(const char *path, dq_dtype requested, uint64_t limit, dq_tensor **out, dq_error *err)
{
    io_source source;
    npy_header header;
    dq_status status = open_source(path, &source, err);
    if (status != DQ_OK)
        return status;
    status = npy_read_header(&source, &header, err);
    if (status == DQ_OK)
        status = npy_read_data(&source, &header, requested, limit, out, err);
    fclose(source.arg);
    return status;
}
