/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun reduce: the smallest part of a model that is computed in two ways with different results. */
#ifndef DQ_TOOLS_CLI_REDUCE_COMMAND_H
#define DQ_TOOLS_CLI_REDUCE_COMMAND_H

#include "cli/options.h"

/** Searches, writes the part to the folder of --output, and prints a summary. Sets *differ when there is a
 * difference; otherwise nothing is written. */
dq_status cli_reduce(dq_schemas *schemas, const cli_options *options, bool *differ, dq_error *err);

#endif
