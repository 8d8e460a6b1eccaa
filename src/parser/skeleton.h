/* SPDX-License-Identifier: Apache-2.0 */
/* A model's bytes without its weights, checked. protobuf-c copies every bytes field, recurses without limit
 * and trusts its input's proportions; so one walk goes first, which checks lengths, wire types, nesting and
 * numbers of nodes, and writes a copy that leaves out
 *   - the payload of every TensorProto (raw and typed data): in its place stands where the message lies in
 *     the original bytes, and parser/payload.h reads it from there;
 *   - what this library does not read: training, unknown fields; documentation and metadata of the parts of a
 *     model (those of the model itself stay). */
#ifndef DQ_PARSER_SKELETON_H
#define DQ_PARSER_SKELETON_H

#include "graph/graph.h"

/** The private field of a TensorProto in the skeleton: 16 bytes, two uint64 of this machine, the offset and
 * size of the message in the original bytes. The highest field number there is, which ONNX does not use. */
enum { DQ_FIELD_ORIGIN = (1 << 29) - 1 };

typedef struct dq_skeleton {
    uint8_t *bytes; /* malloc'ed */
    size_t size;
} dq_skeleton;

/** Bounds: limits->nodes and limits->nesting (graphs in graphs). Sentences say byte offsets in the original.
 */
dq_status dq_skeleton_make(const uint8_t *bytes, size_t size, const dq_limits *limits, dq_skeleton *out,
                           dq_error *err);
void dq_skeleton_free(dq_skeleton *skeleton);

#endif
