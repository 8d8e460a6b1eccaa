/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that list: dqrun check, ops, passes, algorithms and isa. */
#ifndef DQ_TOOLS_CLI_LISTS_H
#define DQ_TOOLS_CLI_LISTS_H

#include "cli/options.h"

/** Prints a line with the reason for each node of the model that cannot run, then their number; or all of it
 * as JSON. Returns the most severe of their statuses with an empty message, or an error of the check itself.
 */
dq_status cli_check(const dq_model *model, const cli_options *options, dq_error *err);

/** Prints the operators of the set (NULL: the library's own) that match the filter, as a table or as JSON.
 * DQ_INVALID_ARGUMENT if there are none. */
dq_status cli_ops(dq_schemas *schemas, const cli_options *options, dq_error *err);

/** Prints the rewriter's passes in their order, as text or as JSON. */
dq_status cli_passes(const cli_options *options, dq_error *err);
/** Prints the algorithm tables, as text or as JSON. */
dq_status cli_algorithms(const cli_options *options, dq_error *err);
/** Prints the ISA levels, as a table or as JSON. */
dq_status cli_isa(const cli_options *options, dq_error *err);

#endif
