/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a command, from a file or from standard input. */
#ifndef DQ_TOOLS_CLI_MODEL_H
#define DQ_TOOLS_CLI_MODEL_H

#include "cli/options.h"

#include <stddef.h>

/** Loads options->model. Free with dq_model_free. */
dq_status cli_model_load(const cli_options *options, dq_schemas *schemas, dq_model **model, dq_error *err);

/** Loads the model of that path and keeps the bytes of the file, malloc'ed, and its folder, malloc'ed; NULL:
 * standard input. Edits need them besides the model. */
dq_status cli_model_load_bytes(const cli_options *options, const char *path, dq_schemas *schemas,
                               dq_model **model, void **bytes, size_t *size, char **folder, dq_error *err);

/** Whether that argument means standard input. */
bool cli_is_standard_input(const char *argument);
/** Reads standard input to its end. `what` names the expected data, for messages. */
dq_status cli_read_standard_input(const char *what, uint64_t limit, void **bytes, size_t *size,
                                  dq_error *err);

/** The name of standard input in messages. */
extern const char cli_standard_input[];

#endif
