/* SPDX-License-Identifier: Apache-2.0 */
/* The state of parsing one model, shared by the parser's files. Private to src/parser. */
#ifndef DQ_PARSER_READER_H
#define DQ_PARSER_READER_H

#include "base/file.h"
#include "graph/graph.h"
#include "parser/pb.h"

typedef struct dq_externals dq_externals;

typedef struct dq_reader {
    dq_ir *ir;
    dq_pb_memory memory;     /* Of the unpacked messages; freed after the graph is built. */
    const uint8_t *bytes;    /* The model file. */
    const dq_file *file;     /* NULL: the caller owns `bytes`. */
    dq_externals *externals; /* Open external data files. */
    uint64_t dense_bytes;    /* Bytes of the tensors densified so far. */
} dq_reader;

/** The context of a node or attribute: its opset versions, and whether it may refer to attributes of a
 * function. */
typedef struct dq_scope {
    const dq_opset *opsets;
    uint32_t opset_count;
    bool in_function;
} dq_scope;

/* Error messages of the following functions describe the fault; the caller prefixes the name of the item. */

/** Copies a text to the model's arena; NULL becomes "". Returns NULL if memory runs out. */
const char *dq_proto_text(dq_reader *r, const char *text);
dq_status dq_proto_type(dq_reader *r, const Onnx__TypeProto *proto, dq_type *out, dq_error *err);
dq_status dq_proto_tensor(dq_reader *r, const Onnx__TensorProto *proto, const dq_tensor **out, dq_error *err);
/** The same for an initializer: a large one may stay in the file unaligned (dq_tensor.unaligned). */
dq_status dq_proto_initializer(dq_reader *r, const Onnx__TensorProto *proto, const dq_tensor **out,
                               dq_error *err);
/** Reads a sparse tensor as a dense one. */
dq_status dq_proto_sparse(dq_reader *r, const Onnx__SparseTensorProto *proto, const dq_tensor **out,
                          dq_error *err);
/** Fills in `out`, which is zeroed. `g` is the outer graph of subgraphs in the attribute. */
dq_status dq_proto_attribute(dq_reader *r, const dq_scope *scope, dq_graph *g,
                             const Onnx__AttributeProto *proto, dq_attr *out, dq_error *err);
/** Adds everything in the message to `g`. */
dq_status dq_proto_graph(dq_reader *r, const dq_scope *scope, const Onnx__GraphProto *proto, dq_graph *g,
                         dq_error *err);

#endif
