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
    cli_inputs inputs; /**< of the last run; must live while its outputs are read */
    cli_outputs outputs;
    const char *output;  /**< the file of --output; NULL: none */
    double step_seconds; /**< sum of the traced steps */
    size_t run, runs;    /**< of a batch: the one at work, and how many there are; 0 and 1 for a single run */
} cli_runner;

/** Runs the command. Sets *differ when outputs are not as --expect says. */
dq_status cli_run(dq_schemas *schemas, const cli_options *options, bool *differ, dq_error *err);

/** Reads these inputs, runs the session and gets its outputs. */
dq_status cli_run_once(cli_runner *runner, const char *const *arguments, size_t count, dq_error *err);

/** Writes the outputs as .npz, or as .npy where the path ends so and there is one. */
dq_status cli_write_outputs(const char *path, const cli_outputs *outputs, dq_error *err);

/** The members "model", "isa" and "threads". */
void cli_run_json(const cli_runner *runner, cli_json *json);

/** Whether the inputs are a batch: --batch, or a folder of .npz files among them. */
bool cli_is_batch(const cli_options *options);
/** Runs each of them. The status is that of the first run that failed, whose message is printed already. */
dq_status cli_batch(cli_runner *runner, bool *differ, dq_error *err);

#endif
