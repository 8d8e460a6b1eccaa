/* SPDX-License-Identifier: Apache-2.0 */
/* Graph to ModelProto: the way back of the parser. */
#ifndef DQ_PARSER_WRITER_H
#define DQ_PARSER_WRITER_H

#include "graph/graph.h"

/** Writes the main graph, its inner graphs and opset imports as a .onnx file, whole or not at all.
 * Model-local functions must have been inlined. Sentences begin with `path`. */
dq_status dq_write_file(const dq_ir *ir, const char *path, dq_error *err);

#endif
