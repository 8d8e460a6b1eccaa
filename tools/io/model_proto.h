/* SPDX-License-Identifier: Apache-2.0 */
/* The message that a model_edit holds, for the files of this folder. */
#ifndef DQ_TOOLS_IO_MODEL_PROTO_H
#define DQ_TOOLS_IO_MODEL_PROTO_H

#include "io/model_edit.h"

#include "onnx.pb-c.h"

struct model_edit {
    Onnx__ModelProto *model;
    size_t node_count; /* those of the file; later ones were added */
};

/** The tensor as a message, malloc'ed; not for strings. NULL: memory ran out. */
Onnx__TensorProto *model_proto_tensor(const char *name, const dq_tensor *tensor);

#endif
