/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun bench: how long loading and running a model takes. */
#ifndef DQ_TOOLS_CLI_BENCH_H
#define DQ_TOOLS_CLI_BENCH_H

#include "cli/options.h"

/** Loads the model, runs it once (which also plans and packs), then --warmup times, then --runs times or
 * until
 *  --seconds have passed, each run timed by the monotonic clock, and prints the figures as text or JSON.
 * Times are in milliseconds; a percentile is the smallest measured time that so many percent of the runs do
 * not exceed. Peak memory is the whole process's resident set. */
dq_status cli_bench(dq_schemas *schemas, const cli_options *options, dq_error *err);

#endif
