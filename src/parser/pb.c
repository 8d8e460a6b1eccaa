/* SPDX-License-Identifier: Apache-2.0 */
#include "parser/pb.h"

#include "parser/wire.h"

#include <string.h>

static const dq_pb_newer newer_fields[] = {
    {&onnx__node_proto__descriptor, DQ_PB_NODE_OVERLOAD, NULL},
    {&onnx__function_proto__descriptor, DQ_PB_FUNCTION_ATTRIBUTE_PROTO, &onnx__attribute_proto__descriptor},
    {&onnx__function_proto__descriptor, DQ_PB_FUNCTION_OVERLOAD, NULL},
};

const dq_pb_newer *dq_pb_newer_field(const ProtobufCMessageDescriptor *message, unsigned id)
{
    for (size_t i = 0; i < sizeof newer_fields / sizeof newer_fields[0]; i++)
        if (newer_fields[i].message == message && newer_fields[i].id == id)
            return &newer_fields[i];
    return NULL;
}

static void *allocate(void *arg, size_t size)
{
    dq_pb_memory *memory = arg;
    if (size > memory->limit || memory->arena.used > memory->limit - size) {
        memory->over = true;
        return NULL;
    }
    return dq_arena_alloc(&memory->arena, size, 16);
}

static void release(void *arg, void *piece)
{
    (void)arg;
    (void)piece; /* The arena frees everything. */
}

dq_status dq_pb_unpack(dq_pb_memory *memory, const ProtobufCMessageDescriptor *descriptor,
                       const uint8_t *bytes, size_t size, ProtobufCMessage **out, dq_error *err)
{
    ProtobufCAllocator allocator = {.alloc = allocate, .free = release, .allocator_data = memory};
    *out = protobuf_c_message_unpack(descriptor, &allocator, size, bytes);
    if (*out)
        return DQ_OK;
    if (memory->over)
        return dq_fail(err, DQ_OUT_OF_MEMORY,
                       "takes over %zu bytes of memory to read, out of proportion to its size",
                       memory->limit);
    /* The skeleton's walk has refused everything that protobuf-c refuses, so the only remaining error is
     * memory. */
    return dq_no_memory(err, size, "the parts of a model");
}

const uint8_t *dq_pb_unknown(const ProtobufCMessage *message, unsigned id, size_t *size)
{
    for (unsigned i = message->n_unknown_fields; i-- > 0;) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
        if (field->tag != id || field->wire_type != PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
            continue;
        /* protobuf-c keeps the length before the contents. */
        dq_wire w = {field->data, field->data + field->len};
        uint64_t length = 0;
        if (!dq_wire_varint(&w, &length) || length != (uint64_t)(w.end - w.at))
            continue;
        *size = (size_t)length;
        return w.at;
    }
    return NULL;
}

static const void *member(const ProtobufCMessage *message, unsigned offset)
{
    return (const char *)message + offset;
}

dq_status dq_pb_string(dq_pb_memory *memory, const ProtobufCMessage *message, unsigned id, const char **out,
                       dq_error *err)
{
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(message->descriptor, id);
    if (known) {
        *out = dq_pb_text(*(char *const *)member(message, known->offset));
        return DQ_OK;
    }
    size_t size = 0;
    const uint8_t *bytes = dq_pb_unknown(message, id, &size);
    *out = bytes ? dq_arena_string(&memory->arena, (const char *)bytes, size) : "";
    return *out ? DQ_OK : dq_no_memory(err, size, "a name");
}

dq_status dq_pb_messages(dq_pb_memory *memory, const ProtobufCMessage *message, unsigned id, size_t *count,
                         ProtobufCMessage ***out, dq_error *err)
{
    const ProtobufCFieldDescriptor *known = protobuf_c_message_descriptor_get_field(message->descriptor, id);
    if (known) {
        *count = *(const size_t *)member(message, known->quantifier_offset);
        *out = *(ProtobufCMessage * *const *)member(message, known->offset);
        return DQ_OK;
    }
    const ProtobufCMessageDescriptor *child = dq_pb_newer_field(message->descriptor, id)->child;
    *count = 0;
    *out = DQ_NEW_ARRAY(&memory->arena, message->n_unknown_fields, ProtobufCMessage *);
    if (!*out)
        return dq_no_memory(err, message->n_unknown_fields * sizeof **out, "the parts of a model");
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        const ProtobufCMessageUnknownField *field = &message->unknown_fields[i];
        dq_wire w = {field->data, field->data + field->len};
        uint64_t length = 0;
        if (field->tag != id || !dq_wire_varint(&w, &length) || length != (uint64_t)(w.end - w.at))
            continue;
        DQ_TRY(dq_pb_unpack(memory, child, w.at, (size_t)length, &(*out)[*count], err));
        ++*count;
    }
    return DQ_OK;
}
