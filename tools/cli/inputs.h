/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a run, from files or generated. */
#ifndef DQ_TOOLS_CLI_INPUTS_H
#define DQ_TOOLS_CLI_INPUTS_H

#include "cli/options.h"

typedef struct cli_inputs {
    size_t count;         /**< Number of the model's inputs. */
    dq_value_info *infos; /**< Declaration of each input. */
    dq_tensor **tensors;  /**< Tensor of each input; NULL: none, which only an optional input may have. */
} cli_inputs;

/** Reads and checks all files that the arguments name. Then generates the other inputs if the options request
 * it, or for dqrun bench without arguments. Every message names the file and the model's expectation. Call
 * cli_inputs_clear in every case. */
dq_status cli_inputs_gather(const dq_model *model, const cli_options *options, const char *const *arguments,
                            size_t count, cli_inputs *inputs, dq_error *err);
/** Whether missing inputs are generated. */
bool cli_inputs_made_up(const cli_options *options);
/** Sets the available inputs in the session. They must live as long as its runs. */
dq_status cli_inputs_set(const cli_inputs *inputs, dq_session *session, dq_error *err);
void cli_inputs_clear(cli_inputs *inputs);

/** The declared type of an input or output, with symbols by name: "image: float[N,1,8,8]". Returns `buffer`.
 */
const char *cli_declared_text(const dq_value_info *info, char *buffer, size_t size);

/** Parses the position M of a name such as "arr_M" or "input_M.pb". False if `name` has another form. */
bool cli_position(const char *name, const char *before, const char *after, size_t *position);

#endif
