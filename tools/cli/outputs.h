/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with the outputs of a run: the table, --expect and --labels. All of it goes to stdout. */
#ifndef DQ_TOOLS_CLI_OUTPUTS_H
#define DQ_TOOLS_CLI_OUTPUTS_H

#include "cli/options.h"

typedef struct cli_outputs {
    size_t count;
    const char **names;
    const dq_tensor **tensors; /**< the session's */
} cli_outputs;

/** A table of name, type, shape, range, mean and first values. Range and mean leave NaN out and say how many
 * there are. */
dq_status cli_show(const cli_outputs *outputs, dq_error *err);

/** Compares with --expect: every output must be there, and nothing else. A line for each output unless
 * --quiet. Sets *differ when one is not equal. */
dq_status cli_expect(const cli_outputs *outputs, const cli_options *options, bool *differ, dq_error *err);

/** Prints the accuracy against --labels of the first output of shape [N, classes], and for up to 20 classes
 * how often each is taken for which. The class of a row is the index of its largest score, the first of equal
 * ones; NaN is smaller than any. */
dq_status cli_labels(const cli_outputs *outputs, const cli_options *options, dq_error *err);

#endif
