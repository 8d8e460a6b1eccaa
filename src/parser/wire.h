/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf wire format, as far as it has to be read without protobuf-c: field by field over bytes that
 * stay where they are. */
#ifndef DQ_PARSER_WIRE_H
#define DQ_PARSER_WIRE_H

#include "base/error.h"

typedef enum dq_wire_type {
    DQ_WIRE_VARINT = 0,
    DQ_WIRE_64BIT = 1,
    DQ_WIRE_BYTES = 2, /* strings, bytes, messages, packed lists */
    DQ_WIRE_32BIT = 5
} dq_wire_type;

/** What is left to read of a message. */
typedef struct dq_wire {
    const uint8_t *at, *end;
} dq_wire;

typedef struct dq_wire_field {
    uint32_t id;
    dq_wire_type type;
    const uint8_t *begin; /* of the tag */
    const uint8_t *data;  /* of the contents: after the tag and, for DQ_WIRE_BYTES, the length */
    size_t size;          /* of the contents */
    const uint8_t *end;
} dq_wire_field;

/** One varint; false when the bytes end before it does or it has over ten bytes. */
bool dq_wire_varint(dq_wire *w, uint64_t *value);

/** The next field, or DQ_BAD_MODEL with a sentence that counts bytes from `origin`. Not to be called when
 * w->at == w->end. */
dq_status dq_wire_next(dq_wire *w, const uint8_t *origin, dq_wire_field *field, dq_error *err);

#endif
