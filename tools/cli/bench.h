/* SPDX-License-Identifier: Apache-2.0 */
/* dqrun bench: measures the time of loading and running a model. */
#ifndef DQ_TOOLS_CLI_BENCH_H
#define DQ_TOOLS_CLI_BENCH_H

#include "cli/options.h"

/** Loads the model, and runs it once (which also plans and packs). Then runs it --warmup times, and finally
 * --runs times or until --seconds have passed. Times each run by the monotonic clock, and prints the results
 * as text or JSON. Times are in milliseconds. A percentile is the smallest measured time that this percentage
 * of runs does not exceed. Peak memory is the resident set of the whole process. */
dq_status cli_bench(dq_schemas *schemas, const cli_options *options, dq_error *err);

#endif
