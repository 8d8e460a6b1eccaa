/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun MODEL: one run, or a batch of them. */
#ifndef DQ_TOOLS_CLI_RUN_H
#define DQ_TOOLS_CLI_RUN_H

#include "cli/inputs.h"
#include "cli/model.h"
#include "cli/outputs.h"

typedef struct cli_runner {
    const cli_options *options;
    dq_model *model;
    dq_session *session;
    cli_inputs inputs; /**< Of the last run; must live while its outputs are read. */
    cli_outputs outputs;
    const char *output;  /**< The file of --output; NULL: none. */
    double step_seconds; /**< Sum of the traced steps. */
    size_t run, runs; /**< Of a batch: the current run, and the number of runs; 0 and 1 for a single run. */
} cli_runner;

/** Runs the command. Sets *differ if outputs differ from --expect. */
dq_status cli_run(dq_schemas *schemas, const cli_options *options, bool *differ, dq_error *err);

/** Reads these inputs, runs the session and gets its outputs. */
dq_status cli_run_once(cli_runner *runner, const char *const *arguments, size_t count, dq_error *err);

/** Writes the outputs as .npz, or as .npy if the path ends in .npy and there is one output. */
dq_status cli_write_outputs(const char *path, const cli_outputs *outputs, dq_error *err);

/** Writes the members "model", "isa" and "threads". */
void cli_run_json(const cli_runner *runner, cli_json *json);

/** Whether the inputs are a batch: --batch, or a folder of .npz files among them. */
bool cli_is_batch(const cli_options *options);
/** Runs each input of the batch. Returns the status of the first run that failed, whose message is already
 * printed. */
dq_status cli_batch(cli_runner *runner, bool *differ, dq_error *err);

#endif
