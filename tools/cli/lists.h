/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that list: dqrun check and dqrun ops. */
#ifndef DQ_TOOLS_CLI_LISTS_H
#define DQ_TOOLS_CLI_LISTS_H

#include "cli/options.h"

/** Prints a line for each node of the model that cannot run, with the reason, then how many there are.
 * Returns the gravest of their statuses, with an empty sentence; or what the check itself failed with. */
dq_status cli_check(const dq_model *model, const cli_options *options, dq_error *err);

/** Prints the operators of the set (NULL: the library's own), as a table or as JSON. */
dq_status cli_ops(dq_schemas *schemas, bool json, dq_error *err);

#endif
