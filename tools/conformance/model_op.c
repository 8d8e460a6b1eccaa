/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the operator under test from the wire format, because the report must name it even if the library
 * refuses the model or crashes. Fields of ModelProto: graph 7; of GraphProto: node 1; of NodeProto: op_type
 * 4, domain 7. */
#include "conformance.h"
#include "io/wire.h"

#include <string.h>

enum { MODEL_GRAPH = 7, GRAPH_NODE = 1, NODE_OP_TYPE = 4, NODE_DOMAIN = 7 };

static void node_op(wire_view node, char *op, size_t op_size)
{
    wire_view type = {NULL, 0}, domain = {NULL, 0};
    wire_field f;
    while (wire_next(&node, &f)) {
        if (f.number == NODE_OP_TYPE)
            type = f.bytes;
        else if (f.number == NODE_DOMAIN)
            domain = f.bytes;
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
    wire_view in = {model, size}, graph = {NULL, 0}, first = {NULL, 0};
    wire_field f;
    size_t nodes = 0;
    while (wire_next(&in, &f))
        if (f.number == MODEL_GRAPH)
            graph = f.bytes;
    while (wire_next(&graph, &f)) {
        if (f.number != GRAPH_NODE)
            continue;
        if (nodes++ == 0)
            first = f.bytes;
    }
    if (nodes == 1)
        node_op(first, op, op_size);
    else
        snprintf(op, op_size, nodes == 0 ? "(none)" : "(several)");
}
