/* SPDX-License-Identifier: Apache-2.0 */
/* A reader of the protobuf wire format, for data that protobuf-c does not read. It goes field by field and
 * copies nothing. */
#ifndef DQ_PARSER_WIRE_H
#define DQ_PARSER_WIRE_H

#include "base/error.h"

typedef enum dq_wire_type {
    DQ_WIRE_VARINT = 0,
    DQ_WIRE_64BIT = 1,
    DQ_WIRE_BYTES = 2, /* Strings, bytes, messages, packed lists. */
    DQ_WIRE_32BIT = 5
} dq_wire_type;

/** The rest of a message. */
typedef struct dq_wire {
    const uint8_t *at, *end;
} dq_wire;

typedef struct dq_wire_field {
    uint32_t id;
    dq_wire_type type;
    const uint8_t *begin; /* Begin of the tag. */
    const uint8_t *data;  /* Begin of the contents: after the tag and, for DQ_WIRE_BYTES, the length. */
    size_t size;          /* Size of the contents. */
    const uint8_t *end;
} dq_wire_field;

/** Reads one varint. False: the data ends inside it, or it has more than ten bytes. */
bool dq_wire_varint(dq_wire *w, uint64_t *value);

/** Reads the next field. DQ_BAD_MODEL, with a message that counts bytes from `origin`. Requires w->at !=
 * w->end. */
dq_status dq_wire_next(dq_wire *w, const uint8_t *origin, dq_wire_field *field, dq_error *err);

#endif
