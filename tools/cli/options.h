/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of dqrun, read by the tables of cli/table.h. */
#ifndef DQ_TOOLS_CLI_OPTIONS_H
#define DQ_TOOLS_CLI_OPTIONS_H

#include "cli/table.h"

/** --dim NAME=SIZE */
typedef struct cli_dim {
    char *name;
    int64_t size;
} cli_dim;

typedef enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER } cli_color;

typedef struct cli_options {
    cli_command command;
    cli_command topic;    /**< of CLI_HELP; CLI_COMMANDS: all of dqrun */
    bool version;         /**< --version: nothing else is done */
    const char *model;    /**< "-" is standard input */
    const char *argument; /**< of commands without a model: FILTER or SHELL; NULL when left out */
    const char **inputs;  /**< the arguments after the model, in order */
    size_t input_count;
    const char *output;  /**< --output FILE, "-" for standard output; NULL: none */
    const char **values; /**< each --value */
    size_t value_count;
    /** Each `--output X` whose X does not look like a file: up to dqrun 0.1 it named a value, and it still
     * does where the model has such a value. Otherwise it is a file. */
    const char **files_or_values;
    size_t file_or_value_count;
    const char **schema_dirs;
    const char *disabled_passes; /**< names separated by commas, or NULL */
    const char *algorithms;      /**< to force, separated by commas, or NULL */
    size_t schema_dir_count;
    cli_dim *dims;
    size_t dim_count;
    const char *expect, *labels;
    const char *isa; /**< of --isa or DQRUN_ISA: a level that this processor has; NULL: the best */
    bool isa_from_environment;
    unsigned threads; /**< 0: as many as there are cores */
    bool no_fuse, honor_accuracy_level, quiet, verbose, why, json, profile, batch, no_progress;
    bool old_out; /**< --out was used, which --output replaces */
    cli_color color;
    bool random;
    uint64_t seed;
    double rtol, atol;
    uint64_t warmup, runs; /**< of dqrun bench; no runs: for `seconds` */
    double seconds;
    double timeout;   /**< seconds; 0: none */
    dq_limits limits; /**< each --limit; zeros: the defaults */
} cli_options;

/** Reads the arguments; strings keep pointing into argv. DQ_INVALID_ARGUMENT with a message for anything else
 * than what the tables describe: numbers are taken whole or not at all. Free with cli_options_clear in every
 * case. */
dq_status cli_parse(int argc, char **argv, cli_options *options, dq_error *err);
void cli_options_clear(cli_options *options);

/** Stores the argument of an option. `is_long`: it was spelled with its name, not its letter. */
dq_status cli_set_value(cli_options *options, cli_option_id id, bool is_long, const char *value,
                        dq_error *err);

/** Checks the level of --isa, or takes that of DQRUN_ISA. DQ_INVALID_ARGUMENT where this build or processor
 * does not have it. */
dq_status cli_choose_isa(cli_options *options, dq_error *err);

/** Those of a session; who watches it is added. */
dq_session_options cli_session_options(const cli_options *options);

#endif
