/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/wire.h"

#include <inttypes.h>

enum {
    MAX_FIELD_ID = (1 << 29) - 1,
    MAX_HEAD = 5 /* Bytes of a tag or a length: the limit of protobuf-c. */
};

bool dq_wire_varint(dq_wire *w, uint64_t *value)
{
    uint64_t bits = 0;
    const uint8_t *p = w->at;
    for (unsigned shift = 0; shift < 70 && p < w->end; shift += 7) {
        uint8_t byte = *p++;
        bits |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            w->at = p;
            *value = bits;
            return true;
        }
    }
    return false;
}

static dq_status cut_off(const dq_wire *w, const uint8_t *origin, uint64_t expected, dq_error *err)
{
    return dq_fail(err, DQ_BAD_MODEL,
                   "is damaged or cut off: %" PRIu64 " bytes needed at byte %td, %td left in their message",
                   expected, w->at - origin, w->end - w->at);
}

static dq_status bad_number(const dq_wire *w, const uint8_t *origin, dq_error *err)
{
    return dq_fail(err, DQ_BAD_MODEL, "is damaged or cut off: no whole number at byte %td", w->at - origin);
}

dq_status dq_wire_next(dq_wire *w, const uint8_t *origin, dq_wire_field *field, dq_error *err)
{
    uint64_t tag = 0, value = 0;
    field->begin = w->at;
    if (!dq_wire_varint(w, &tag) || w->at - field->begin > MAX_HEAD)
        return bad_number(w, origin, err);
    if (tag >> 3 == 0 || tag >> 3 > MAX_FIELD_ID)
        return dq_fail(err, DQ_BAD_MODEL,
                       "is no ONNX model or is damaged: field number %" PRIu64 " at byte %td", tag >> 3,
                       field->begin - origin);
    field->id = (uint32_t)(tag >> 3);
    field->data = w->at;
    switch (tag & 7) {
    case DQ_WIRE_VARINT:
        if (!dq_wire_varint(w, &value))
            return bad_number(w, origin, err);
        value = (uint64_t)(w->at - field->data);
        w->at = field->data;
        break;
    case DQ_WIRE_64BIT:
        value = 8;
        break;
    case DQ_WIRE_BYTES:
        if (!dq_wire_varint(w, &value) || w->at - field->data > MAX_HEAD)
            return bad_number(w, origin, err);
        field->data = w->at;
        break;
    case DQ_WIRE_32BIT:
        value = 4;
        break;
    default:
        return dq_fail(err, DQ_BAD_MODEL, "is no ONNX model or is damaged: wire type %u at byte %td",
                       (unsigned)(tag & 7), field->begin - origin);
    }
    if (value > (uint64_t)(w->end - w->at))
        return cut_off(w, origin, value, err);
    field->type = (dq_wire_type)(tag & 7);
    field->size = (size_t)value;
    w->at += field->size;
    field->end = w->at;
    return DQ_OK;
}
