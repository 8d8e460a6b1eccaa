/* SPDX-License-Identifier: Apache-2.0 */
/* Converts TensorProto and SparseTensorProto to tensors. */
#include "base/checked.h"
#include "parser/external.h"
#include "parser/payload.h"
#include "parser/reader.h"
#include "parser/skeleton.h"

#include <inttypes.h>
#include <string.h>

/* The original message in the model file, located by the skeleton. */
static dq_wire original(const dq_reader *r, const Onnx__TensorProto *proto)
{
    size_t size = 0;
    uint64_t origin[2] = {0, 0};
    const uint8_t *note = dq_pb_unknown(&proto->base, DQ_FIELD_ORIGIN, &size);
    if (note && size == sizeof origin)
        memcpy(origin, note, sizeof origin);
    return (dq_wire){r->bytes + origin[0], r->bytes + origin[0] + origin[1]};
}

/* ---- External data ------------------------------------------------------------------------------------ */

typedef struct external_entry {
    const char *location;
    uint64_t offset, length;
    bool has_length;
} external_entry;

static dq_status read_number(const char *key, const char *text, uint64_t *out, dq_error *err)
{
    uint64_t value = 0;
    bool good = *text != '\0';
    for (const char *p = text; *p && good; p++)
        good = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(value, 10u, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    if (!good)
        return dq_fail(err, DQ_BAD_MODEL, "has '%s' as %s of its external data, expected a number of bytes",
                       text, key);
    *out = value;
    return DQ_OK;
}

static dq_status read_entry(const Onnx__TensorProto *proto, external_entry *out, dq_error *err)
{
    *out = (external_entry){0};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = dq_pb_text(proto->external_data[i]->key);
        const char *value = dq_pb_text(proto->external_data[i]->value);
        if (strcmp(key, "location") == 0) {
            out->location = value;
        } else if (strcmp(key, "offset") == 0) {
            DQ_TRY(read_number(key, value, &out->offset, err));
        } else if (strcmp(key, "length") == 0) {
            DQ_TRY(read_number(key, value, &out->length, err));
            out->has_length = true;
        }
    }
    if (!out->location)
        return dq_fail(err, DQ_BAD_MODEL, "has external data without a location");
    return DQ_OK;
}

static dq_status read_external(dq_reader *r, const Onnx__TensorProto *proto, dq_tensor *t, dq_error *err)
{
    external_entry entry;
    const dq_file *file = NULL;
    bool also_inside = false;
    DQ_TRY(dq_payload_present(original(r, proto), &also_inside, err));
    if (also_inside)
        return dq_fail(err, DQ_BAD_MODEL, "has its data both in the model and in an external file");
    DQ_TRY(read_entry(proto, &entry, err));
    uint64_t length = entry.has_length ? entry.length : t->size;
    if (length != t->size) /* Reports the error before any file is opened. */
        return dq_payload_bytes(&r->ir->arena, NULL, (size_t)length, "external data", t, err);
    DQ_TRY(dq_externals_map(r->externals, entry.location, &file, err));
    if (entry.offset > file->size || length > file->size - entry.offset)
        return dq_fail(err, DQ_BAD_MODEL,
                       "wants %" PRIu64 " bytes at offset %" PRIu64
                       " of external data '%s', which has %zu bytes",
                       length, entry.offset, entry.location, file->size);
    DQ_TRY(
        dq_payload_bytes(&r->ir->arena, file->bytes + entry.offset, (size_t)length, "external data", t, err));
    t->mapped = dq_file_holds(file, t->data);
    return DQ_OK;
}

/* ---- Dense -------------------------------------------------------------------------------------------- */

static dq_status read_head(dq_reader *r, const Onnx__TensorProto *proto, dq_tensor *t, dq_error *err)
{
    if (!dq_dtype_valid(proto->data_type))
        return dq_fail(err, DQ_BAD_MODEL,
                       "has element type %" PRId32 ", which is not one of ONNX's (1 to %d)", proto->data_type,
                       DQ_DTYPE_COUNT - 1);
    if (proto->segment)
        return dq_fail(err, DQ_UNSUPPORTED, "is one segment of a tensor, expected a whole one");
    return dq_tensor_set_shape(t, (dq_dtype)proto->data_type, proto->n_dims, proto->dims,
                               r->ir->limits.tensor_bytes, DQ_BAD_MODEL, err);
}

static dq_status read_tensor(dq_reader *r, const Onnx__TensorProto *proto, bool may_be_unaligned,
                             const dq_tensor **out, dq_error *err)
{
    enum { WORTH_LEAVING = 1 << 16 };
    dq_tensor *t = DQ_NEW(&r->ir->arena, dq_tensor);
    if (!t)
        return dq_no_memory(err, sizeof *t, "a tensor");
    DQ_TRY(read_head(r, proto, t, err));
    /* Vectors are read in many functions, which need aligned data. */
    t->unaligned = may_be_unaligned && r->file && t->rank > 1 && t->size >= WORTH_LEAVING;
    if (proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        DQ_TRY(read_external(r, proto, t, err));
    else
        DQ_TRY(dq_payload_read(&r->ir->arena, original(r, proto), t, err));
    if (r->file && dq_file_holds(r->file, t->data))
        t->mapped = true;
    *out = t;
    return DQ_OK;
}

dq_status dq_proto_tensor(dq_reader *r, const Onnx__TensorProto *proto, const dq_tensor **out, dq_error *err)
{
    return read_tensor(r, proto, false, out, err);
}

dq_status dq_proto_initializer(dq_reader *r, const Onnx__TensorProto *proto, const dq_tensor **out,
                               dq_error *err)
{
    return read_tensor(r, proto, true, out, err);
}

/* ---- Sparse ------------------------------------------------------------------------------------------- */

/* The position of value i in the dense tensor. Rows of [NNZ, rank] ascend as their positions do. */
static dq_status position(const dq_tensor *indices, const dq_tensor *dense, size_t i, size_t *out,
                          dq_error *err)
{
    const int64_t *index = indices->data;
    if (indices->rank == 1) {
        if (index[i] < 0 || (uint64_t)index[i] >= dense->count)
            return dq_fail(err, DQ_BAD_MODEL, "has sparse index %" PRId64 " at %zu, expected 0 to %zu",
                           index[i], i, dense->count - 1);
        *out = (size_t)index[i];
        return DQ_OK;
    }
    size_t at = 0;
    for (size_t d = 0; d < dense->rank; d++) {
        int64_t k = index[i * dense->rank + d];
        if (k < 0 || k >= dense->dims[d])
            return dq_fail(err, DQ_BAD_MODEL,
                           "has sparse index %" PRId64 " at %zu for dimension %zu, expected 0 to %" PRId64, k,
                           i, d, dense->dims[d] - 1);
        at = at * (size_t)dense->dims[d] + (size_t)k;
    }
    *out = at;
    return DQ_OK;
}

static void copy_element(dq_tensor *dense, size_t to, const dq_tensor *values, size_t from)
{
    unsigned bits = dq_dtype_get(dense->dtype)->bits;
    if (dense->dtype == DQ_STRING)
        dq_data(dense, dq_string)[to] = dq_data(values, dq_string)[from];
    else if (bits <= 64)
        dq_put_bits(dense->data, bits, to, dq_get_bits(values->data, bits, from));
    else
        memcpy((char *)dense->data + to * (bits / 8), (const char *)values->data + from * (bits / 8),
               bits / 8);
}

static dq_status check_sparse(const dq_tensor *values, const dq_tensor *indices, const dq_tensor *dense,
                              dq_error *err)
{
    char text[DQ_SHAPE_TEXT];
    bool linear = indices->rank == 1;
    if (values->rank != 1)
        return dq_fail(err, DQ_BAD_MODEL, "has sparse values of shape %s, expected one dimension",
                       dq_shape_text(values->rank, values->dims, text));
    if (indices->dtype != DQ_INT64)
        return dq_fail(err, DQ_BAD_MODEL, "has sparse indices of type %s, expected int64",
                       dq_dtype_name(indices->dtype));
    if ((!linear && indices->rank != 2) || indices->dims[0] != values->dims[0] ||
        (!linear && indices->dims[1] != (int64_t)dense->rank))
        return dq_fail(
            err, DQ_BAD_MODEL, "has sparse indices of shape %s, expected [%zu] or [%zu,%" PRIu32 "]",
            dq_shape_text(indices->rank, indices->dims, text), values->count, values->count, dense->rank);
    if (values->count > dense->count)
        return dq_fail(err, DQ_BAD_MODEL, "has %zu sparse values for %zu elements", values->count,
                       dense->count);
    return DQ_OK;
}

static dq_status fill_dense(const dq_tensor *values, const dq_tensor *indices, dq_tensor *dense,
                            dq_error *err)
{
    size_t before = 0;
    for (size_t i = 0; i < values->count; i++) {
        size_t at = 0;
        DQ_TRY(position(indices, dense, i, &at, err));
        if (i && at <= before)
            return dq_fail(err, DQ_BAD_MODEL, "has sparse indices that do not ascend at %zu", i);
        copy_element(dense, at, values, i);
        before = at;
    }
    return DQ_OK;
}

dq_status dq_proto_sparse(dq_reader *r, const Onnx__SparseTensorProto *proto, const dq_tensor **out,
                          dq_error *err)
{
    const dq_tensor *values = NULL, *indices = NULL;
    dq_tensor shape, *dense = NULL;
    if (!proto->values || !proto->indices)
        return dq_fail(err, DQ_BAD_MODEL, "is a sparse tensor without %s",
                       proto->values ? "indices" : "values");
    DQ_TRY(dq_proto_tensor(r, proto->values, &values, err));
    DQ_TRY(dq_proto_tensor(r, proto->indices, &indices, err));
    DQ_TRY(dq_tensor_set_shape(&shape, values->dtype, proto->n_dims, proto->dims, r->ir->limits.tensor_bytes,
                               DQ_BAD_MODEL, err));
    DQ_TRY(check_sparse(values, indices, &shape, err));
    /* A few bytes of a file can request much memory here, so their sum is limited, too. */
    if (__builtin_add_overflow(r->dense_bytes, shape.size, &r->dense_bytes) ||
        r->dense_bytes > r->ir->limits.session_bytes)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "brings sparse tensors to %" PRIu64 " bytes in all, over the limit of %" PRIu64,
                       r->dense_bytes, r->ir->limits.session_bytes);
    DQ_TRY(dq_tensor_new(&r->ir->arena, values->dtype, proto->n_dims, proto->dims, r->ir->limits.tensor_bytes,
                         &dense, err));
    DQ_TRY(fill_dense(values, indices, dense, err));
    *out = dense;
    return DQ_OK;
}
