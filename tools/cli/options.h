/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of dqrun, parsed with the tables of cli/table.h. */
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
    cli_command topic;    /**< Of CLI_HELP; CLI_COMMANDS: all of dqrun. */
    bool version;         /**< --version: nothing else is done. */
    const char *model;    /**< "-" is standard input */
    const char *argument; /**< Of commands without a model: FILTER or SHELL; NULL if omitted. */
    const char **inputs;  /**< the arguments after the model, in order */
    size_t input_count;
    const char *output;  /**< --output FILE, "-" for standard output; NULL: none */
    const char **values; /**< each --value */
    size_t value_count;
    /** Each `--output X` whose X does not look like a file. Up to dqrun 0.1 it named a value, and it still
     * does if the model has such a value. Otherwise it is a file. */
    const char **files_or_values;
    size_t file_or_value_count;
    const char **schema_dirs;
    const char *disabled_passes; /**< names separated by commas, or NULL */
    const char *algorithms;      /**< Algorithms to force, separated by commas, or NULL. */
    size_t schema_dir_count;
    cli_dim *dims;
    size_t dim_count;
    const char *expect, *labels;
    const char *isa; /**< Of --isa or DQRUN_ISA: a level of this processor; NULL: the highest. */
    bool isa_from_environment;
    unsigned threads; /**< 0: the number of cores. */
    bool no_fuse, honor_accuracy_level, quiet, verbose, why, json, profile, batch, no_progress, dot, svg,
        leave_one_out, hash, hash_values;
    const char *float_model, *ref, *fix; /**< of dqrun compare; `ref` of dqrun reduce, too */
    const char *against_isa;             /**< of dqrun reduce */
    const char *report, *trace;          /**< files */
    const char *packed;                  /**< file of packed weights, or NULL */
    const char **maps;                   /**< each --map, FLOAT=NAME */
    size_t map_count;
    double fail_above; /**< infinite: never */
    bool old_out;      /**< --out was used, which --output replaces */
    cli_color color;
    bool random;
    uint64_t seed;
    double rtol, atol;
    uint64_t warmup, runs; /**< Of dqrun bench; runs 0: runs for `seconds`. */
    double seconds;
    double timeout;   /**< seconds; 0: none */
    dq_limits limits; /**< each --limit; zeros: the defaults */
} cli_options;

/** Parses the arguments; strings point into argv. Everything that the tables do not describe is
 * DQ_INVALID_ARGUMENT with a message; partly parsed numbers are, too. Call cli_options_clear in every case.
 */
dq_status cli_parse(int argc, char **argv, cli_options *options, dq_error *err);
void cli_options_clear(cli_options *options);

/** Stores the argument of an option. `is_long`: it was spelled with its name, not its letter. */
dq_status cli_set_value(cli_options *options, cli_option_id id, bool is_long, const char *value,
                        dq_error *err);

/** Checks the levels of --isa, or of DQRUN_ISA if there is none, and --against-isa. DQ_INVALID_ARGUMENT if
 * this build or processor does not have it. */
dq_status cli_choose_isa(cli_options *options, dq_error *err);

/** The options of a session. The caller adds the callbacks that watch it. */
dq_session_options cli_session_options(const cli_options *options);

#endif
