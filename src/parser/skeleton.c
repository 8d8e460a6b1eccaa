/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/skeleton.h"

#include "base/checked.h"
#include "parser/pb.h"
#include "parser/wire.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Limit of nested messages, independent of limits->nesting: protobuf-c and this walk recurse once per level.
 * A graph in a graph takes three levels. */
enum { MAX_DEPTH = 256 };

/* Lengths in the skeleton are varints of five bytes, because they are written after their message. */
enum { LENGTH_BYTES = 5 };

typedef struct walk {
    const uint8_t *origin;
    const dq_limits *limits;
    uint64_t nodes;
    uint8_t *out;
    size_t size, capacity;
} walk;

static dq_status append(walk *w, const void *bytes, size_t size, dq_error *err)
{
    size_t expected;
    if (!dq_add_size(w->size, size, &expected) || expected > INT_MAX)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "has over 2 GiB of structure, not counting weights: more than can be read");
    if (expected > w->capacity) {
        size_t capacity = expected + expected / 2 + 1024;
        uint8_t *grown = realloc(w->out, capacity);
        if (!grown)
            return dq_no_memory(err, capacity, "the structure of a model");
        w->out = grown;
        w->capacity = capacity;
    }
    if (size)
        memcpy(w->out + w->size, bytes, size);
    w->size = expected;
    return DQ_OK;
}

static void put_length(uint8_t *at, size_t length)
{
    for (int i = 0; i < LENGTH_BYTES - 1; i++, length >>= 7)
        at[i] = (uint8_t)(length & 0x7F) | 0x80;
    at[LENGTH_BYTES - 1] = (uint8_t)length;
}

/* Fields that the walk drops: one bit per field number. */
typedef struct dropped {
    const ProtobufCMessageDescriptor *message;
    uint64_t fields;
} dropped;

#define BIT(id) (UINT64_C(1) << (id))

static bool is_dropped(const ProtobufCMessageDescriptor *message, unsigned id)
{
    static const dropped table[] = {
        /* Raw, typed and string data: read from the original. */
        {&onnx__tensor_proto__descriptor,
         BIT(4) | BIT(5) | BIT(6) | BIT(7) | BIT(9) | BIT(10) | BIT(11) | BIT(12) | BIT(16)},
        /* training_info and device configurations; below the model also doc_string and metadata_props. */
        {&onnx__model_proto__descriptor, BIT(20) | BIT(26)},
        {&onnx__graph_proto__descriptor, BIT(10) | BIT(14) | BIT(16)},
        {&onnx__node_proto__descriptor, BIT(6) | BIT(9) | BIT(10)},
        {&onnx__attribute_proto__descriptor, BIT(13)},
        {&onnx__value_info_proto__descriptor, BIT(3) | BIT(4)},
        {&onnx__function_proto__descriptor, BIT(8) | BIT(12) | BIT(14)},
        {&onnx__type_proto__descriptor, BIT(6) | BIT(7)},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].message == message)
            return id < 64 && (table[i].fields & BIT(id)) != 0;
    return false;
}

/* The definition of a field in the build's onnx.proto or in the list of newer fields. */
typedef struct known_field {
    const char *name;
    const ProtobufCMessageDescriptor *child; /* NULL: not a message. */
    ProtobufCType type;
    bool repeated, oneof;
} known_field;

static bool look_up(const ProtobufCMessageDescriptor *message, unsigned id, known_field *out)
{
    if (is_dropped(message, id))
        return false;
    const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(message, id);
    if (field) {
        bool nested = field->type == PROTOBUF_C_TYPE_MESSAGE;
        *out = (known_field){field->name, nested ? field->descriptor : NULL, field->type,
                             field->label == PROTOBUF_C_LABEL_REPEATED,
                             (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0};
        return true;
    }
    const dq_pb_newer *newer = dq_pb_newer_field(message, id);
    if (newer)
        *out = (known_field){newer->child ? "attribute_proto" : "overload", newer->child,
                             newer->child ? PROTOBUF_C_TYPE_MESSAGE : PROTOBUF_C_TYPE_STRING,
                             newer->child != NULL, false};
    return newer != NULL;
}

static dq_wire_type wire_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return DQ_WIRE_32BIT;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return DQ_WIRE_64BIT;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return DQ_WIRE_BYTES;
    default:
        return DQ_WIRE_VARINT;
    }
}

/* Whether a packed list consists of whole numbers. */
static bool packed_well(dq_wire_type element, const dq_wire_field *field)
{
    if (element == DQ_WIRE_32BIT)
        return field->size % 4 == 0;
    if (element == DQ_WIRE_64BIT)
        return field->size % 8 == 0;
    dq_wire w = {field->data, field->end};
    uint64_t value;
    while (w.at < w.end)
        if (!dq_wire_varint(&w, &value))
            return false;
    return true;
}

static dq_status check_plain(const walk *w, const known_field *known, const dq_wire_field *field,
                             dq_error *err)
{
    dq_wire_type expected = wire_of(known->type);
    bool packed = known->repeated && expected != DQ_WIRE_BYTES && field->type == DQ_WIRE_BYTES;
    if ((field->type != expected && !packed) || (packed && !packed_well(expected, field)))
        return dq_fail(err, DQ_BAD_MODEL,
                       "is no ONNX model or is damaged: field '%s' at byte %td is not what its type says",
                       known->name, field->begin - w->origin);
    if (known->type == PROTOBUF_C_TYPE_STRING && memchr(field->data, 0, field->size))
        return dq_fail(err, DQ_BAD_MODEL, "has a zero byte inside the string '%s' at byte %td", known->name,
                       field->begin - w->origin);
    return DQ_OK;
}

static dq_status walk_message(walk *w, const ProtobufCMessageDescriptor *message, dq_wire in, unsigned depth,
                              unsigned graphs, dq_error *err);

static dq_status walk_child(walk *w, const known_field *known, const dq_wire_field *field, unsigned depth,
                            unsigned graphs, dq_error *err)
{
    if (field->type != DQ_WIRE_BYTES)
        return dq_fail(err, DQ_BAD_MODEL,
                       "is no ONNX model or is damaged: field '%s' at byte %td is not a message", known->name,
                       field->begin - w->origin);
    if (depth + 1 > MAX_DEPTH)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "nests its parts deeper than %d levels", MAX_DEPTH);
    if (known->child == &onnx__graph_proto__descriptor && ++graphs > w->limits->nesting + 1)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "nests graphs deeper than the limit of %" PRIu32 " levels",
                       w->limits->nesting);
    if (known->child == &onnx__node_proto__descriptor && ++w->nodes > w->limits->nodes)
        return dq_fail(err, DQ_OUT_OF_MEMORY, "has more nodes than the limit of %" PRIu64, w->limits->nodes);
    /* The tag, then space for the length. */
    uint8_t length_field[LENGTH_BYTES] = {0};
    dq_wire tag = {field->begin, field->data};
    uint64_t ignored;
    dq_wire_varint(&tag, &ignored);
    DQ_TRY(append(w, field->begin, (size_t)(tag.at - field->begin), err));
    DQ_TRY(append(w, length_field, sizeof length_field, err));
    size_t start = w->size;
    DQ_TRY(walk_message(w, known->child, (dq_wire){field->data, field->end}, depth + 1, graphs, err));
    put_length(w->out + start - LENGTH_BYTES, w->size - start);
    return DQ_OK;
}

/* Appends the position of the original message as DQ_FIELD_ORIGIN. */
static dq_status append_origin(walk *w, dq_wire in, dq_error *err)
{
    uint64_t origin[2] = {(uint64_t)(in.at - w->origin), (uint64_t)(in.end - in.at)};
    uint32_t tag = (uint32_t)DQ_FIELD_ORIGIN << 3 | DQ_WIRE_BYTES;
    uint8_t head[6];
    put_length(head, tag); /* A varint like any other. */
    head[5] = sizeof origin;
    DQ_TRY(append(w, head, sizeof head, err));
    return append(w, origin, sizeof origin, err);
}

static dq_status walk_message(walk *w, const ProtobufCMessageDescriptor *message, dq_wire in, unsigned depth,
                              unsigned graphs, dq_error *err)
{
    dq_wire whole = in;
    uint64_t seen = 0; /* Singular messages, by field number, which is less than 64. */
    bool chosen = false;
    while (in.at < in.end) {
        dq_wire_field field;
        known_field known;
        DQ_TRY(dq_wire_next(&in, w->origin, &field, err));
        if (!look_up(message, field.id, &known))
            continue;
        /* Merging two parts of one message is legal protobuf that no writer uses. It is refused rather than
         * left to protobuf-c. */
        bool once = known.child && !known.repeated;
        if ((once && (seen & BIT(field.id & 63))) || (known.oneof && chosen))
            return dq_fail(err, DQ_BAD_MODEL, "has two fields '%s' in one %s at byte %td, expected one",
                           known.name, message->short_name, field.begin - w->origin);
        if (once)
            seen |= BIT(field.id & 63);
        chosen = chosen || known.oneof;
        if (known.child) {
            DQ_TRY(walk_child(w, &known, &field, depth, graphs, err));
        } else {
            DQ_TRY(check_plain(w, &known, &field, err));
            DQ_TRY(append(w, field.begin, (size_t)(field.end - field.begin), err));
        }
    }
    return message == &onnx__tensor_proto__descriptor ? append_origin(w, whole, err) : DQ_OK;
}

dq_status dq_skeleton_make(const uint8_t *bytes, size_t size, const dq_limits *limits, dq_skeleton *out,
                           dq_error *err)
{
    walk w = {.origin = bytes, .limits = limits};
    dq_status status =
        walk_message(&w, &onnx__model_proto__descriptor, (dq_wire){bytes, bytes + size}, 0, 0, err);
    if (status != DQ_OK) {
        free(w.out);
        return status;
    }
    *out = (dq_skeleton){w.out, w.size};
    return DQ_OK;
}

void dq_skeleton_free(dq_skeleton *skeleton)
{
    free(skeleton->bytes);
    *skeleton = (dq_skeleton){0};
}
