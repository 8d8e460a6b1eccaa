/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun compare: where a quantized model loses accuracy. */
#ifndef DQ_TOOLS_CLI_COMPARE_COMMAND_H
#define DQ_TOOLS_CLI_COMPARE_COMMAND_H

#include "cli/options.h"
#include "insight/compare.h"

/** Compares, prints the result as text or JSON, and writes the model of --fix. Sets *differ when an output is
 * worse than --fail-above. */
dq_status cli_compare(dq_schemas *schemas, const cli_options *options, bool *differ, dq_error *err);

/** The text: outputs, verdicts, the worst values and weights. `all`: every value and weight. */
void cli_compare_table(const insight_comparison *c, bool all);

#endif
