/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun bench --trace: the steps of runs over time, in the JSON trace event format that Perfetto and
 * chrome://tracing open. */
#ifndef DQ_TOOLS_CLI_TRACE_H
#define DQ_TOOLS_CLI_TRACE_H

#include "cli/profile.h"

typedef struct cli_trace_event {
    size_t step;          /* of the profile */
    double start, length; /* microseconds since the first run that counts */
} cli_trace_event;

/** Starts as {0}. */
typedef struct cli_trace {
    cli_trace_event *events, *runs; /* of runs: `step` is the number of the run */
    size_t count, capacity, run_count, run_capacity;
    double origin; /* seconds of the clock; 0: not begun */
    bool full;     /* later runs are left out */
    dq_status status;
} cli_trace;

/** A step that took so long has just ended. */
void cli_trace_add(cli_trace *trace, size_t step, double seconds);
/** A run that counts has just ended. */
void cli_trace_end_run(cli_trace *trace, double seconds);
/** Writes the file, whole or not at all. */
dq_status cli_trace_write(const cli_trace *trace, const cli_profile *profile, const char *model,
                          const char *path, dq_error *err);
void cli_trace_clear(cli_trace *trace);

#endif
