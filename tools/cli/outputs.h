/* SPDX-License-Identifier: Apache-2.0 */
/* Processing of the outputs of a run: the table, --expect and --labels, as text or JSON. */
#ifndef DQ_TOOLS_CLI_OUTPUTS_H
#define DQ_TOOLS_CLI_OUTPUTS_H

#include "cli/json.h"
#include "cli/options.h"

typedef struct cli_outputs {
    size_t count;
    const char **names;
    const dq_tensor **tensors; /**< The session's tensors. */
} cli_outputs;

/** Prints a table of name, type, shape, range, mean and first values. Range and mean exclude NaN and give the
 * number of NaN. */
dq_status cli_show(const cli_outputs *outputs, dq_error *err);
/** Prints "scores float[1,10] -3 … 7.5, …" without the end of line. */
void cli_show_line(const cli_outputs *outputs);
/** The same as the array "outputs"; with `hashes`, each has its hash, too. */
void cli_show_json(const cli_outputs *outputs, bool hashes, cli_json *json);
/** Prints a line "HASH  scores float[1,10]" for each output (io/hash.h); `prefix`, if not NULL, precedes the
 * name as in "HASH  a.npz: scores float[1,10]". */
void cli_show_hashes(const cli_outputs *outputs, const char *prefix);

/** The result of a comparison. */
typedef struct cli_comparison {
    bool lines;     /**< Set by the caller: print a line for each output. */
    cli_json *json; /**< Set by the caller: add an object for each output to an open array; NULL: none. */
    size_t compared, different;
    char first[1024]; /**< Name and difference of the first output that differs. */
} cli_comparison;

/** Compares the outputs with the .npz or folder `path`, which must have every output and nothing else. */
dq_status cli_expect(const cli_outputs *outputs, const char *path, const cli_options *options,
                     cli_comparison *comparison, dq_error *err);

/** Reads the file of --labels. Messages do not name it. */
dq_status cli_labels_read(const char *path, dq_tensor **out, dq_error *err);
/** Prints the accuracy of the first output of shape [N, classes] against --labels, and for up to 20 classes
 * the confusion matrix. If json is not NULL, they become its object "labels". The class of a row is the index
 * of its largest score, the first of equal ones. NaN is smaller than any number. */
dq_status cli_labels(const cli_outputs *outputs, const cli_options *options, cli_json *json, dq_error *err);

#endif
