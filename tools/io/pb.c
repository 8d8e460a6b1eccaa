/* SPDX-License-Identifier: Apache-2.0 */
#include "pb.h"

#include "onnx.pb-c.h"
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef Onnx__TensorProto proto;

/* The typed fields. A type is stored in raw_data or in the typed field of its row. */
enum field { F_FLOAT, F_DOUBLE, F_INT32, F_INT64, F_UINT64, F_STRING, F_COUNT };

static const char *const field_names[F_COUNT] = {"float_data", "double_data", "int32_data",
                                                 "int64_data", "uint64_data", "string_data"};

static enum field field_of(dq_dtype dtype)
{
    switch (dtype) {
    case DQ_FLOAT:
    case DQ_COMPLEX64:
        return F_FLOAT;
    case DQ_DOUBLE:
    case DQ_COMPLEX128:
        return F_DOUBLE;
    case DQ_INT64:
        return F_INT64;
    case DQ_UINT32:
    case DQ_UINT64:
        return F_UINT64;
    case DQ_STRING:
        return F_STRING;
    default:
        return F_INT32;
    }
}

static size_t field_length(const proto *p, enum field field)
{
    const size_t lengths[F_COUNT] = {p->n_float_data, p->n_double_data, p->n_int32_data,
                                     p->n_int64_data, p->n_uint64_data, p->n_string_data};
    return lengths[field];
}

/* The number of entries of the typed field for `count` elements. */
static bool entries_wanted(dq_dtype dtype, size_t count, size_t *entries)
{
    if (dtype == DQ_COMPLEX64 || dtype == DQ_COMPLEX128) {
        *entries = count * 2;
        return count <= SIZE_MAX / 2;
    }
    if (dtype == DQ_FLOAT6E2M3 || dtype == DQ_FLOAT6E3M2 || dtype == DQ_STRING || dq_dtype_bits(dtype) >= 8) {
        *entries = count;
        return true;
    }
    return io_packed_size(dtype, count, entries); /* One byte of packed elements per entry. */
}

static dq_status check_range(const proto *p, dq_dtype dtype, size_t i, int64_t low, int64_t high,
                             dq_error *err)
{
    if (p->int32_data[i] >= low && p->int32_data[i] <= high)
        return DQ_OK;
    return io_fail(err, DQ_BAD_INPUT, "entry %zu of int32_data is %" PRId32 ", which is no %s", i,
                   p->int32_data[i], dq_dtype_name(dtype));
}

/* Copies int32_data to elements of 1 to 4 bytes, or to bytes of packed elements. */
static dq_status copy_int32(const proto *p, dq_dtype dtype, size_t entries, uint8_t *to, dq_error *err)
{
    unsigned bits = dq_dtype_bits(dtype);
    if (bits == 32) {
        memcpy(to, p->int32_data, entries * 4);
        return DQ_OK;
    }
    bool six = bits == 6;
    unsigned wide = bits == 16 ? 16 : six ? 6 : 8;
    int64_t high = dtype == DQ_BOOL                   ? 1
                   : io_is_signed(dtype) && bits >= 8 ? (1 << (wide - 1)) - 1
                                                      : (1 << wide) - 1;
    /* Writers store packed bytes of signed types either as 0…255 or as -128…127. */
    int64_t low = io_is_signed(dtype) ? -(1 << (wide - 1)) : 0;
    for (size_t i = 0; i < entries; i++) {
        dq_status status = check_range(p, dtype, i, low, high, err);
        if (status != DQ_OK)
            return status;
        if (six) {
            io_put_bits(to, 6, i, (unsigned)p->int32_data[i]);
        } else if (wide == 16) {
            uint16_t v = (uint16_t)p->int32_data[i];
            memcpy(to + 2 * i, &v, 2);
        } else {
            to[i] = (uint8_t)p->int32_data[i];
        }
    }
    return DQ_OK;
}

static dq_status copy_uint64(const proto *p, dq_dtype dtype, size_t entries, void *to, dq_error *err)
{
    if (dtype == DQ_UINT64) {
        memcpy(to, p->uint64_data, entries * 8);
        return DQ_OK;
    }
    uint32_t *narrow = to;
    for (size_t i = 0; i < entries; i++) {
        if (p->uint64_data[i] > UINT32_MAX)
            return io_fail(err, DQ_BAD_INPUT, "entry %zu of uint64_data is %" PRIu64 ", which is no uint32",
                           i, p->uint64_data[i]);
        narrow[i] = (uint32_t)p->uint64_data[i];
    }
    return DQ_OK;
}

static dq_status copy_strings(const proto *p, dq_tensor *tensor, dq_error *err)
{
    for (size_t i = 0; i < p->n_string_data; i++) {
        const ProtobufCBinaryData *s = &p->string_data[i];
        const char *bytes = s->data ? (const char *)s->data : "";
        dq_status status = dq_tensor_set_string(tensor, i, bytes, s->len, err);
        if (status != DQ_OK)
            return status;
    }
    return DQ_OK;
}

static dq_status copy_field(const proto *p, size_t entries, dq_tensor *tensor, dq_error *err)
{
    dq_dtype dtype = dq_tensor_dtype(tensor);
    void *to = dq_tensor_mutable_data(tensor);
    if (!entries)
        return DQ_OK;
    switch (field_of(dtype)) {
    case F_FLOAT:
        memcpy(to, p->float_data, entries * sizeof(float));
        return DQ_OK;
    case F_DOUBLE:
        memcpy(to, p->double_data, entries * sizeof(double));
        return DQ_OK;
    case F_INT64:
        memcpy(to, p->int64_data, entries * 8);
        return DQ_OK;
    case F_UINT64:
        return copy_uint64(p, dtype, entries, to, err);
    case F_STRING:
        return copy_strings(p, tensor, err);
    default:
        return copy_int32(p, dtype, entries, to, err);
    }
}

/* Clears the unused bits of the last byte of a type under 8 bits; they are zero in a dq_tensor. */
static void clear_padding(dq_tensor *tensor)
{
    unsigned bits = dq_dtype_bits(dq_tensor_dtype(tensor));
    size_t size = dq_tensor_size(tensor);
    unsigned used = (unsigned)(dq_tensor_count(tensor) % 8 * bits % 8);
    if (bits < 8 && size && used)
        ((uint8_t *)dq_tensor_mutable_data(tensor))[size - 1] &= (uint8_t)((1u << used) - 1);
}

static dq_status fill(const proto *p, dq_tensor *tensor, size_t entries, dq_error *err)
{
    if (!p->has_raw_data) {
        dq_status status = copy_field(p, entries, tensor, err);
        if (status == DQ_OK && dq_tensor_dtype(tensor) != DQ_STRING)
            clear_padding(tensor);
        return status;
    }
    if (p->raw_data.len)
        memcpy(dq_tensor_mutable_data(tensor), p->raw_data.data, p->raw_data.len);
    clear_padding(tensor);
    if (dq_tensor_dtype(tensor) != DQ_BOOL)
        return DQ_OK;
    const uint8_t *bytes = p->raw_data.data;
    for (size_t i = 0; i < p->raw_data.len; i++) {
        if (bytes[i] > 1)
            return io_fail(err, DQ_BAD_INPUT, "byte %zu of raw_data is %u, which is no bool", i, bytes[i]);
    }
    return DQ_OK;
}

static dq_status check_kind(const proto *p, dq_error *err)
{
    if (p->segment)
        return io_fail(err, DQ_UNSUPPORTED,
                       "holds a segment of a tensor or a sequence, expected a whole tensor");
    if (p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return io_fail(err, DQ_UNSUPPORTED, "keeps its data in another file, expected them inside");
    if (!p->has_data_type)
        return io_fail(err, DQ_BAD_INPUT, "has no element type, so that it is no TensorProto");
    return DQ_OK;
}

/* Checks that the field of the type has the amount of data of the shape. */
static dq_status check_data(const proto *p, dq_dtype dtype, size_t count, size_t *entries, dq_error *err)
{
    enum field own = field_of(dtype);
    char text[IO_TYPE_TEXT];
    io_type_text(dtype, p->n_dims, p->dims, text);
    for (int f = 0; f < F_COUNT; f++) {
        if (field_length(p, (enum field)f) && (p->has_raw_data || f != (int)own))
            return io_fail(err, DQ_BAD_INPUT, "has %s, expected the data of %s in %s alone", field_names[f],
                           text, p->has_raw_data && own != F_STRING ? "raw_data" : field_names[own]);
    }
    if (p->has_raw_data && dtype == DQ_STRING)
        return io_fail(err, DQ_BAD_INPUT, "has raw_data, expected strings in string_data");
    size_t requested = 0;
    bool fits =
        p->has_raw_data ? io_packed_size(dtype, count, &requested) : entries_wanted(dtype, count, &requested);
    size_t got = p->has_raw_data ? p->raw_data.len : field_length(p, own);
    if (!fits || got != requested)
        return io_fail(err, DQ_BAD_INPUT, "has %zu %s, expected %zu for %s", got,
                       p->has_raw_data ? "bytes of raw_data" : field_names[own], requested, text);
    *entries = requested;
    return DQ_OK;
}

static dq_status convert(const proto *p, uint64_t limit, dq_tensor **out, dq_error *err)
{
    dq_status status = check_kind(p, err);
    if (status != DQ_OK)
        return status;
    dq_dtype dtype =
        p->data_type > 0 && p->data_type < DQ_DTYPE_COUNT ? (dq_dtype)p->data_type : DQ_UNDEFINED;
    if (dtype == DQ_UNDEFINED)
        return io_fail(err, DQ_BAD_INPUT, "has element type %" PRId32 ", expected 1 to %d", p->data_type,
                       DQ_DTYPE_COUNT - 1);
    status = io_check_shape(dtype, p->n_dims, p->dims, limit, err);
    if (status != DQ_OK)
        return status;
    size_t count = 0, entries = 0;
    io_count(p->n_dims, p->dims, &count);
    status = check_data(p, dtype, count, &entries, err);
    if (status != DQ_OK)
        return status;
    dq_tensor *tensor = NULL;
    status = dq_tensor_create(dtype, p->n_dims, p->dims, &tensor, err);
    if (status == DQ_OK)
        status = fill(p, tensor, entries, err);
    if (status != DQ_OK) {
        dq_tensor_free(tensor);
        return status;
    }
    *out = tensor;
    return DQ_OK;
}

dq_status pb_read(const void *bytes, size_t size, uint64_t limit, char **name, dq_tensor **out, dq_error *err)
{
    proto *p = onnx__tensor_proto__unpack(NULL, size, bytes);
    if (!p)
        return io_fail(err, DQ_BAD_INPUT, "is no TensorProto: its %zu bytes cannot be parsed as one", size);
    const char *given = p->name ? p->name : "";
    char *copy = malloc(strlen(given) + 1);
    dq_status status = DQ_OK;
    if (!copy)
        status = io_fail(err, DQ_OUT_OF_MEMORY, "needs more memory than there is for its name");
    else
        status = convert(p, limit, out, err);
    if (status == DQ_OK) {
        strcpy(copy, given);
        *name = copy;
    } else {
        free(copy);
    }
    onnx__tensor_proto__free_unpacked(p, NULL);
    return status;
}
