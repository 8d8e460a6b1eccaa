/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto to graph. The only folder that knows protobuf. */
#ifndef DQ_PARSER_PARSER_H
#define DQ_PARSER_PARSER_H

#include "graph/graph.h"

/** Newest format and default-domain opset that this parser knows. */
enum { DQ_MAX_IR_VERSION = 14, DQ_MAX_OPSET = 28 };

/** Parses a model file. The graph is built but not linked. The file stays mapped for as long as `*out` lives:
 * large tensors are not copied. Sentences begin with the path. */
dq_status dq_parse_file(const char *path, const dq_limits *limits, dq_ir **out, dq_error *err);

/** The same from memory, which must outlive `*out`. `base_dir` is the folder of external data, or NULL: none.
 */
dq_status dq_parse_memory(const void *bytes, size_t size, const char *name, const char *base_dir,
                          const dq_limits *limits, dq_ir **out, dq_error *err);

#endif
