/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of dqrun. */
#ifndef DQ_TOOLS_CLI_OPTIONS_H
#define DQ_TOOLS_CLI_OPTIONS_H

#include <dqrun/dqrun.h>

typedef enum cli_command { CLI_RUN, CLI_CHECK, CLI_OPS, CLI_BENCH, CLI_HELP, CLI_VERSION } cli_command;

/** --dim NAME=SIZE */
typedef struct cli_dim {
    char *name;
    int64_t size;
} cli_dim;

typedef struct cli_options {
    cli_command command;
    const char *model;
    const char **inputs; /**< the arguments after the model, in order */
    size_t input_count;
    const char **outputs; /**< each --output */
    size_t output_count;
    const char **schema_dirs;
    size_t schema_dir_count;
    cli_dim *dims;
    size_t dim_count;
    const char *out, *expect, *labels, *isa;
    unsigned threads; /**< 0: as many as there are cores */
    bool no_fuse, honor_accuracy_level, quiet, verbose, why, json, profile;
    bool random;
    uint64_t seed;
    double rtol, atol;
    uint64_t warmup, runs; /**< of dqrun bench; no runs: for `seconds` */
    double seconds;
    double timeout;   /**< seconds; 0: none */
    dq_limits limits; /**< each --limit; zeros: the defaults */
} cli_options;

/** Reads the arguments; strings keep pointing into argv. DQ_INVALID_ARGUMENT with a sentence for anything
 * else than what cli_help describes: numbers are taken whole or not at all. Free with cli_options_clear in
 * every case. */
dq_status cli_parse(int argc, char **argv, cli_options *options, dq_error *err);
void cli_options_clear(cli_options *options);

/** Those of a session; who watches it is added. */
dq_session_options cli_session_options(const cli_options *options);

/** The text of --help. */
extern const char cli_help[];

#endif
