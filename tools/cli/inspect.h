/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun inspect: what a model holds and how a session computes it. */
#ifndef DQ_TOOLS_CLI_INSPECT_H
#define DQ_TOOLS_CLI_INSPECT_H

#include "cli/options.h"
#include "insight/inspect.h"

/** Loads the model, plans it for the given or made-up inputs, and prints what is there: as text, JSON, dot or
 * SVG. Nodes that cannot run are no failure: they are listed. */
dq_status cli_inspect(dq_schemas *schemas, const cli_options *options, dq_error *err);

/** The text: a summary, then the nodes. */
void cli_inspect_table(const insight_model *m);

/** "12.3 KiB". Returns buffer. */
const char *cli_bytes_text(uint64_t bytes, char buffer[32]);

#endif
