/* SPDX-License-Identifier: Apache-2.0 */
/* The skeleton of a model: a checked copy of its bytes without the weights. protobuf-c copies every bytes
 * field, recurses without limit and trusts its input's sizes. So a first walk checks lengths, wire types,
 * nesting and numbers of nodes, and writes a copy without
 *
 * - the payload of every TensorProto (raw and typed data); DQ_FIELD_ORIGIN replaces it by the position of the
 * message in the original bytes, for parser/payload.h;
 *
 * - the fields that this library does not read: training, unknown fields, documentation and metadata of the
 * parts of a model (those of the model itself stay). */
#ifndef DQ_PARSER_SKELETON_H
#define DQ_PARSER_SKELETON_H

#include "graph/graph.h"

/** The private field of a TensorProto in the skeleton: 16 bytes, two uint64 in this machine's byte order:
 * offset and size of the message in the original bytes. It has the highest possible field number, which ONNX
 * does not use. */
enum { DQ_FIELD_ORIGIN = (1 << 29) - 1 };

typedef struct dq_skeleton {
    uint8_t *bytes; /* malloc'ed. */
    size_t size;
} dq_skeleton;

/** Makes the skeleton. Limits: limits->nodes, and limits->nesting (graphs in graphs). Messages give byte
 * offsets in the original. */
dq_status dq_skeleton_make(const uint8_t *bytes, size_t size, const dq_limits *limits, dq_skeleton *out,
                           dq_error *err);
void dq_skeleton_free(dq_skeleton *skeleton);

#endif
