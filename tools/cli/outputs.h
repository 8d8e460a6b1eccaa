/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with the outputs of a run: the table, --expect and --labels, as text or JSON. */
#ifndef DQ_TOOLS_CLI_OUTPUTS_H
#define DQ_TOOLS_CLI_OUTPUTS_H

#include "cli/json.h"
#include "cli/options.h"

typedef struct cli_outputs {
    size_t count;
    const char **names;
    const dq_tensor **tensors; /**< the session's */
} cli_outputs;

/** Prints a table of name, type, shape, range, mean and first values. Range and mean leave NaN out and say
 * how many there are. */
dq_status cli_show(const cli_outputs *outputs, dq_error *err);
/** "scores float[1,10] -3 … 7.5, …" in a line, without its end. */
void cli_show_line(const cli_outputs *outputs);
/** The same as the array "outputs". */
void cli_show_json(const cli_outputs *outputs, cli_json *json);

/** What comparing came to. */
typedef struct cli_comparison {
    bool lines;     /**< set by the caller: print a line for each output */
    cli_json *json; /**< set by the caller: add an object for each output to an open array; NULL: none */
    size_t compared, different;
    char first[1024]; /**< the first output that differs, and how */
} cli_comparison;

/** Compares with the .npz or folder `path`: every output must be there, and nothing else. */
dq_status cli_expect(const cli_outputs *outputs, const char *path, const cli_options *options,
                     cli_comparison *comparison, dq_error *err);

/** Prints the accuracy against --labels of the first output of shape [N, classes], and for up to 20 classes
 * how often each is taken for which; as the object "labels" where json is not NULL. The class of a row is the
 * index of its largest score, the first of equal ones; NaN is smaller than any. */
dq_status cli_labels(const cli_outputs *outputs, const cli_options *options, cli_json *json, dq_error *err);

#endif
