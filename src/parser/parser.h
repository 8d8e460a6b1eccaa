/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto to graph. The only folder that knows protobuf. */
#ifndef DQ_PARSER_PARSER_H
#define DQ_PARSER_PARSER_H

#include "graph/graph.h"

/** Newest format and default-domain opset that this parser knows. */
enum { DQ_MAX_IR_VERSION = 14, DQ_MAX_OPSET = 28 };

/** Parses a model file. The graph is built but not linked. The file stays mapped for as long as `*out` lives:
 * large tensors are not copied. Sentences begin with the path. Of the options, NULL or with all fields, these
 * are used: limits, base_dir (for external data, but not by dq_parse_file, which takes the file's folder),
 * allocator and external_data. */
dq_status dq_parse_file(const char *path, const dq_load_options *options, dq_ir **out, dq_error *err);

/** The same from memory, which must outlive `*out`. */
dq_status dq_parse_memory(const void *bytes, size_t size, const char *name, const dq_load_options *options,
                          dq_ir **out, dq_error *err);
/** The same from an open descriptor, which stays the caller's (dq_file_load_fd). */
dq_status dq_parse_fd(int fd, const char *name, const dq_load_options *options, dq_ir **out, dq_error *err);
/** The same from all that `read` gives. */
dq_status dq_parse_read(dq_read_fn read, void *arg, const char *name, const dq_load_options *options,
                        dq_ir **out, dq_error *err);

#endif
