/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a model: some nodes of the main graph, and values at their edges as new inputs and outputs. */
#ifndef DQ_TOOLS_IO_MODEL_CUT_H
#define DQ_TOOLS_IO_MODEL_CUT_H

#include "io/model_edit.h"

/* ---- The main graph ------------------------------------------------------------------------------------ */

/** A node of the file; names live as long as the edit. */
typedef struct model_node {
    const char *name, *op_type; /**< "" where the file has none */
    size_t output_count;
    char *const *outputs; /**< "" where one is left out */
    size_t read_count;
    const char **reads; /**< malloc'ed: inputs, and names that its inner graphs read */
} model_node;

size_t model_cut_node_count(const model_edit *edit);
/** Describes node i, in the order of the file. The caller frees `reads`. */
dq_status model_cut_node(const model_edit *edit, size_t i, model_node *node, dq_error *err);
/** Whether the name is an input of the graph, constants before IR version 4 excepted; or an output. */
bool model_cut_is_input(const model_edit *edit, const char *name);
bool model_cut_is_output(const model_edit *edit, const char *name);

/* ---- Cuts ---------------------------------------------------------------------------------------------- */

/** A value at an edge of the part. Its type and shape become those of the declaration. */
typedef struct model_cut_value {
    const char *name;
    const dq_tensor *tensor;
    bool is_constant; /**< becomes an initializer in place of an input; not for strings */
} model_cut_value;

typedef struct model_cut {
    const bool *keep; /**< by node of the file */
    size_t input_count, output_count;
    const model_cut_value *inputs;  /**< results of nodes that are left out, which kept nodes read */
    const model_cut_value *outputs; /**< results of kept nodes */
} model_cut;

/** The bytes of a model with these nodes, malloc'ed. The graph's inputs and initializers that they read stay;
 * opsets, functions and metadata, too. Initializers in other files are copied into the model, from `loaded`,
 * the same model as loaded. */
dq_status model_cut_pack(const model_edit *edit, const model_cut *cut, const dq_model *loaded, void **bytes,
                         size_t *size, dq_error *err);

#endif
