/* SPDX-License-Identifier: Apache-2.0 */
/* Reference values of one input, from the file of --ref. */
#ifndef DQ_TOOLS_CLI_REFERENCES_H
#define DQ_TOOLS_CLI_REFERENCES_H

#include "io/npz.h"

/** Named tensors of an .npz file. */
typedef struct cli_references {
    npz *archive; /**< owns the names; NULL: nothing was read */
    const char **names;
    dq_tensor **tensors;
    size_t count;
} cli_references;

/** Reads all arrays of the file. An array whose file does not say the element type has that of the model's
 * value of its name; `model` NULL: it is refused. Messages name the file. Free with cli_references_clear in
 * every case. */
dq_status cli_references_read(const char *path, const dq_model *model, cli_references *references,
                              dq_error *err);
void cli_references_clear(cli_references *references);

#endif
