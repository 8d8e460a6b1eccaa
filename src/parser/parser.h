/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: ModelProto to graph. Only this folder uses protobuf. */
#ifndef DQ_PARSER_PARSER_H
#define DQ_PARSER_PARSER_H

#include "graph/graph.h"

/** The newest IR version and default-domain opset that this parser knows. */
enum { DQ_MAX_IR_VERSION = 14, DQ_MAX_OPSET = 28 };

/** Parses a model file. The graph is built but not linked. The file stays mapped as long as `*out` lives:
 * large tensors are not copied. Messages begin with the path. `options` is NULL or has all fields. It uses
 * limits, allocator, external_data and base_dir (for external data; dq_parse_file uses the file's folder
 * instead). */
dq_status dq_parse_file(const char *path, const dq_load_options *options, dq_ir **out, dq_error *err);

/** The same from memory, which must outlive `*out`. */
dq_status dq_parse_memory(const void *bytes, size_t size, const char *name, const dq_load_options *options,
                          dq_ir **out, dq_error *err);
/** The same from an open descriptor, which remains the caller's (dq_file_load_fd). */
dq_status dq_parse_fd(int fd, const char *name, const dq_load_options *options, dq_ir **out, dq_error *err);
/** The same from all data that `read` supplies. */
dq_status dq_parse_read(dq_read_fn read, void *arg, const char *name, const dq_load_options *options,
                        dq_ir **out, dq_error *err);

#endif
