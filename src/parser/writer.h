/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: graph to ModelProto. */
#ifndef DQ_PARSER_WRITER_H
#define DQ_PARSER_WRITER_H

#include "graph/graph.h"

/** Writes the main graph, its subgraphs and opset imports as a .onnx file, atomically: whole or not at all.
 * Model-local functions must be inlined. Messages begin with `path`. */
dq_status dq_write_file(const dq_ir *ir, const char *path, dq_error *err);
/** Gives the same bytes in malloc'ed memory. Messages begin with the model's path. */
dq_status dq_write_memory(const dq_ir *ir, void **bytes, size_t *size, dq_error *err);
/** Passes the same bytes to `write`, in order, in several calls. */
dq_status dq_write_pieces(const dq_ir *ir, dq_write_fn write, void *arg, dq_error *err);

#endif
