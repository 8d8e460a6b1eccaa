/* SPDX-License-Identifier: Apache-2.0 */
/* Ctrl-C and --timeout: they cancel the session's run. */
#ifndef DQ_TOOLS_CLI_INTERRUPT_H
#define DQ_TOOLS_CLI_INTERRUPT_H

#include "cli/table.h"

/** Starts the clock; 0: there is none. Until cli_interrupt_watch, the process exits when the time is up. */
void cli_interrupt_start(double timeout_seconds);

/** From now on the first SIGINT, unless it is ignored, and the end of the time cancel the session's run; the
 * second SIGINT kills the process as ever. */
void cli_interrupt_watch(dq_session *session);

/** Stops the clock and gives SIGINT back, and the process may write its results. `status` is what the runs
 * came to: DQ_CANCELLED gets a message that says by what, and so does DQ_OK where one of them came too late
 * for a run. */
dq_status cli_interrupt_end(dq_status status, dq_error *err);

/** The exit code for that status. */
int cli_interrupt_exit_code(dq_status status);

#endif
