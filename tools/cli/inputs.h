/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of a run, from files or made up. */
#ifndef DQ_TOOLS_CLI_INPUTS_H
#define DQ_TOOLS_CLI_INPUTS_H

#include "cli/options.h"

typedef struct cli_inputs {
    size_t count;         /**< the model's inputs */
    dq_value_info *infos; /**< what each declares */
    dq_tensor **tensors;  /**< what it gets; NULL: nothing given, which only an optional input may be */
} cli_inputs;

/** Reads and checks everything that the arguments name, then makes up the rest where the options ask for
 * that, as dqrun bench without arguments does. Every message names the file and says what the model expects.
 * Free with cli_inputs_clear in every case. */
dq_status cli_inputs_gather(const dq_model *model, const cli_options *options, const char *const *arguments,
                            size_t count, cli_inputs *inputs, dq_error *err);
/** Whether inputs that are not given are made up. */
bool cli_inputs_made_up(const cli_options *options);
/** Gives the session those that there are; they must last as long as its runs. */
dq_status cli_inputs_set(const cli_inputs *inputs, dq_session *session, dq_error *err);
void cli_inputs_clear(cli_inputs *inputs);

/** "image: float[N,1,8,8]": the declared type of an input or output, symbols by name. Returns buffer. */
const char *cli_declared_text(const dq_value_info *info, char *buffer, size_t size);

/** Position M in a name such as "arr_M" or "input_M.pb"; false when `name` is not that. */
bool cli_position(const char *name, const char *before, const char *after, size_t *position);

#endif
