/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's use of protobuf-c: unpacking into bounded memory, and access to fields that the build's
 * onnx.proto may be too old to have. */
#ifndef DQ_PARSER_PB_H
#define DQ_PARSER_PB_H

#include "base/arena.h"
#include "base/error.h"

#include "onnx.pb-c.h"

/** Fields that are newer than the oldest onnx.proto with which this library builds (1.12). protobuf-c knows
 * them with a newer onnx.proto; otherwise they are unknown fields. The functions below read both. */
enum { DQ_PB_NODE_OVERLOAD = 8, DQ_PB_FUNCTION_ATTRIBUTE_PROTO = 11, DQ_PB_FUNCTION_OVERLOAD = 13 };

typedef struct dq_pb_newer {
    const ProtobufCMessageDescriptor *message;
    unsigned id;
    const ProtobufCMessageDescriptor *child; /* NULL: a string. */
} dq_pb_newer;

/** The row for a field of that list; NULL for any other. */
const dq_pb_newer *dq_pb_newer_field(const ProtobufCMessageDescriptor *message, unsigned id);

/** Memory of unpacked messages: an arena with a limit, freed as a whole. */
typedef struct dq_pb_memory {
    dq_arena arena;
    size_t limit;
    bool over; /* The limit was exceeded; memory of the machine did not run out. */
} dq_pb_memory;

/** Unpacks one message. Never frees anything in `memory`. */
dq_status dq_pb_unpack(dq_pb_memory *memory, const ProtobufCMessageDescriptor *descriptor,
                       const uint8_t *bytes, size_t size, ProtobufCMessage **out, dq_error *err);

/** Reads a string field that may be newer than the build's onnx.proto; "" if absent. It lives in `memory`. */
dq_status dq_pb_string(dq_pb_memory *memory, const ProtobufCMessage *message, unsigned id, const char **out,
                       dq_error *err);
/** The same for a repeated message field. */
dq_status dq_pb_messages(dq_pb_memory *memory, const ProtobufCMessage *message, unsigned id, size_t *count,
                         ProtobufCMessage ***out, dq_error *err);
/** Contents of the last length-delimited unknown field of that number; NULL if there is none. */
const uint8_t *dq_pb_unknown(const ProtobufCMessage *message, unsigned id, size_t *size);

/** protobuf-c represents an absent string by NULL. */
static inline const char *dq_pb_text(const char *string)
{
    return string ? string : "";
}

#endif
