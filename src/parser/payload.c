/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/payload.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const field_names[DQ_PAYLOAD_FIELDS] = {
    [DQ_PAYLOAD_FLOAT] = "float_data",   [DQ_PAYLOAD_INT32] = "int32_data",
    [DQ_PAYLOAD_STRING] = "string_data", [DQ_PAYLOAD_INT64] = "int64_data",
    [DQ_PAYLOAD_RAW] = "raw_data",       [DQ_PAYLOAD_DOUBLE] = "double_data",
    [DQ_PAYLOAD_UINT64] = "uint64_data",
};

/* The fields of a message with elements: per field, its entries (strings and numbers; bytes for raw_data). */
typedef struct payload {
    dq_wire message;
    size_t count[DQ_PAYLOAD_FIELDS];
    bool present[DQ_PAYLOAD_FIELDS];
    unsigned chunks[DQ_PAYLOAD_FIELDS]; /* Number of occurrences, counted up to 2. */
    const uint8_t *last[DQ_PAYLOAD_FIELDS];
} payload;

/* Bytes of an entry of the fixed-size fields; 0 for varints. */
static unsigned entry_bytes(unsigned field)
{
    return field == DQ_PAYLOAD_FLOAT ? 4 : field == DQ_PAYLOAD_DOUBLE ? 8 : 0;
}

/* Counts the entries of one occurrence of a field. False: it does not consist of whole entries. */
static bool count_entries(const dq_wire_field *field, size_t *count)
{
    unsigned bytes = entry_bytes(field->id);
    *count = 1;
    if (field->id == DQ_PAYLOAD_STRING || field->id == DQ_PAYLOAD_RAW) {
        if (field->id == DQ_PAYLOAD_RAW)
            *count = field->size;
        return field->type == DQ_WIRE_BYTES;
    }
    if (field->type != DQ_WIRE_BYTES)
        return field->type == (bytes == 4 ? DQ_WIRE_32BIT : bytes == 8 ? DQ_WIRE_64BIT : DQ_WIRE_VARINT);
    if (bytes) {
        *count = field->size / bytes;
        return field->size % bytes == 0;
    }
    size_t ends = 0;
    for (size_t i = 0; i < field->size; i++)
        ends += field->data[i] < 0x80;
    *count = ends;
    return field->size == 0 || field->data[field->size - 1] < 0x80;
}

static dq_status survey(dq_wire message, payload *p, dq_error *err)
{
    *p = (payload){.message = message};
    for (dq_wire w = message; w.at < w.end;) {
        dq_wire_field field;
        size_t count;
        DQ_TRY(dq_wire_next(&w, message.at, &field, err));
        if (field.id >= DQ_PAYLOAD_FIELDS || !field_names[field.id])
            continue;
        if (!count_entries(&field, &count))
            return dq_fail(err, DQ_BAD_MODEL, "has damaged %s", field_names[field.id]);
        p->present[field.id] = p->present[field.id] || count > 0 || field.id == DQ_PAYLOAD_RAW;
        /* A second raw_data replaces the first, as for any singular field. */
        p->count[field.id] = field.id == DQ_PAYLOAD_RAW ? count : p->count[field.id] + count;
        p->chunks[field.id] += p->chunks[field.id] < 2;
        p->last[field.id] = field.data;
    }
    return DQ_OK;
}

dq_status dq_payload_present(dq_wire message, bool *present, dq_error *err)
{
    payload p;
    DQ_TRY(survey(message, &p, err));
    *present = false;
    for (unsigned i = 0; i < DQ_PAYLOAD_FIELDS; i++)
        *present = *present || p.count[i] > 0;
    return DQ_OK;
}

/* "float[2,3]", for messages. */
static const char *tensor_text(const dq_tensor *t, char buffer[DQ_SHAPE_TEXT + 32])
{
    char shape[DQ_SHAPE_TEXT];
    snprintf(buffer, DQ_SHAPE_TEXT + 32, "%s%s", dq_dtype_name(t->dtype),
             dq_shape_text(t->rank, t->dims, shape));
    return buffer;
}

/* ---- Raw bytes ---------------------------------------------------------------------------------------- */

static bool little_endian(void)
{
    const union {
        uint16_t number;
        uint8_t bytes[2];
    } probe = {.number = 1};
    return probe.bytes[0] == 1;
}

/* Copies little-endian data; only this function depends on the byte order. `word` is the unit that is
 * swapped: a complex number is two words. */
static void copy_little_endian(uint8_t *to, const uint8_t *from, size_t size, unsigned word)
{
    if (little_endian() || word == 1) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i += word)
        for (unsigned k = 0; k < word; k++)
            to[i + k] = from[i + word - 1 - k];
}

static unsigned word_bytes(dq_dtype dtype)
{
    const dq_dtype_row *row = dq_dtype_get(dtype);
    unsigned bytes = row->bits < 8 ? 1 : row->bits / 8u;
    return row->cls == DQ_CLASS_COMPLEX ? bytes / 2 : bytes;
}

static dq_status check_bools(const dq_tensor *t, dq_error *err)
{
    const uint8_t *bytes = t->data;
    for (size_t i = 0; i < t->count; i++)
        if (bytes[i] > 1)
            return dq_fail(err, DQ_BAD_MODEL, "has %u as element %zu of type bool, expected 0 or 1", bytes[i],
                           i);
    return DQ_OK;
}

static dq_status set_bytes(dq_arena *arena, const uint8_t *bytes, dq_tensor *t, dq_error *err)
{
    unsigned word = word_bytes(t->dtype);
    bool aligned = (uintptr_t)bytes % dq_dtype_get(t->dtype)->align == 0;
    if (aligned && (little_endian() || word == 1)) {
        t->data = (void *)(uintptr_t)bytes; /* Never written: constants are const everywhere. */
        t->unaligned = false;
    } else if (t->unaligned && little_endian()) {
        t->data = (void *)(uintptr_t)bytes;
    } else {
        t->unaligned = false;
        t->data = dq_arena_alloc(arena, t->size ? t->size : 1, DQ_ALIGN);
        if (!t->data)
            return dq_no_memory(err, t->size, "a weight");
        copy_little_endian(t->data, bytes, t->size, word);
    }
    return t->dtype == DQ_BOOL ? check_bools(t, err) : DQ_OK;
}

dq_status dq_payload_bytes(dq_arena *arena, const uint8_t *bytes, size_t size, const char *what, dq_tensor *t,
                           dq_error *err)
{
    char text[DQ_SHAPE_TEXT + 32];
    if (t->dtype == DQ_STRING)
        return dq_fail(err, DQ_BAD_MODEL, "has strings as %s, expected string_data", what);
    if (size != t->size)
        return dq_fail(err, DQ_BAD_MODEL, "has %zu bytes of %s, expected %zu (%s)", size, what, t->size,
                       tensor_text(t, text));
    return set_bytes(arena, bytes, t, err);
}

/* ---- Numbers one by one ------------------------------------------------------------------------------- */

typedef dq_status (*store_fn)(dq_tensor *t, size_t i, uint64_t bits, dq_error *err);

static dq_status out_of_range(const dq_tensor *t, size_t i, int64_t value, int64_t min, int64_t max,
                              dq_error *err)
{
    return dq_fail(err, DQ_BAD_MODEL,
                   "has %" PRId64 " as entry %zu of int32_data, expected %" PRId64 " to %" PRId64 " (%s)",
                   value, i, min, max, dq_dtype_name(t->dtype));
}

/* Stores an entry of int32_data: a number for integers, the bit pattern for floats, a byte of several
 * elements for 4- and 2-bit types, one element for 6-bit types. A bit pattern may be sign-extended. */
static dq_status store_int32(dq_tensor *t, size_t i, uint64_t bits, dq_error *err)
{
    int64_t value = (int32_t)(uint32_t)bits;
    const dq_dtype_row *row = dq_dtype_get(t->dtype);
    unsigned width = row->bits < 6 ? 8 : row->bits;
    int64_t max = (INT64_C(1) << width) - 1, min = width == 6 ? 0 : -(INT64_C(1) << (width - 1));
    if (row->cls == DQ_CLASS_BOOL)
        min = 0, max = 1;
    else if (row->cls == DQ_CLASS_INT && row->bits >= 8)
        max = row->max;
    if (value < min || value > max)
        return out_of_range(t, i, value, min, max, err);
    dq_put_bits(t->data, width, i, (uint64_t)value & ((UINT64_C(1) << width) - 1));
    return DQ_OK;
}

static dq_status store_int64(dq_tensor *t, size_t i, uint64_t bits, dq_error *err)
{
    (void)err;
    ((uint64_t *)t->data)[i] = bits;
    return DQ_OK;
}

static dq_status store_uint64(dq_tensor *t, size_t i, uint64_t bits, dq_error *err)
{
    if (t->dtype == DQ_UINT64)
        return store_int64(t, i, bits, err);
    if (bits > UINT32_MAX)
        return dq_fail(err, DQ_BAD_MODEL,
                       "has %" PRIu64 " as entry %zu of uint64_data, expected at most %" PRIu32 " (uint32)",
                       bits, i, UINT32_MAX);
    ((uint32_t *)t->data)[i] = (uint32_t)bits;
    return DQ_OK;
}

/* The field for elements of the tensor's type, and its number of entries. */
static unsigned field_of(const dq_tensor *t, size_t *entries)
{
    *entries = t->count;
    switch (t->dtype) {
    case DQ_STRING:
        return DQ_PAYLOAD_STRING;
    case DQ_INT64:
        return DQ_PAYLOAD_INT64;
    case DQ_UINT32:
    case DQ_UINT64:
        return DQ_PAYLOAD_UINT64;
    case DQ_FLOAT:
        return DQ_PAYLOAD_FLOAT;
    case DQ_DOUBLE:
        return DQ_PAYLOAD_DOUBLE;
    case DQ_COMPLEX64: /* Real and imaginary part: t->size does not overflow, so twice the count does not. */
        *entries = 2 * t->count;
        return DQ_PAYLOAD_FLOAT;
    case DQ_COMPLEX128:
        *entries = 2 * t->count;
        return DQ_PAYLOAD_DOUBLE;
    default:
        if (dq_dtype_get(t->dtype)->bits < 6)
            *entries = t->size;
        return DQ_PAYLOAD_INT32;
    }
}

static dq_status read_varints(const payload *p, unsigned id, dq_tensor *t, dq_error *err)
{
    store_fn store = id == DQ_PAYLOAD_INT32   ? store_int32
                     : id == DQ_PAYLOAD_INT64 ? store_int64
                                              : store_uint64;
    size_t i = 0;
    for (dq_wire w = p->message; w.at < w.end;) {
        dq_wire_field field;
        DQ_TRY(dq_wire_next(&w, p->message.at, &field, err));
        if (field.id != id)
            continue;
        for (dq_wire in = {field.data, field.end}; in.at < in.end; i++) {
            uint64_t bits;
            if (!dq_wire_varint(&in, &bits))
                return dq_fail(err, DQ_BAD_MODEL, "has damaged %s", field_names[id]);
            DQ_TRY(store(t, i, bits, err));
        }
    }
    return t->dtype == DQ_BOOL ? check_bools(t, err) : DQ_OK;
}

/* Reads strings; they point into the message. */
static dq_status read_strings(const payload *p, dq_tensor *t, dq_error *err)
{
    dq_string *strings = t->data;
    for (dq_wire w = p->message; w.at < w.end;) {
        dq_wire_field field;
        DQ_TRY(dq_wire_next(&w, p->message.at, &field, err));
        if (field.id == DQ_PAYLOAD_STRING)
            *strings++ = (dq_string){(const char *)field.data, field.size};
    }
    return DQ_OK;
}

/* Reads float_data and double_data with several occurrences. */
static dq_status read_fixed(const payload *p, unsigned id, dq_tensor *t, dq_error *err)
{
    uint8_t *to = t->data;
    for (dq_wire w = p->message; w.at < w.end;) {
        dq_wire_field field;
        DQ_TRY(dq_wire_next(&w, p->message.at, &field, err));
        if (field.id != id)
            continue;
        copy_little_endian(to, field.data, field.size, entry_bytes(id));
        to += field.size;
    }
    return DQ_OK;
}

static dq_status no_mixture(const payload *p, unsigned expected, const dq_tensor *t, dq_error *err)
{
    for (unsigned i = 0; i < DQ_PAYLOAD_FIELDS; i++) {
        if (i == expected || i == DQ_PAYLOAD_RAW || p->count[i] == 0)
            continue;
        if (p->count[DQ_PAYLOAD_RAW] > 0)
            return dq_fail(err, DQ_BAD_MODEL, "has both raw_data and %s, expected one of them",
                           field_names[i]);
        return dq_fail(err, DQ_BAD_MODEL, "has elements of type %s in %s, expected %s or raw_data",
                       dq_dtype_name(t->dtype), field_names[i], field_names[expected]);
    }
    if (p->count[DQ_PAYLOAD_RAW] > 0 && p->count[expected] > 0)
        return dq_fail(err, DQ_BAD_MODEL, "has both raw_data and %s, expected one of them",
                       field_names[expected]);
    return DQ_OK;
}

dq_status dq_payload_read(dq_arena *arena, dq_wire message, dq_tensor *t, dq_error *err)
{
    payload p;
    size_t entries;
    char text[DQ_SHAPE_TEXT + 32];
    unsigned id = field_of(t, &entries);
    DQ_TRY(survey(message, &p, err));
    DQ_TRY(no_mixture(&p, id, t, err));
    if (p.present[DQ_PAYLOAD_RAW] && p.count[id] == 0)
        return dq_payload_bytes(arena, p.last[DQ_PAYLOAD_RAW], p.count[DQ_PAYLOAD_RAW], "raw data", t, err);
    if (p.count[id] != entries)
        return dq_fail(err, DQ_BAD_MODEL, "has %zu entries of %s, expected %zu (%s)", p.count[id],
                       field_names[id], entries, tensor_text(t, text));
    if (entry_bytes(id) && p.chunks[id] == 1)
        return set_bytes(arena, p.last[id], t, err);
    t->unaligned = false;
    t->data = dq_arena_alloc(arena, t->size ? t->size : 1, DQ_ALIGN);
    if (!t->data)
        return dq_no_memory(err, t->size, "a weight");
    if (id == DQ_PAYLOAD_STRING)
        return read_strings(&p, t, err);
    return entry_bytes(id) ? read_fixed(&p, id, t, err) : read_varints(&p, id, t, err);
}
