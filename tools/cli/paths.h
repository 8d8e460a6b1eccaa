/* SPDX-License-Identifier: Apache-2.0 */
/* The runs that the arguments of a command list: one for each .npz file and each folder of .pb files. */
#ifndef DQ_TOOLS_CLI_PATHS_H
#define DQ_TOOLS_CLI_PATHS_H

#include "cli/options.h"

typedef struct cli_paths {
    char **paths; /**< malloc'ed, one a run */
    size_t count, capacity;
    const char *
        *arguments; /**< of a run: those that all runs are given, then a free entry for its own path */
    size_t shared;  /**< how many all are given */
} cli_paths;

/** Lists them as cli_batch_text says. DQ_INVALID_ARGUMENT: there is none. Free with cli_paths_clear in every
 * case. */
dq_status cli_paths_list(const cli_options *options, cli_paths *list, dq_error *err);
void cli_paths_clear(cli_paths *list);

#endif
