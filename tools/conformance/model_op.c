/* The operator that a model is about, read straight from the wire format: the report must name it also when
 * the library refuses the model or dies on it. Fields of ModelProto: graph 7; of GraphProto: node 1; of
 * NodeProto: op_type 4, domain 7. */
#include "conformance.h"

#include <string.h>

enum { MODEL_GRAPH = 7, GRAPH_NODE = 1, NODE_OP_TYPE = 4, NODE_DOMAIN = 7 };
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static bool varint(cf_bytes *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && in->size > 0; shift += 7) {
        uint8_t byte = *in->data++;
        in->size--;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* The next field of a message: its number, and its bytes if it has any. False at the end, or at what is no
 * field. */
static bool next_field(cf_bytes *in, uint64_t *number, cf_bytes *bytes)
{
    uint64_t key, size = 0;
    *bytes = (cf_bytes){NULL, 0};
    if (in->size == 0 || !varint(in, &key))
        return false;
    *number = key >> 3;
    switch (key & 7) {
    case WIRE_VARINT:
        return varint(in, &size);
    case WIRE_64:
        size = 8;
        break;
    case WIRE_32:
        size = 4;
        break;
    case WIRE_BYTES:
        if (!varint(in, &size))
            return false;
        break;
    default:
        return false;
    }
    if (size > in->size)
        return false;
    if ((key & 7) == WIRE_BYTES)
        *bytes = (cf_bytes){in->data, (size_t)size};
    in->data += size;
    in->size -= (size_t)size;
    return true;
}

static void node_op(cf_bytes node, char *op, size_t op_size)
{
    cf_bytes type = {NULL, 0}, domain = {NULL, 0}, bytes;
    uint64_t number;
    while (next_field(&node, &number, &bytes)) {
        if (number == NODE_OP_TYPE)
            type = bytes;
        else if (number == NODE_DOMAIN)
            domain = bytes;
    }
    bool standard = domain.size == 0 || (domain.size == 7 && memcmp(domain.data, "ai.onnx", 7) == 0);
    snprintf(op, op_size, "%.*s%s%.*s", standard ? 0 : (int)(domain.size & 0xff), (const char *)domain.data,
             standard ? "" : ".", (int)(type.size & 0xff), (const char *)type.data);
    for (char *c = op; *c != '\0'; c++)
        if ((unsigned char)*c <= ' ')
            *c = '?';
}

void cf_model_op(const uint8_t *model, size_t size, char *op, size_t op_size)
{
    cf_bytes in = {model, size}, graph = {NULL, 0}, bytes, first = {NULL, 0};
    uint64_t number;
    size_t nodes = 0;
    while (next_field(&in, &number, &bytes))
        if (number == MODEL_GRAPH)
            graph = bytes;
    while (next_field(&graph, &number, &bytes)) {
        if (number != GRAPH_NODE)
            continue;
        if (nodes++ == 0)
            first = bytes;
    }
    if (nodes == 1)
        node_op(first, op, op_size);
    else
        snprintf(op, op_size, nodes == 0 ? "(none)" : "(several)");
}
