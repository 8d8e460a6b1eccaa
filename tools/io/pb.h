/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of TensorProto, SequenceProto and OptionalProto files, the form of the ONNX test data
 * (test_data_set_N/input_M.pb). */
#ifndef DQ_TOOLS_IO_PB_H
#define DQ_TOOLS_IO_PB_H

#include "common.h"

/** Reads a serialized TensorProto: any element type, typed fields or raw_data. `*name` is malloc'ed, and
 * empty if the file has none. Sizes are checked against the available bytes and `limit` before memory is
 * allocated. DQ_BAD_INPUT: malformed. DQ_UNSUPPORTED: external data, segments and messages of other kinds. */
dq_status pb_read(const void *bytes, size_t size, uint64_t limit, char **name, dq_tensor **out,
                  dq_error *err);

/** The same for a value of a model: a TensorProto, SequenceProto or OptionalProto, according to `declared`.
 */
dq_status pb_read_value(const void *bytes, size_t size, const dq_value_info *declared, uint64_t limit,
                        char **name, dq_tensor **out, dq_error *err);

/** The same from a file. The message does not name the path. */
dq_status pb_read_value_file(const char *path, const dq_value_info *declared, uint64_t limit, char **name,
                             dq_tensor **out, dq_error *err);

#endif
