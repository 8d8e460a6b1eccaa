/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the parser share: one model that is being read. Private to src/parser. */
#ifndef DQ_PARSER_READER_H
#define DQ_PARSER_READER_H

#include "base/file.h"
#include "graph/graph.h"
#include "parser/pb.h"

typedef struct dq_externals dq_externals;

typedef struct dq_reader {
    dq_ir *ir;
    dq_pb_memory memory;     /* of the unpacked messages; gone once the graph is built */
    const uint8_t *bytes;    /* the model file */
    const dq_file *file;     /* NULL: `bytes` are a caller's */
    dq_externals *externals; /* open files of external data */
    uint64_t dense_bytes;    /* of tensors made from sparse ones so far */
} dq_reader;

/** Where a node or attribute stands: decides its opset versions and whether it may refer to attributes. */
typedef struct dq_scope {
    const dq_opset *opsets;
    uint32_t opset_count;
    bool in_function;
} dq_scope;

/* Sentences of all these say what is wrong with the thing that is read; the caller puts its name in front. */

/** A copy in the model's arena; NULL gives "". NULL result: no memory. */
const char *dq_proto_text(dq_reader *r, const char *text);
dq_status dq_proto_type(dq_reader *r, const Onnx__TypeProto *proto, dq_type *out, dq_error *err);
dq_status dq_proto_tensor(dq_reader *r, const Onnx__TensorProto *proto, const dq_tensor **out, dq_error *err);
/** The same for a large one that may stay where it is though it is not aligned there (dq_tensor.unaligned).
 */
dq_status dq_proto_initializer(dq_reader *r, const Onnx__TensorProto *proto, const dq_tensor **out,
                               dq_error *err);
/** Densified. */
dq_status dq_proto_sparse(dq_reader *r, const Onnx__SparseTensorProto *proto, const dq_tensor **out,
                          dq_error *err);
/** Fills in `out`, which is zeroed; `g` is the graph that graphs in the attribute see. */
dq_status dq_proto_attribute(dq_reader *r, const dq_scope *scope, dq_graph *g,
                             const Onnx__AttributeProto *proto, dq_attr *out, dq_error *err);
/** Adds everything in the message to `g`. */
dq_status dq_proto_graph(dq_reader *r, const dq_scope *scope, const Onnx__GraphProto *proto, dq_graph *g,
                         dq_error *err);

#endif
