/* SPDX-License-Identifier: Apache-2.0 */
/* Graph to ModelProto: the way back of the parser. */
#ifndef DQ_PARSER_WRITER_H
#define DQ_PARSER_WRITER_H

#include "graph/graph.h"

/** Writes the main graph, its inner graphs and opset imports as a .onnx file, whole or not at all.
 * Model-local functions must have been inlined. Sentences begin with `path`. */
dq_status dq_write_file(const dq_ir *ir, const char *path, dq_error *err);
/** The same bytes in malloc'ed memory; sentences begin with the model's path. */
dq_status dq_write_memory(const dq_ir *ir, void **bytes, size_t *size, dq_error *err);
/** The same bytes in pieces, in their order. */
dq_status dq_write_pieces(const dq_ir *ir, dq_write_fn write, void *arg, dq_error *err);

#endif
