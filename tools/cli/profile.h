/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun bench --profile: where the time of a model's runs goes. */
#ifndef DQ_TOOLS_CLI_PROFILE_H
#define DQ_TOOLS_CLI_PROFILE_H

#include "cli/json.h"

/** A step of the model in the order of a run, which is the same in each run of one set of shapes. */
typedef struct cli_profile_step {
    char *node, *op;       /* malloc'ed copies */
    const char *algorithm; /* NULL: the operator has one only */
    double ms;             /* the least of the runs that count */
} cli_profile_step;

typedef struct cli_profile {
    cli_profile_step *steps;
    size_t count, capacity;
    size_t at; /* steps of the run so far */
    bool counting;
    dq_status status; /* of keeping the steps */
} cli_profile;

/** A run begins. One that does not count leaves no times, only the names of its steps. */
void cli_profile_begin(cli_profile *profile, bool counts);

/** dq_session_options.trace with the profile as its arg. */
void cli_profile_trace(void *profile, const dq_trace_event *event);

/** Prints two tables: operators, then steps, each with the least milliseconds that the steps took, and their
 * share of `run_ms`, the least time of a run; the slowest first, of equal ones the first. */
dq_status cli_profile_print(const cli_profile *profile, double run_ms, dq_error *err);

/** Adds the steps in their order to an object: `"steps": [{"node": …, "op": …, "ms": …}, …]`. */
void cli_profile_print_json(const cli_profile *profile, cli_json *json);

void cli_profile_clear(cli_profile *profile);

#endif
