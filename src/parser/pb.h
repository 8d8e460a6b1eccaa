/* SPDX-License-Identifier: Apache-2.0 */
/* What the parser needs of protobuf-c: unpacking into bounded memory, and fields that the onnx.proto of the
 * build may be too old to know. */
#ifndef DQ_PARSER_PB_H
#define DQ_PARSER_PB_H

#include "base/arena.h"
#include "base/error.h"

#include "onnx.pb-c.h"

/** Fields that came after the oldest onnx.proto this library builds with (1.12). With a newer one protobuf-c
 * knows them, otherwise they are among the unknown fields; the functions below read both. */
enum { DQ_PB_NODE_OVERLOAD = 8, DQ_PB_FUNCTION_ATTRIBUTE_PROTO = 11, DQ_PB_FUNCTION_OVERLOAD = 13 };

typedef struct dq_pb_newer {
    const ProtobufCMessageDescriptor *message;
    unsigned id;
    const ProtobufCMessageDescriptor *child; /* NULL: a string */
} dq_pb_newer;

/** The row for a field of that list, NULL for any other. */
const dq_pb_newer *dq_pb_newer_field(const ProtobufCMessageDescriptor *message, unsigned id);

/** Memory that unpacked messages live in: an arena with a bound, freed as a whole. */
typedef struct dq_pb_memory {
    dq_arena arena;
    size_t limit;
    bool over; /* the bound, not the machine, ended it */
} dq_pb_memory;

/** Unpacks one message; never frees anything in `memory`. */
dq_status dq_pb_unpack(dq_pb_memory *memory, const ProtobufCMessageDescriptor *descriptor,
                       const uint8_t *bytes, size_t size, ProtobufCMessage **out, dq_error *err);

/** A string field that may be newer than the build's onnx.proto; "" when absent. Lives in `memory`. */
dq_status dq_pb_string(dq_pb_memory *memory, const ProtobufCMessage *message, unsigned id, const char **out,
                       dq_error *err);
/** The same for a repeated message field. */
dq_status dq_pb_messages(dq_pb_memory *memory, const ProtobufCMessage *message, unsigned id, size_t *count,
                         ProtobufCMessage ***out, dq_error *err);
/** Contents of the last length-delimited unknown field of that number; NULL when there is none. */
const uint8_t *dq_pb_unknown(const ProtobufCMessage *message, unsigned id, size_t *size);

/** protobuf-c gives NULL for a string that is absent. */
static inline const char *dq_pb_text(const char *string)
{
    return string ? string : "";
}

#endif
