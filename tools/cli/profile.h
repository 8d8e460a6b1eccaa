/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun bench --profile: distribution of a model's run time over its steps. */
#ifndef DQ_TOOLS_CLI_PROFILE_H
#define DQ_TOOLS_CLI_PROFILE_H

#include "cli/json.h"
#include "cli/machine.h"

/** A step of the model, in the order of a run. The order is the same in all runs of one set of shapes. */
typedef struct cli_profile_step {
    char *node, *op;       /* malloc'ed copies. */
    const char *algorithm; /* NULL: the operator has only one. */
    double ms;             /* The minimum over the runs that count. */
    uint64_t macs, bytes;  /* As in dq_step_info; 0: not known. */
} cli_profile_step;

typedef struct cli_profile {
    cli_profile_step *steps;
    size_t count, capacity;
    size_t at; /* Number of steps in this run so far. */
    bool counting;
    dq_status status; /* Of recording the steps. */
    cli_machine machine;
    struct cli_trace *trace; /* NULL: no trace is written. */
} cli_profile;

/** Begins a run. A run that does not count records only the names of its steps, no times. */
void cli_profile_begin(cli_profile *profile, bool counts);

/** The function for dq_session_options.trace; its arg is the profile. */
void cli_profile_trace(void *profile, const dq_trace_event *event);

/** Ends the runs: takes the multiply-adds and bytes of the steps from the session's plan. */
void cli_profile_end(cli_profile *profile, dq_session *session);

/** Prints two tables, operators and steps. Each row has the minimal time in milliseconds and its share of
 * `run_ms`, the minimal time of a run. Rows are sorted by descending time, equal ones in the order of a run.
 */
dq_status cli_profile_print(const cli_profile *profile, double run_ms, dq_error *err);

/** Adds the machine and the steps in their order to an object: `"machine": {…}, "steps": [{"node": …, "op":
 * …, "ms": …}, …]`. */
void cli_profile_print_json(const cli_profile *profile, cli_json *json);

void cli_profile_clear(cli_profile *profile);

#endif
