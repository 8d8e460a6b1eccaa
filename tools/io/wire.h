/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of the protobuf wire format: for messages that the distribution's onnx.proto does not describe,
 * and for bytes that need not be a message. */
#ifndef DQ_TOOLS_IO_WIRE_H
#define DQ_TOOLS_IO_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wire_view {
    const uint8_t *data;
    size_t size;
} wire_view;

typedef struct wire_field {
    uint64_t number;
    wire_view bytes; /* Of a field with a length; else empty. */
} wire_field;

static inline bool wire_varint(wire_view *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->size; shift += 7) {
        uint8_t byte = *in->data++;
        in->size--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/** Removes the next field from the front of `in`. False at the end, and for malformed bytes. */
static inline bool wire_next(wire_view *in, wire_field *field)
{
    enum { VARINT = 0, FIXED_64 = 1, BYTES = 2, FIXED_32 = 5 };
    uint64_t key, size = 0;
    if (!wire_varint(in, &key))
        return false;
    *field = (wire_field){key >> 3, {NULL, 0}};
    switch (key & 7) {
    case VARINT:
        return wire_varint(in, &size);
    case FIXED_64:
        size = 8;
        break;
    case FIXED_32:
        size = 4;
        break;
    case BYTES:
        if (!wire_varint(in, &size))
            return false;
        break;
    default:
        return false;
    }
    if (size > in->size)
        return false;
    if ((key & 7) == BYTES)
        field->bytes = (wire_view){in->data, (size_t)size};
    in->data += size;
    in->size -= (size_t)size;
    return true;
}

#endif
