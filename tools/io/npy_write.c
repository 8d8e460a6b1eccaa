/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a tensor as .npy, byte for byte as numpy.save does. */
#include "npy.h"
#include "out_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *number_descr(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_BOOL:
        return "|b1";
    case DQ_INT8:
        return "|i1";
    case DQ_UINT8:
        return "|u1";
    case DQ_INT16:
        return "<i2";
    case DQ_UINT16:
        return "<u2";
    case DQ_INT32:
        return "<i4";
    case DQ_UINT32:
        return "<u4";
    case DQ_INT64:
        return "<i8";
    case DQ_UINT64:
        return "<u8";
    case DQ_FLOAT16:
        return "<f2";
    case DQ_FLOAT:
        return "<f4";
    case DQ_DOUBLE:
        return "<f8";
    case DQ_COMPLEX64:
        return "<c8";
    case DQ_COMPLEX128:
        return "<c16";
    case DQ_BFLOAT16:
        return "<V2";
    default:
        return "<V1";
    }
}

/* Reads one character of UTF-8; 0 bytes if it is malformed. */
static size_t get_utf8(const char *text, size_t left, uint32_t *c)
{
    const uint8_t *s = (const uint8_t *)text;
    size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : s[0] >= 0xC0 ? 2 : 0;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (!n || n > left || s[0] > 0xF7)
        return 0;
    uint32_t v = n == 1 ? s[0] : s[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return 0;
        v = v << 6 | (s[i] & 0x3F);
    }
    if (v < least[n] || v > 0x10FFFF || (v >= 0xD800 && v < 0xE000))
        return 0;
    *c = v;
    return n;
}

/* Finds the longest string in characters and in bytes. *unicode is false if one is not UTF-8. */
static void measure(const dq_tensor *t, size_t *chars, size_t *bytes, bool *unicode)
{
    *chars = *bytes = 1; /* numpy has no strings of length 0. */
    *unicode = true;
    for (size_t i = 0; i < dq_tensor_count(t); i++) {
        size_t length = 0, n = 0, step = 1;
        const char *s = dq_tensor_string(t, i, &length);
        if (length > *bytes)
            *bytes = length;
        uint32_t c;
        for (size_t at = 0; *unicode && at < length; at += step, n++) {
            step = get_utf8(s + at, length - at, &c);
            *unicode = step > 0;
        }
        if (n > *chars)
            *chars = n;
    }
}

static void put_string(uint8_t *to, const char *s, size_t length, bool unicode)
{
    if (!unicode) {
        memcpy(to, s, length);
        return;
    }
    for (size_t at = 0; at < length; to += 4) {
        uint32_t c = 0;
        at += get_utf8(s + at, length - at, &c);
        memcpy(to, &c, 4);
    }
}

static dq_status encode_strings(const dq_tensor *t, npy_image *image, char descr[24], dq_error *err)
{
    size_t chars, bytes, count = dq_tensor_count(t);
    bool unicode;
    measure(t, &chars, &bytes, &unicode);
    size_t width = unicode ? chars : bytes, itemsize = unicode ? 4 * width : width;
    snprintf(descr, 24, unicode ? "<U%zu" : "|S%zu", width);
    if (width > SIZE_MAX / 4 || (count && itemsize > SIZE_MAX / count) || itemsize * count > IO_TENSOR_LIMIT)
        return io_fail(err, DQ_OUT_OF_MEMORY,
                       "has %zu strings of up to %zu bytes, too much for the fixed width of .npy", count,
                       bytes);
    uint8_t *data = calloc(count ? count : 1, itemsize);
    if (!data)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs %zu bytes, more memory than there is", count * itemsize);
    for (size_t i = 0; i < count; i++) {
        size_t length = 0;
        const char *s = dq_tensor_string(t, i, &length);
        if (length)
            put_string(data + i * itemsize, s, length, unicode);
    }
    image->owned = data;
    image->data = data;
    image->data_size = count * itemsize;
    return DQ_OK;
}

static dq_status unpack(const dq_tensor *t, unsigned bits, npy_image *image, dq_error *err)
{
    size_t count = dq_tensor_count(t);
    uint8_t *data = malloc(count ? count : 1);
    if (!data)
        return io_fail(err, DQ_OUT_OF_MEMORY, "needs %zu bytes, more memory than there is", count);
    for (size_t i = 0; i < count; i++)
        data[i] = (uint8_t)io_get_bits(dq_tensor_data(t), bits, i);
    image->owned = data;
    image->data = data;
    image->data_size = count;
    return DQ_OK;
}

/* Writes the header. Like numpy, it reserves space for the first dimension to grow in place, and ends the
 * header on a multiple of 64. */
static void put_header(const dq_tensor *t, const char *descr, npy_image *image)
{
    char *text = image->header + 10;
    const size_t capacity = sizeof image->header - 10;
    const int64_t *dims = dq_tensor_dims(t);
    size_t rank = dq_tensor_rank(t);
    size_t n = (size_t)snprintf(text, capacity, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    size_t grow = 0;
    for (size_t i = 0; i < rank; i++) {
        size_t digits = (size_t)snprintf(text + n, capacity - n, "%" PRId64, dims[i]);
        grow = i ? grow : 21 - digits;
        n += digits;
        n += (size_t)snprintf(text + n, capacity - n, "%s", rank == 1 ? "," : i + 1 < rank ? ", " : "");
    }
    n += (size_t)snprintf(text + n, capacity - n, "), }%*s", (int)grow, "");
    size_t pad = 64 - (10 + n + 1) % 64;
    memset(text + n, ' ', pad);
    text[n + pad] = '\n';
    n += pad + 1;
    memcpy(image->header, "\x93NUMPY\x01\x00", 8);
    image->header[8] = (char)(n & 0xFF);
    image->header[9] = (char)(n >> 8);
    image->header_size = 10 + n;
}

dq_status npy_encode(const dq_tensor *tensor, npy_image *image, dq_error *err)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    unsigned bits = dq_dtype_bits(dtype);
    char descr[24];
    *image = (npy_image){.data = dq_tensor_data(tensor), .data_size = dq_tensor_size(tensor)};
    dq_status status = DQ_OK;
    if (dtype == DQ_STRING) {
        status = encode_strings(tensor, image, descr, err);
    } else {
        snprintf(descr, sizeof descr, "%s", number_descr(dtype));
        if (bits < 8)
            status = unpack(tensor, bits, image, err);
    }
    if (status == DQ_OK)
        put_header(tensor, descr, image);
    return status;
}

void npy_image_clear(npy_image *image)
{
    free(image->owned);
    image->owned = NULL;
}

dq_status npy_file_write(const char *path, const dq_tensor *tensor, dq_error *err)
{
    npy_image image;
    out_file out;
    dq_status status = npy_encode(tensor, &image, err);
    if (status != DQ_OK)
        return status;
    status = out_open(path, &out, err);
    if (status == DQ_OK) {
        bool written =
            fwrite(image.header, 1, image.header_size, out.file) == image.header_size &&
            (!image.data_size || fwrite(image.data, 1, image.data_size, out.file) == image.data_size);
        if (!written)
            status = io_fail(err, DQ_IO, "cannot be written: %s", strerror(errno));
        status = out_close(&out, status, err);
    }
    npy_image_clear(&image);
    return status;
}
