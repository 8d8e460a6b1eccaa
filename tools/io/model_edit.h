/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to an .onnx file in memory: names, nodes, inputs and initializers of the main graph.
 *
 * Only what is named changes; everything else, external data and functions too, stays as the file has it. A
 * call that finds memory exhausted returns DQ_OUT_OF_MEMORY; the handle can then only be closed. */
#ifndef DQ_TOOLS_IO_MODEL_EDIT_H
#define DQ_TOOLS_IO_MODEL_EDIT_H

#include "common.h"

typedef struct model_edit model_edit;

/** Reads a model from its bytes, which are not kept. DQ_BAD_MODEL: they are no model. */
dq_status model_edit_open(const void *bytes, size_t size, model_edit **out, dq_error *err);
void model_edit_close(model_edit *edit);

/** Makes every node that reads `from` read `to`, in inner graphs too; outputs of the graph keep their names.
 * Nodes that this edit has added are left alone. */
dq_status model_edit_redirect(model_edit *edit, const char *from, const char *to, dq_error *err);
/** Adds an input of the main graph, of any shape. */
dq_status model_edit_add_input(model_edit *edit, const char *name, dq_dtype dtype, dq_error *err);
/** Adds an initializer, a copy of the tensor. */
dq_status model_edit_add_initializer(model_edit *edit, const char *name, const dq_tensor *tensor,
                                     dq_error *err);
/** Adds a node of ai.onnx with one output. A NULL input ends the list early. Attributes are those of the node
 * that computes `like`, where that is not NULL and there is one with the same operator, or its QLinear form.
 */
dq_status model_edit_add_node(model_edit *edit, const char *op_type, const char *const inputs[4],
                              const char *output, const char *like, dq_error *err);

/** Replaces the elements of an initializer, or of the value of a Constant node, whose element type must be
 * the tensor's. DQ_BAD_MODEL: there is no constant of that name. */
dq_status model_edit_set_constant(model_edit *edit, const char *name, const dq_tensor *tensor, dq_error *err);
/** How many nodes read the value, those of inner graphs among them. */
size_t model_edit_count_readers(const model_edit *edit, const char *name);

/** The file's bytes, malloc'ed. */
dq_status model_edit_pack(const model_edit *edit, void **bytes, size_t *size, dq_error *err);

#endif
