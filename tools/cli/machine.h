/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine can do at most: the lines of a roofline. */
#ifndef DQ_TOOLS_CLI_MACHINE_H
#define DQ_TOOLS_CLI_MACHINE_H

#include <dqrun/dqrun.h>

/** Rates a second; 0: could not be measured. */
typedef struct cli_machine {
    double integer_macs, float_macs; /**< multiply-adds of a product of int8 or float matrices in the cache */
    double bytes;                    /**< read and written by copies of large memory */
} cli_machine;

/** Measures for about a fifth of a second, with the threads and the instruction set of `options`. */
void cli_machine_measure(const dq_session_options *options, unsigned threads, cli_machine *out);

#endif
